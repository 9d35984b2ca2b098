/** A short story told with real calls, so that every example in the reference is an answer the code gave. */
const STORY = [
  {
    tool: 'task_create',
    args: {
      title: 'Limit login attempts',
      project: 'web-shop',
      description: 'Ten failures in a minute lock the form for five.',
      priority: 'high',
      labels: ['security'],
      estimate_hours: 3,
      proof_grade: true,
    },
  },
  {
    tool: 'task_create',
    args: { title: 'Show the remaining wait', project: 'web-shop', depends_on: ['T-0001'] },
    aside: true,
  },
  { tool: 'task_update', args: { task_id: 'T-0001', status: 'todo' }, aside: true },
  { tool: 'task_update', args: { task_id: 'T-0002', status: 'todo' }, aside: true },
  { tool: 'task_next_actions', args: { project: 'web-shop', limit: 5 } },
  { tool: 'task_update', args: { task_id: 'T-0001', status: 'in_progress', assignee: 'ana' } },
  {
    tool: 'audit_session_start',
    args: { task_id: 'T-0001', auditor_id: 'ana', reason: 'Release review', scope: 'shallow' },
  },
  {
    tool: 'thought_record',
    args: {
      task_id: 'T-0001',
      type: 'decision',
      content: 'Count failures per account, not per address: offices share one address.',
      tests_run: ['login.test.ts'],
    },
  },
  { tool: 'thought_record_list', args: { task_id: 'T-0001', verify_chain: true } },
  { tool: 'task_list', args: { project: 'web-shop', search: 'login', limit: 10 } },
  { tool: 'task_get', args: { task_id: 'T-0001', include_thought_trail: true } },
  { tool: 'merkle_root', args: { session_id: 'A-0001' } },
  { tool: 'merkle_finalize', args: { session_id: 'A-0001' } },
  { tool: 'audit_verify_chain', args: { session_id: 'A-0001', full_trace: true } },
  { tool: 'skill_list', args: { search: 'review' } },
  { tool: 'server_ping', args: {} },
  { tool: 'server_health', args: {} },
  { error: 'transition', tool: 'task_update', args: { task_id: 'T-0001', status: 'in_progress' } },
  {
    error: 'missing',
    tool: 'thought_record',
    args: { task_id: 'T-0009', type: 'risk', content: 'The lock can be used to lock others out.' },
  },
  { error: 'rejected', tool: 'task_create', args: { title: 'Tell the user', projekt: 'web-shop' } },
];

const START_MS = Date.UTC(2026, 0, 5, 9, 0, 0);
const STEP_MS = 60_000;
const ACTOR = 'ana';
const DIGEST = '5f1a7d0c'.repeat(8);

/** What each tool answered, and three errors as a client gets them. Tools the story does not call have no example. */
export async function runExamples(source) {
  const clock = storyClock();
  const storage = await source.openSqlite({ path: ':memory:' });
  // Filled below: health lists the tools that the catalogue is just about to make.
  const names = [];
  const tools = new Map(source.catalogue(storyDeps(source, clock, names)).map((tool) => [tool.name, tool]));
  names.push(...tools.keys());
  const sink = source.createAuditLog({ storage, clock, process: 'story', keeper: source.UNSIGNED });
  const { call } = source.composeCall({
    tools,
    clock,
    source: 'mcp',
    admission: { mode: 'FULL', degraded: () => undefined },
    log: () => undefined,
    ready: async () => ({ storage, sink }),
  });

  const answers = new Map();
  const errors = {};
  for (const { tool, args, error, aside } of STORY) {
    if (!tools.has(tool)) continue;
    clock.step();
    const envelope = await call(tool, args, ACTOR);
    if (error !== undefined) errors[error] = { tool, args, envelope };
    else if (!isSuccess(envelope))
      throw new Error(`the example of ${tool} failed: ${JSON.stringify(envelope)}`);
    else if (aside !== true) answers.set(tool, { args, data: withoutThisProcess(envelope.data) });
  }
  await storage.close();
  return { tools: [...tools.values()], answers, errors };
}

function isSuccess({ ok, data }) {
  return ok && data.ok !== false;
}

/** Time moves only between calls and chance is a counter: the same code always tells the same story. */
function storyClock() {
  let now = START_MS;
  let drawn = 0;
  const digits = (count) => {
    drawn += 1;
    return String(drawn).padStart(count, '0');
  };
  return {
    step: () => {
      now += STEP_MS;
    },
    now: () => now,
    monotonic: () => now,
    uuid: () => `00000000-0000-4000-8000-${digits(12)}`,
    salt: () => digits(32),
  };
}

/** Stands in for everything the composition root gives the domains. What is not named here answers like a skill registry. */
function storyDeps(source, clock, names) {
  const skill = {
    name: 'code-review',
    version: '1.2.0',
    description: 'Review a change before it is merged.',
    capabilities: ['review'],
    path: '.agents/skills/code-review/SKILL.md',
    digest: DIGEST,
  };
  const registry = {
    list: async () => ({ skills: [skill], skipped: [] }),
    inForce: async () => [{ name: skill.name, digest: skill.digest }],
  };
  const known = {
    system: {
      version: '0.2.0',
      mode: 'FULL',
      uptimeMs: () => clock.now() - START_MS,
      now: () => clock.now(),
      storage: () => ({
        path: '/path/to/project/.colibri/colibri.db',
        schemaVersion: 7,
        engine: 'SQLite 3.53.4 (@photostructure/sqlite)',
        journal: 'wal',
        writable: true,
      }),
      degraded: () => undefined,
      batches: () => ({ calls: 40, commits: 22, largest: 12, longest_wait_ms: 9 }),
      log: () => ({
        origin: 'colibri/3f0c2b7a9d1e48563f0c2b7a9d1e4856',
        signedThrough: 26,
        refused: undefined,
        keys: [
          'colibri/3f0c2b7a9d1e48563f0c2b7a9d1e4856+5f1a7d0c+AVixi8EbGZ0rM0vT9d1sQm0vTqk1h8Jc5tE3uYw2bX4L',
        ],
      }),
      signers: async () => undefined,
      toolNames: () => names,
      skills: registry.list,
    },
    tasks: { project: undefined, projects: undefined, workflow: 'kanban' },
    trail: {
      gitEvidence: async () => ({
        branch: 'login-limit',
        commit_sha: '9fceb02d0ae598e95dc970b74767f19372d61af8',
      }),
      verifyChain: (tx, subject, options) => source.verifyChain(tx, subject, { ...options, clock }),
    },
    proof: { skillsInForce: registry.inForce },
  };
  return new Proxy(known, { get: (deps, name) => deps[name] ?? registry });
}

/** The few numbers that belong to the process that wrote the page, not to the example. */
function withoutThisProcess(data) {
  return data.process === undefined ? data : { ...data, process: { pid: 4711, memory_bytes: 61_865_984 } };
}
