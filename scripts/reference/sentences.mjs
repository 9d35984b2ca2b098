/**
 * What a schema cannot say: the meaning of each field, the rules between fields, and the codes a tool answers with.
 * Everything else on the pages comes from the code.
 */
const TOOLS = {
  task_create: {
    input: {
      title: 'what is to be done, in one line',
      project: 'where it belongs; a name not used before opens a project, unless `COLIBRI_PROJECTS` is set',
      description: 'the details; Markdown is kept as it is',
      parent_id: 'the task this one is a part of; the parent then waits for it',
      priority: '`normal` unless said otherwise',
      labels: 'free tags; a repeated one is kept once',
      assignee: '`unassigned` unless said otherwise',
      estimate_hours: 'planned effort',
      type: 'kind of work',
      proof_grade: '`true`: thoughts need an open session, and finishing needs a sealed one',
      workflow: '`COLIBRI_WORKFLOW` unless said otherwise; never changes afterwards',
      depends_on: 'tasks that must end before this one is ready',
    },
    errors: ['ERR_PROJECT_NOT_FOUND', 'ERR_TASK_NOT_FOUND', 'ERR_CIRCULAR_DEPENDENCY'],
  },
  task_get: {
    input: {
      task_id: 'the task',
      include_thought_trail: '`true`: the ids of its thoughts, oldest first',
      include_dependents: '`true`: the ids of its children',
      include_history: '`true`: the calls on it, newest first, refused ones included',
    },
    output: {
      'history[].position': 'the `exit` row of the call',
      'history[].at': 'when',
      'history[].actor': 'who, as claimed',
      'history[].tool': 'which tool',
      'history[].outcome': 'how it ended, as in the log',
      'history[].error_code': 'why it was refused',
      'history[].message': 'the same in a sentence',
      'history[].args': 'what was asked for; long texts are cut',
      'history[].previous_status': 'the status before',
      'history[].taken_over_from': 'whose hold it took',
    },
    rules: [
      'A field without a value is left out of the answer.',
      '`history` holds at most 50 calls; `history_total` says how many there are.',
    ],
    errors: ['ERR_TASK_NOT_FOUND'],
  },
  task_update: {
    input: {
      task_id: 'the task',
      status: 'the next step of its workflow',
      progress: 'percent done',
      title: 'a new title',
      description: 'replaces the whole description',
      priority: 'a new priority',
      assignee: 'who does it',
      labels: 'replaces all labels',
      blocked_reason: 'what it waits for; needed with `status: "blocked"`',
      estimate_hours: 'planned effort',
      depends_on: 'replaces all dependencies',
      takeover:
        '`true`: take the task from whoever holds it; without `status`, or with the one it has, nothing else moves',
    },
    output: {
      previous_status: 'the status before; only where `status` was sent',
      taken_over_from: 'who held the task before this call, where that was somebody else',
      warnings: 'what was done as asked but may not be what was meant',
    },
    rules: [
      'At least one field beside `task_id` is needed. Fields that are not sent keep their value, so two agents that change different fields both keep their change.',
      'A status the workflow has no arrow to is refused, and so is the status the task already has. So a second agent that takes the task is told who has it and since when.',
      'Whoever moves a task to `in_progress`, or a pipeline task out of `INIT`, holds it. While it is held, a change of its status by another actor, or from another process of the same actor while the holder’s is there, is `ERR_TASK_HELD`. It is allowed to the same actor after its process ended, to the `assignee`, and with `takeover`. See [several agents](../guides/several-agents.md#who-holds-a-task).',
      'Finishing (`done`, `DONE`) needs a recorded thought, and on a `proof_grade` task a sealed session. It sets `progress` to 100.',
    ],
    errors: [
      'ERR_TASK_NOT_FOUND',
      'ERR_INVALID_TRANSITION',
      'ERR_TASK_HELD',
      'ERR_WRITEBACK_REQUIRED',
      'ERR_PROOF_REQUIRED',
      'ERR_CIRCULAR_DEPENDENCY',
    ],
  },
  task_list: {
    input: {
      project: 'only this project; otherwise `COLIBRI_PROJECT`, otherwise all',
      status: 'any of these',
      priority: 'any of these',
      assignee: 'only this one’s tasks',
      label: 'only tasks that carry it',
      created_after: 'an ISO-8601 date or time in any zone',
      created_before: 'an ISO-8601 date or time in any zone',
      search: 'words, or beginnings of words, that title and description hold; all of them must be there',
      limit: 'size of the page; 50 unless said otherwise',
      offset: 'how many to skip',
      sort_by: '`updated` unless said otherwise',
      sort_order: '`desc` unless said otherwise',
    },
    errors: [],
  },
  task_next_actions: {
    input: {
      project: 'only this project; otherwise `COLIBRI_PROJECT`, otherwise all',
      limit: '20 unless said otherwise',
      include_blocked: '`true`: blocked tasks too, with their reasons',
    },
    output: {
      project: 'the project that was looked at; `*` for all',
      count: 'how many next actions are in this answer',
      'next_actions[].status': 'of a pipeline task: where it stands; the others are in `todo`',
    },
    rules: [
      'Listed are kanban tasks in `todo` and pipeline tasks that have not ended; one that is under way only to its holder. What waits for nothing comes first, then the more urgent, then the older.',
      '`yours` and `abandoned` hold at most `limit` tasks each. A task of this actor whose process ended is among `yours`.',
    ],
    errors: ['ERR_PROJECT_NOT_FOUND'],
  },
  thought_record: {
    input: {
      task_id: 'the task the thought is about',
      type: 'kind of thought',
      content: 'the thought',
      branch: 'git branch; read from the workspace where it is left out',
      commit_sha: 'git commit; read from the workspace where it is left out',
      tests_run: 'tests that were run',
      blockers: 'what stands in the way',
      metadata:
        'any JSON object of at most 16,384 bytes, or its text; `tools/list` asks for the text, because strict clients refuse an object of unknown fields',
      session_id: 'the session it belongs to; otherwise the task’s open one, otherwise none',
    },
    output: {},
    rules: [
      'A named session must be open and must cover the task.',
      'A `proof_grade` task takes thoughts only while a session that covers it is open.',
      'A thought cannot be edited or removed.',
    ],
    errors: ['ERR_TASK_NOT_FOUND', 'ERR_SESSION_NOT_FOUND', 'ERR_SESSION_REQUIRED', 'ERR_ALREADY_FINALIZED'],
  },
  thought_record_list: {
    input: {
      task_id: 'the thoughts of this task',
      session_id: 'the thoughts among the records of this session',
      type: 'only this kind',
      limit: 'size of the page; 100 unless said otherwise',
      offset: 'how many to skip',
      verify_chain: '`true`: check every hash and link of the whole chain, not only of this page',
    },
    output: {
      task_id: 'the task, where one was asked for',
      session_id: 'the session, where one was asked for',
    },
    rules: [
      'With both `task_id` and `session_id`: the thoughts of that task within that session. With neither: all thoughts.',
    ],
    errors: ['ERR_TASK_NOT_FOUND', 'ERR_SESSION_NOT_FOUND'],
  },
  audit_verify_chain: {
    input: {
      session_id: 'verify the records and the seal of this session',
      task_id: 'verify the thoughts of this task',
      full_trace: '`true`: every record with its hash',
    },
    output: {
      task_id: 'the task, where one was asked for',
      session_id: 'the session, where one was asked for',
    },
    rules: [
      'Exactly one of `task_id` and `session_id` is needed.',
      'It never stops at the first break. A broken chain is a successful answer with `chain_valid: false`.',
    ],
    errors: ['ERR_NOT_FOUND'],
  },
  audit_session_start: {
    input: {
      task_id: 'the task whose records are collected',
      auditor_id: 'who is responsible for the session; not blank',
      reason: 'why it is opened',
      scope: '`deep` also covers the tasks below; `shallow` unless said otherwise',
    },
    rules: [
      'A task has at most one open session.',
      'The session notes which skills were in force, with their digests.',
    ],
    errors: ['ERR_TASK_NOT_FOUND', 'ERR_SESSION_EXISTS'],
  },
  merkle_finalize: {
    input: { session_id: 'the session to seal', task_id: 'seal only the records of this task' },
    rules: ['A sealed session takes nothing more and is never opened again.'],
    errors: ['ERR_SESSION_NOT_FOUND', 'ERR_TASK_NOT_FOUND', 'ERR_ALREADY_FINALIZED', 'ERR_NO_RECORDS'],
  },
  merkle_root: {
    input: { session_id: 'the session' },
    rules: ['Of a session that is still open it is the root so far.'],
    errors: ['ERR_SESSION_NOT_FOUND', 'ERR_NOT_FINALIZED'],
  },
  skill_list: {
    input: {
      search: 'a part of the name or the description, in any case',
      capability: 'exactly this capability',
      limit: 'size of the page; 50 unless said otherwise',
      offset: 'how many to leave out from the front',
    },
    output: {
      skills: 'the skills that match, by name',
      'skills[].name': 'name of the skill',
      'skills[].version': 'as its file says; `0.0.0` where it says none',
      'skills[].description': 'when to use it',
      'skills[].capabilities': 'as its file lists them',
      'skills[].path': 'its `SKILL.md`, from the workspace',
      'skills[].digest': 'SHA-256 over everything in its folder, by [this formula](skills.md#digest)',
      total_count: 'how many match',
    },
    rules: [
      'Disk is the truth: every answer is about the files as they are now.',
      'A page is kept within 30,000 bytes, so it may be shorter than `limit`. The next one begins at `offset` plus the number returned.',
    ],
    errors: [],
  },
  server_ping: { input: {}, errors: [] },
  server_health: {
    input: {},
    output: { status: '`degraded` where something keeps it from working as configured' },
    errors: [],
  },
};

