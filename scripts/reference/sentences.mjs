/**
 * What a schema cannot say: the meaning of each field, the rules between fields, and the codes a tool answers with.
 * Everything else on the pages comes from the code.
 */
const TOOLS = {
  task_create: {
    input: {
      title: 'what to do, in one line',
      project: 'its project; a new name creates a project, unless `COLIBRI_PROJECTS` is set',
      description: 'the details; Markdown is stored as sent',
      parent_id: 'the parent task, which then waits for this one',
      priority: 'default: `normal`',
      labels: 'free tags; duplicates are removed',
      assignee: 'default: `unassigned`',
      estimate_hours: 'planned effort',
      type: 'kind of work',
      proof_grade: '`true`: thoughts need an open session, and finishing needs a sealed one',
      workflow: 'default: `COLIBRI_WORKFLOW`; cannot be changed later',
      depends_on: 'tasks that must be finished before this one is ready',
    },
    errors: ['ERR_PROJECT_NOT_FOUND', 'ERR_TASK_NOT_FOUND', 'ERR_CIRCULAR_DEPENDENCY'],
  },
  task_get: {
    input: {
      task_id: 'the task',
      include_thought_trail: '`true`: the ids of its thoughts, oldest first',
      include_dependents: '`true`: the ids of its children',
      include_history: '`true`: the calls on it, newest first, including refused ones',
    },
    output: {
      'history[].position': 'the `exit` row of the call',
      'history[].at': 'when',
      'history[].actor': 'who, as claimed',
      'history[].tool': 'which tool',
      'history[].outcome': 'how it ended, as in the log',
      'history[].error_code': 'why it was refused',
      'history[].message': 'the error message',
      'history[].args': 'the arguments; long texts are shortened',
      'history[].previous_status': 'the status before',
      'history[].taken_over_from': 'who held the task before',
    },
    rules: [
      'Fields without a value are left out of the answer.',
      '`history` contains at most 50 calls; `history_total` is the number of all calls.',
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
      blocked_reason: 'what it waits for; required with `status: "blocked"`',
      estimate_hours: 'planned effort',
      depends_on: 'replaces all dependencies',
      takeover: '`true`: take the task over from its holder; without a new `status`, the task does not move',
    },
    output: {
      previous_status: 'the previous status; only if `status` was sent',
      taken_over_from: 'who held the task before this call, if someone else did',
      warnings: 'what was done as asked but may not be what you meant',
    },
    rules: [
      'At least one field besides `task_id` is required. Fields that are not sent keep their values, so two agents can change different fields without losing a change.',
      'A step that the workflow does not allow is refused, and so is the status the task already has. A second agent that claims the task is therefore told who holds it and since when.',
      'The agent that moves a task to `in_progress`, or a pipeline task out of `INIT`, holds it. Others, and other running processes of the same agent, then get `ERR_TASK_HELD` if they change the status. The same agent can do so after its process ended, the `assignee` can, and anyone can with `takeover`. See [several agents](../guides/several-agents.md#who-holds-a-task).',
      'Finishing (`done`, `DONE`) needs a recorded thought; a `proof_grade` task also needs a sealed session. It sets `progress` to 100.',
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
      project: 'only this project; default: `COLIBRI_PROJECT`, or all',
      status: 'any of these',
      priority: 'any of these',
      assignee: 'only tasks of this agent or person',
      label: 'only tasks with this label',
      created_after: 'an ISO-8601 date or time in any zone',
      created_before: 'an ISO-8601 date or time in any zone',
      search: 'words or beginnings of words in the title and description; all must match',
      limit: 'size of the page; default: 50',
      offset: 'how many to skip',
      sort_by: 'default: `updated`',
      sort_order: 'default: `desc`',
    },
    errors: [],
  },
  task_next_actions: {
    input: {
      project: 'only this project; default: `COLIBRI_PROJECT`, or all',
      limit: 'default: 20',
      include_blocked: '`true`: blocked tasks too, with their reasons',
    },
    output: {
      project: 'the project that was searched; `*` for all',
      count: 'how many next actions are in this answer',
      'next_actions[].status': 'the status of a pipeline task; kanban tasks are in `todo`',
    },
    rules: [
      'Lists kanban tasks in `todo` and unfinished pipeline tasks; a pipeline task that has started is listed only for its holder. Tasks that wait for nothing come first, then by priority, then by age.',
      '`yours` and `abandoned` contain at most `limit` tasks each. `yours` includes tasks from an earlier process of this agent.',
    ],
    errors: ['ERR_PROJECT_NOT_FOUND'],
  },
  thought_record: {
    input: {
      task_id: 'the task the thought is about',
      type: 'kind of thought',
      content: 'the thought',
      branch: 'git branch; default: read from the workspace',
      commit_sha: 'git commit; default: read from the workspace',
      tests_run: 'tests that were run',
      blockers: 'obstacles',
      metadata:
        'any JSON object of at most 16,384 bytes, or its text; `tools/list` asks for text, because strict clients refuse objects with unknown fields',
      session_id: 'the session it belongs to; default: the task’s open session, if any',
    },
    output: {},
    rules: [
      'A named session must be open and must cover the task.',
      'A `proof_grade` task accepts thoughts only while a session that covers it is open.',
      'A thought cannot be edited or removed.',
    ],
    errors: ['ERR_TASK_NOT_FOUND', 'ERR_SESSION_NOT_FOUND', 'ERR_SESSION_REQUIRED', 'ERR_ALREADY_FINALIZED'],
  },
  thought_record_list: {
    input: {
      task_id: 'the thoughts of this task',
      session_id: 'the thoughts among the records of this session',
      type: 'only this kind',
      limit: 'size of the page; default: 100',
      offset: 'how many to skip',
      verify_chain: '`true`: check every hash and link of the whole chain, not only of this page',
    },
    output: {
      task_id: 'the task, if one was given',
      session_id: 'the session, if one was given',
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
      task_id: 'the task, if one was given',
      session_id: 'the session, if one was given',
    },
    rules: [
      'Give exactly one of `task_id` and `session_id`.',
      'It lists every break, not only the first. A broken chain is a successful answer with `chain_valid: false`.',
    ],
    errors: ['ERR_NOT_FOUND'],
  },
  audit_session_start: {
    input: {
      task_id: 'the task whose records are collected',
      auditor_id: 'who will check the work; not blank',
      reason: 'why the session is opened',
      scope: '`deep` also covers descendants; default: `shallow`',
    },
    rules: [
      'A task has at most one open session.',
      'The session records which skills were in force, with their digests.',
    ],
    errors: ['ERR_TASK_NOT_FOUND', 'ERR_SESSION_EXISTS'],
  },
  merkle_finalize: {
    input: { session_id: 'the session to seal', task_id: 'seal only the records of this task' },
    rules: ['A sealed session accepts no more records and cannot be reopened.'],
    errors: ['ERR_SESSION_NOT_FOUND', 'ERR_TASK_NOT_FOUND', 'ERR_ALREADY_FINALIZED', 'ERR_NO_RECORDS'],
  },
  merkle_root: {
    input: { session_id: 'the session' },
    rules: ['For an open session, it is the root so far.'],
    errors: ['ERR_SESSION_NOT_FOUND', 'ERR_NOT_FINALIZED'],
  },
  skill_list: {
    input: {
      search: 'part of the name or description, ignoring case',
      capability: 'exactly this capability',
      limit: 'size of the page; default: 50',
      offset: 'how many to skip',
    },
    output: {
      skills: 'the skills that match, by name',
      'skills[].name': 'name of the skill',
      'skills[].version': 'from its file; `0.0.0` if the file gives none',
      'skills[].description': 'when to use it',
      'skills[].capabilities': 'from its file',
      'skills[].path': 'its `SKILL.md`, relative to the workspace',
      'skills[].digest': 'SHA-256 over everything in its folder, by [this formula](skills.md#digest)',
      total_count: 'how many match',
    },
    rules: [
      'The files are read for every call, so the answer is current.',
      'A page has at most 30,000 bytes, so it may be shorter than `limit`. The next page starts at `offset` plus the number returned.',
    ],
    errors: [],
  },
  server_ping: { input: {}, errors: [] },
  server_health: {
    input: {},
    output: { status: '`degraded` if something does not work as configured' },
    errors: [],
  },
};

/** Fields that mean the same wherever they are answered. */
const OUTPUTS = {
  task_id: 'id of the task',
  status: 'current status',
  created_at: 'when it was created',
  created_by: 'who created it, as claimed',
  updated_at: 'when it was last changed',
  updated_by: 'who last changed it, as claimed',
  sequence: 'its number within the project',
  workflow: 'its workflow',
  progress: 'percent done',
  title: 'what to do',
  description: 'the details',
  project: 'its project',
  priority: 'how urgent it is',
  assignee: 'who does it',
  labels: 'its tags',
  estimate_hours: 'planned effort',
  parent_id: 'the parent task',
  blocked_reason: 'what it waits for',
  type: 'kind of work, or of thought',
  proof_grade: 'whether finishing needs a sealed session',
  depends_on: 'tasks it waits for',
  dependencies_unmet: 'how many children and dependencies are not finished',
  status_since: 'when it got this status',
  status_by: 'who set this status, as claimed',
  thought_trail: 'ids of its thoughts, oldest first; on request',
  dependents: 'ids of its children; on request',
  tasks: 'one page of tasks',
  total_count: 'how many match in all',
  returned_count: 'how many are in this answer',
  offset: 'how many were skipped',
  limit: 'size of the page',
  next_actions: 'what to do next, in order',
  yours: 'tasks that this agent holds; continue them first',
  abandoned: 'tasks of others whose holder is gone, or silent for `COLIBRI_LEASE_MINUTES`',
  hint: 'if nothing is ready: why, and which call to make',
  holder: 'who holds it, if anyone',
  held_by: 'the actor, as claimed',
  since: 'since when the holder has had it',
  last_seen:
    'when the holder last made a call, give or take a second; absent for a person at the command line',
  present: 'whether the holder’s process is running; a process that cannot be seen counts as running',
  'holder.abandoned': 'whether the holder is gone, or silent for `COLIBRI_LEASE_MINUTES`',
  history: 'the calls on it; on request',
  history_total: 'how many calls there are; on request',
  blocked: 'blocked tasks; on request',
  thought_id: 'id of the thought',
  hash: 'its hash',
  previous_hash: 'hash of the previous thought on this task; `null` for the first',
  recorded_at: 'when it was recorded',
  recorded_by: 'who recorded it, as claimed',
  chain_position: 'its number on this task',
  session_id: 'the session it belongs to',
  thought_count: 'how many match in all',
  thoughts: 'one page of thoughts, oldest first',
  content: 'the thought itself',
  branch: 'git branch',
  commit_sha: 'git commit',
  observed: 'which of `branch` and `commit_sha` the server read from the repository',
  tests_run: 'tests that were run',
  blockers: 'obstacles',
  metadata: 'as it was sent',
  chain_valid: 'whether everything is intact',
  invalid_links: 'positions with a finding',
  total_records: 'how many records were checked',
  integrity_score: 'percentage of records without a finding',
  broken_links: 'every finding',
  position: 'number of the record, starting at 1; 0 for the task or session itself',
  record: 'the record by its id; `#12` is an audit row',
  what: 'what is wrong, in a sentence',
  columns: 'the columns that are wrong, if known',
  erased: 'true if the owner has erased the text',
  expected_hash: 'what the hash should be',
  actual_hash: 'what it is',
  verified_at: 'when this was checked',
  trace: 'every record with its hash; on request',
  auditor_id: 'who will check the work',
  started_at: 'when it was opened',
  scope: 'what it covers',
  merkle_root: 'root of the tree over its records, in hex',
  tree_depth: 'levels of the tree, including the leaves',
  leaf_count: 'how many records were sealed',
  finalized_at: 'when it was sealed',
  frozen: 'always',
  is_finalized: 'whether it is sealed',
  as_of: 'when it was sealed, or when the last record joined',
  skipped: 'what is not in force, and why',
  path: 'its path',
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
  'db.journal': 'journal mode',
  'db.writable': 'whether it can be written',
  'db.reason': 'why it is not open',
  log: 'the signed log, if there is one',
  'log.origin': 'name of the log',
  'log.signed_through': 'audit rows covered by the newest checkpoint',
  'log.refused': 'why nothing is signed any more',
  'log.keys': 'the verifier keys that sign it',
  'log.signed_by': 'on a server: the keys of all machines that signed its rows',
  'log.signed_by[].key': 'verifier key of a machine',
  'log.signed_by[].through': 'audit rows covered by its newest checkpoint',
  'log.signed_by[].vouched': 'whether somebody has vouched for it, or the log is named after it',
  middleware: 'how calls are processed',
  'middleware.stages': 'the five stages in order',
  batches: 'how calls shared their commits since the start',
  'batches.calls': 'calls that were taken from the queue',
  'batches.commits':
    'commits of their audit rows, without the batch of this call; a writing call that comes alone takes two, and so does a verification, any other call one; a batch takes one more for each 10 ms that its calls run',
  'batches.largest': 'calls of the largest batch',
  'batches.longest_wait_ms': 'longest time that a call waited',
  tools: 'the tools',
  'tools.registered': 'how many tools this mode allows',
  'tools.names': 'their names',
  process: 'the server process',
  'process.pid': 'its process id',
  'process.memory_bytes': 'its memory',
  skills: 'the skills folders',
  'skills.loaded': 'skills in force',
  'skills.skipped': 'files that were skipped',
  'skills.reasons': 'the first skipped files with reasons; `skill_list` lists all',
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