/** Fields that mean the same wherever they are answered. */
const OUTPUTS = {
  task_id: 'id of the task',
  status: 'where the task stands',
  created_at: 'when it was created',
  created_by: 'who created it, as claimed',
  updated_at: 'when it was last changed',
  updated_by: 'who last changed it, as claimed',
  sequence: 'its number within the project',
  workflow: 'the workflow it keeps',
  progress: 'percent done',
  title: 'what is to be done',
  description: 'the details',
  project: 'where it belongs',
  priority: 'how urgent it is',
  assignee: 'who does it',
  labels: 'its tags',
  estimate_hours: 'planned effort',
  parent_id: 'the task it is a part of',
  blocked_reason: 'what it waits for',
  type: 'kind of work, or of thought',
  proof_grade: 'whether finishing needs a sealed session',
  depends_on: 'tasks it waits for',
  dependencies_unmet: 'how many children and dependencies are not ended',
  status_since: 'when it got this status',
  status_by: 'who gave it this status, as claimed',
  thought_trail: 'ids of its thoughts, oldest first; on request',
  dependents: 'ids of its children; on request',
  tasks: 'one page of tasks',
  total_count: 'how many match in all',
  returned_count: 'how many are in this answer',
  offset: 'how many were skipped',
  limit: 'size of the page',
  next_actions: 'what to do next, in order',
  yours: 'tasks that this agent holds; go on with them first',
  abandoned: 'tasks of others whose holder is gone, or silent for `COLIBRI_LEASE_MINUTES`',
  hint: 'where nothing is ready: what there is, and the call that brings something forward',
  holder: 'who holds it, where somebody does',
  held_by: 'the actor, as claimed',
  since: 'since when it is held',
  last_seen: 'when the holder last made a call; a person at the command line is not looked for',
  present: 'whether the holder’s process is there; one that cannot be seen counts as present',
  'holder.abandoned': 'whether the holder is gone, or silent for `COLIBRI_LEASE_MINUTES`',
  history: 'the calls on it; on request',
  history_total: 'how many calls there are; on request',
  blocked: 'blocked tasks; on request',
  thought_id: 'id of the thought',
  hash: 'its hash',
  previous_hash: 'hash of the thought before it on this task; `null` for the first',
  recorded_at: 'when it was recorded',
  recorded_by: 'who recorded it, as claimed',
  chain_position: 'its number on this task',
  session_id: 'the session it is bound to',
  thought_count: 'how many match in all',
  thoughts: 'one page of thoughts, oldest first',
  content: 'the thought itself',
  branch: 'git branch',
  commit_sha: 'git commit',
  observed: 'which of `branch` and `commit_sha` the server read from the repository itself',
  tests_run: 'tests that were run',
  blockers: 'what stands in the way',
  metadata: 'as it was sent',
  chain_valid: 'whether nothing was found',
  invalid_links: 'positions at which something was found',
  total_records: 'how many records were checked',
  integrity_score: 'percent of records nothing was found against',
  broken_links: 'everything that was found',
  position: 'number of the record in the walk, from 1; 0 for the task or session itself',
  record: 'the record by its id; `#12` is an audit row',
  what: 'what is wrong, in a sentence',
  columns: 'the columns that are wrong, where that can be told',
  erased: 'true where the owner has erased the text',
  expected_hash: 'what the hash should be',
  actual_hash: 'what it is',
  verified_at: 'when this was checked',
  trace: 'every record with its hash; on request',
  auditor_id: 'who is responsible for the session',
  started_at: 'when it was opened',
  scope: 'what it covers',
  merkle_root: 'root of the tree over its records, in hex',
  tree_depth: 'levels of the tree, the leaves counted as one',
  leaf_count: 'how many records were sealed',
  finalized_at: 'when it was sealed',
  frozen: 'always',
  is_finalized: 'whether it is sealed',
  as_of: 'when it was sealed, or when the last record joined',
  skipped: 'what is not in force, and why',
  path: 'where it lies',
  reason: 'why',
  version: 'version of Colibri',
  mode: 'the mode it runs in',
  uptime_ms: 'milliseconds since the start',
  timestamp: 'time of the server',
  db: 'the database',
  'db.open': 'whether one is open',
  'db.user_version': 'version of the schema',
  'db.path': 'the file',
  'db.schema': 'the schema in words',
  'db.engine': 'library and version',
  'db.journal': 'how it writes',
  'db.writable': 'whether it can be written',
  'db.reason': 'why it is not open',
  log: 'the signed log, where there is one',
  'log.origin': 'name of the log',
  'log.signed_through': 'audit rows covered by the newest checkpoint',
  'log.refused': 'why nothing is signed any more',
  'log.keys': 'the verifier keys that sign it',
  middleware: 'the way of a call',
  'middleware.stages': 'the five stages in order',
  batches: 'how calls shared their commits since the start',
  'batches.calls': 'calls that were taken from the queue',
  'batches.commits':
    'commits of their audit rows; without batches, a call that writes takes two and any other one',
  'batches.largest': 'calls of the largest batch',
  'batches.longest_wait_ms': 'longest wait of a call before it was taken',
  tools: 'the surface',
  'tools.registered': 'how many tools this mode admits',
  'tools.names': 'which ones',
  process: 'the server process',
  'process.pid': 'its number',
  'process.memory_bytes': 'memory it holds',
  skills: 'the skills folders',
  'skills.loaded': 'skills in force',
  'skills.skipped': 'files that are not',
  'skills.reasons': 'the first of them with the file and why; `skill_list` names all',
};

/** Codes that any call can be answered with. */
export const ANY_CALL = [
  'INVALID_PARAMS',
  'HANDLER_ERROR',
  'AUDIT_ENTER_FAILED',
  'TOOL_NOT_ADMITTED',
  'ERR_INIT_FAILED',
  'ERR_STORAGE_FULL',
  'ERR_STORAGE_BUSY',
  'ERR_STORAGE_UNCERTAIN',
];

/** Codes that end the program before it serves anything. */
export const AT_START = ['ERR_CONFIG_INVALID', 'ERR_INVALID_MODE'];

const missing = new Set();

/** Fields and codes the pages asked for and nobody has written a sentence about. */
export function missingSentences() {
  return [...missing];
}

export function meaningOfInput(tool, path) {
  return TOOLS[tool]?.input[path] ?? absent(`input ${path} of ${tool}`);
}

export function meaningOfOutput(tool, path) {
  const last = path.split('.').at(-1) ?? path;
  return TOOLS[tool]?.output?.[path] ?? OUTPUTS[path] ?? OUTPUTS[last] ?? absent(`output ${path} of ${tool}`);
}

export function rulesOf(tool) {
  return TOOLS[tool]?.rules ?? [];
}

export function errorsOf(tool) {
  if (TOOLS[tool] === undefined) absent(`errors of ${tool}`);
  return TOOLS[tool]?.errors ?? [];
}

function absent(what) {
  missing.add(what);
  return '';
}
