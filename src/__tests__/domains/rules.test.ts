import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joiningTools, ownerTools } from '../../domains/owner/tools.ts';
import { proofTools } from '../../domains/proof/tools.ts';
import { ask, type Lookup, type Steps, settle, settleAsync } from '../../domains/rule.ts';
import { RULES } from '../../domains/rules.ts';
import { taskTools } from '../../domains/tasks/tools.ts';
import { ARROWS } from '../../domains/tasks/workflows.ts';
import { trailTools } from '../../domains/trail/tools.ts';
import { treeRoot } from '../../integrity/tree.ts';
import { RULES_VERSION } from '../../log/row.ts';
import { STATE_TABLES } from '../../log/tables.ts';
import { trials } from '../tasks/trials.ts';
import { type Circumstances, type Ruled, World } from './world.ts';

const KANBAN = { project: 'p', workflow: 'kanban' };
const DIGEST = expect.stringMatching(/^[0-9a-f]{64}$/);

const created = (more: object = {}) => ['task_create', { title: 'a', ...KANBAN, ...more }] as const;
const moved = (task: number, ...path: readonly string[]) =>
  path.map((status) => ['task_update', { task_id: idOf(task), status, ...reasonFor(status) }] as const);
const thought = (task: number, more: object = {}) =>
  ['thought_record', { task_id: idOf(task), type: 'plan', content: 'why', ...more }] as const;
const opened = (task: number, more: object = {}) =>
  ['audit_session_start', { task_id: idOf(task), auditor_id: 'eve', ...more }] as const;
const sealed = (session: number, more: object = {}) =>
  ['merkle_finalize', { session_id: `A-000${session}`, ...more }] as const;

function idOf(task: number): string {
  return `T-${String(task).padStart(4, '0')}`;
}

function reasonFor(status: string): object {
  return status === 'blocked' ? { blocked_reason: 'waits' } : {};
}

/** The rows of a ruling by table, or an error for a refusal. */
function written(ruled: Ruled, table: string): object[] {
  if (ruled.code !== undefined) throw new Error(ruled.message);
  return ruled.rows.filter((one) => one.table === table).map(({ row }) => row);
}

describe('the rules', () => {
  const writing = [
    ...taskTools({ project: undefined, projects: undefined, workflow: 'kanban', leaseMinutes: 30 }),
    ...trailTools({
      gitEvidence: async () => undefined,
      verifyChain: () => Promise.reject(new Error('not asked for')),
    }),
    ...proofTools({ skillsInForce: async () => [] }),
    ...ownerTools(),
    ...joiningTools(),
  ].flatMap((tool) => (tool.effect === 'writes' ? [tool] : []));

  test('are those of the tools that write, no more and no less', () => {
    expect(Object.keys(RULES[RULES_VERSION] ?? {}).sort()).toEqual(writing.map(({ name }) => name).sort());
  });

  test.each(writing.map((tool) => [tool.name, tool] as const))(
    'of %s name texts that its tool takes',
    (name, tool) => {
      const { texts = [] } = RULES[RULES_VERSION]?.[name] ?? {};

      expect(tool.texts).toEqual(texts);
      expect(Object.keys(tool.input.shape)).toEqual(expect.arrayContaining([...texts]));
    },
  );

  test('fill every column that holds a text from an argument that is one', () => {
    const columns = STATE_TABLES.flatMap(({ texts }) => texts);
    const given = Object.values(RULES[RULES_VERSION] ?? {}).flatMap(({ texts }) => texts);

    expect(given).toEqual(expect.arrayContaining(columns));
  });

  test('ask for several things at once, and get each answer under its name', async () => {
    function* rule(): Steps<unknown> {
      const { one, other } = yield* ask({ one: ['nextId', 'tasks'], other: ['nextSequence', 'p'] });
      const { last } = yield* ask({ last: ['nextId', 'sessions'] });
      return [one, other, last];
    }
    const numbers = { nextId: (table: string) => table.length, nextSequence: () => 7 };

    expect(settle(rule(), numbers as unknown as Lookup)).toEqual([5, 7, 8]);
    expect(await settleAsync(rule(), numbers as never)).toEqual([5, 7, 8]);
  });
});

describe('task_create', () => {
  test('writes one row, with a digest in the place of each text and one time', async () => {
    const world = await World.make();

    const ruled = await world.run('task_create', {
      title: 'a',
      description: 'b',
      labels: ['y', 'x', 'y'],
      ...KANBAN,
    });

    expect(written(ruled, 'tasks')).toEqual([
      expect.objectContaining({
        ...{ id: 1, sequence: 1, title: DIGEST, description: DIGEST, blocked_reason: null },
        ...{ status: 'backlog', labels: '["y","x"]', depends_on: '[]', progress: 0, assignee: 'unassigned' },
        ...{ created_by: 'ada', status_by: 'ada', updated_by: 'ada', held_by: null, position: 2 },
      }),
    ]);
    const [task] = written(ruled, 'tasks') as Record<string, string>[];
    expect(new Set([task?.created_at, task?.updated_at, task?.status_since]).size).toBe(1);
  });

  test('counts globally and in its project', async () => {
    const world = await World.make();
    await world.played(created(), created({ project: 'q' }));

    expect(await world.played(created())).toMatchObject({ task_id: 'T-0003', sequence: 2 });
  });

  test.each<[what: string, args: object, outside: Circumstances['outside'], code: string]>([
    ['a parent that is not there', { parent_id: 'T-0009' }, {}, 'ERR_TASK_NOT_FOUND'],
    ['a parent that is no id', { parent_id: 'T-1' }, {}, 'ERR_TASK_NOT_FOUND'],
    ['a dependency that is not there', { depends_on: ['T-0001', 'T-0009'] }, {}, 'ERR_TASK_NOT_FOUND'],
    [
      'a dependency on its parent',
      { parent_id: 'T-0001', depends_on: ['T-0001'] },
      {},
      'ERR_CIRCULAR_DEPENDENCY',
    ],
    [
      'a dependency on what its parent waits behind',
      { parent_id: 'T-0001', depends_on: ['T-0002'] },
      {},
      'ERR_CIRCULAR_DEPENDENCY',
    ],
    ['a project that the owner has not named', {}, { projects: ['q'] }, 'ERR_PROJECT_NOT_FOUND'],
  ])('refuses %s', async (_, args, outside, code) => {
    const world = await World.make();
    await world.played(created(), created({ depends_on: ['T-0001'] }));

    const ruled = await world.run('task_create', { title: 'b', ...KANBAN, ...args }, { outside });

    expect(ruled.code).toBe(code);
  });

  test('is a change of every deep session above it, and of no shallow one', async () => {
    const world = await World.make();
    await world.played(created(), created({ parent_id: 'T-0001' }), opened(1, { scope: 'deep' }), opened(2));

    const ruled = await world.run('task_create', { title: 'b', ...KANBAN, parent_id: 'T-0002' });

    expect(written(ruled, 'session_records')).toMatchObject([{ session_id: 1, kind: 'change', task_id: 3 }]);
  });
});

describe('task_update', () => {
  test('changes what was asked and nothing else, and says who wrote the row before', async () => {
    const world = await World.make();
    await world.played(created({ estimate_hours: 2 }));

    const ruled = await world.run('task_update', { task_id: 'T-0001', progress: 5 }, { actor: 'bob' });

    expect(written(ruled, 'tasks')).toMatchObject([
      { progress: 5, estimate_hours: 2, status_by: 'ada', updated_by: 'bob', created_by: 'ada', position: 4 },
    ]);
    expect(ruled).toMatchObject({ rows: [{ previous: 2 }] });
  });

  test.each(
    Object.entries(ARROWS).flatMap(([workflow, arrows]) =>
      Object.keys(arrows).map((status) => [workflow as keyof typeof ARROWS, status] as const),
    ),
  )('of a %s task in %s allows the arrows of the table and no other', async (workflow, status) => {
    const path = pathTo(workflow, status);
    const arrows: Readonly<Record<string, readonly string[]>> = ARROWS[workflow];
    const all = Object.values(ARROWS).flatMap((one) => Object.keys(one));

    for (const to of all) {
      const world = await World.make();
      await world.played(created({ workflow }), thought(1), ...moved(1, ...path));
      const ruled = await world.run('task_update', { task_id: 'T-0001', status: to, ...reasonFor(to) });

      if (arrows[status]?.includes(to)) expect(written(ruled, 'tasks')).toMatchObject([{ status: to }]);
      else expect(ruled.code, `${status} to ${to}`).toBe('ERR_INVALID_TRANSITION');
    }
  });

  test.each<[what: string, circumstances: Circumstances, held: object]>([
    ['an agent', { actor: 'bob' }, { held_by: 'bob', held_process: 'p' }],
    ['a person at the command line', { actor: 'eve', source: 'cli' }, { held_by: 'eve', held_process: null }],
  ])('to in_progress makes %s its holder, until it leaves there', async (_, circumstances, held) => {
    const world = await World.make();
    await world.played(created(), ...moved(1, 'todo'));

    const taken = await world.run('task_update', { task_id: 'T-0001', status: 'in_progress' }, circumstances);
    const left = await world.run('task_update', { task_id: 'T-0001', status: 'review' }, circumstances);

    expect(written(taken, 'tasks')).toMatchObject([{ ...held, held_since: '2026-01-01T00:00:00.006Z' }]);
    expect(written(left, 'tasks')).toMatchObject([{ held_by: null, held_process: null, held_since: null }]);
  });

  test('holds a pipeline task from its first step to its end', async () => {
    const world = await World.make();
    await world.played(created({ workflow: 'pipeline' }));

    const first = await world.run('task_update', { task_id: 'T-0001', status: 'GATHER' });
    const second = await world.run('task_update', { task_id: 'T-0001', status: 'ANALYZE' });
    const last = await world.run('task_update', { task_id: 'T-0001', status: 'CANCELLED' });

    const since = '2026-01-01T00:00:00.004Z';
    expect(written(first, 'tasks')).toMatchObject([{ held_by: 'ada', held_since: since }]);
    expect(written(second, 'tasks')).toMatchObject([{ held_by: 'ada', held_since: since }]);
    expect(written(last, 'tasks')).toMatchObject([{ held_by: null }]);
  });

  const REVIEW = ['todo', 'in_progress', 'review'] as const;
  test.each<[what: string, before: readonly (readonly [string, object])[], code: string | undefined]>([
    ['without a thought', [created(), ...moved(1, ...REVIEW)], 'ERR_WRITEBACK_REQUIRED'],
    [
      'with a thought of another task',
      [created(), created(), thought(2), ...moved(1, ...REVIEW)],
      'ERR_WRITEBACK_REQUIRED',
    ],
    ['with a thought', [created(), thought(1), ...moved(1, ...REVIEW)], undefined],
    [
      'of a proof-grade task with its session open',
      [created({ proof_grade: true }), opened(1), thought(1), ...moved(1, ...REVIEW)],
      'ERR_PROOF_REQUIRED',
    ],
    [
      'of a proof-grade task with its session sealed',
      [created({ proof_grade: true }), opened(1), thought(1), sealed(1), ...moved(1, ...REVIEW)],
      undefined,
    ],
    [
      'of a proof-grade task that thought again since',
      [
        created({ proof_grade: true }),
        ...[opened(1), thought(1), sealed(1)],
        created(),
        opened(1),
        ...[thought(1), ...moved(1, ...REVIEW)],
        sealed(2, { task_id: 'T-0001' }),
        opened(1),
      ],
      'ERR_PROOF_REQUIRED',
    ],
    [
      'of a proof-grade task whose deep session above sealed only that of its own task',
      [
        created(),
        created({ proof_grade: true, parent_id: 'T-0001' }),
        ...[opened(1, { scope: 'deep' }), thought(1), thought(2), sealed(1, { task_id: 'T-0001' })],
        ...moved(2, ...REVIEW),
      ],
      'ERR_PROOF_REQUIRED',
    ],
    [
      'of a proof-grade task whose deep session above is sealed',
      [
        created(),
        created({ proof_grade: true, parent_id: 'T-0001' }),
        ...[opened(1, { scope: 'deep' }), thought(2), sealed(1)],
        ...moved(2, ...REVIEW),
      ],
      undefined,
    ],
  ])('to done %s', async (_, before, code) => {
    const world = await World.make();
    await world.played(...before);
    const task = before.some(([, args]) => 'parent_id' in args) ? 2 : 1;

    const ruled = await world.run('task_update', { task_id: idOf(task), status: 'done' });

    expect(ruled.code).toBe(code);
    if (code === undefined)
      expect(written(ruled, 'tasks')).toMatchObject([{ status: 'done', progress: 100 }]);
  });

  test.each<[what: string, args: object, code: string]>([
    ['a task that is not there', { task_id: 'T-0009', progress: 1 }, 'ERR_TASK_NOT_FOUND'],
    ['a dependency that is not there', { task_id: 'T-0001', depends_on: ['T-0009'] }, 'ERR_TASK_NOT_FOUND'],
    ['a dependency on itself', { task_id: 'T-0001', depends_on: ['T-0001'] }, 'ERR_CIRCULAR_DEPENDENCY'],
    [
      'a dependency on what waits for it',
      { task_id: 'T-0001', depends_on: ['T-0003'] },
      'ERR_CIRCULAR_DEPENDENCY',
    ],
  ])('refuses %s', async (_, args, code) => {
    const world = await World.make();
    await world.played(created(), created({ depends_on: ['T-0001'] }), created({ depends_on: ['T-0002'] }));

    expect((await world.run('task_update', args)).code).toBe(code);
  });

  test('warns where a task ends before what it waits for', async () => {
    const world = await World.make();
    await world.played(created(), created({ parent_id: 'T-0001' }), created(), thought(1));
    await world.played(
      ['task_update', { task_id: 'T-0001', depends_on: ['T-0003', 'T-0002'] }],
      ...moved(1, ...REVIEW),
    );

    const { warnings } = await world.played(['task_update', { task_id: 'T-0001', status: 'done' }]);

    expect(warnings).toEqual([expect.stringContaining('2 of its children or dependencies')]);
  });
});

describe('thought_record', () => {
  test('links to the thought before it, and is a record of every session that covers its task', async () => {
    const world = await World.make();
    await world.played(created(), created({ parent_id: 'T-0001' }), opened(1, { scope: 'deep' }), opened(2));
    const first = await world.run(...thought(2));

    const second = await world.run(...thought(2, { session_id: 'A-0001' }));

    const [before] = written(first, 'thoughts') as { hash: string }[];
    expect(written(second, 'thoughts')).toMatchObject([
      { id: 2, chain_position: 2, previous_hash: before?.hash, session_id: 1, observed: '[]' },
    ]);
    expect(written(second, 'session_records')).toMatchObject([
      { id: 3, session_id: 1, kind: 'thought', ref: 2 },
      { id: 4, session_id: 2, kind: 'thought', ref: 2 },
    ]);
  });

  test.each<[what: string, args: object, outside: Circumstances['outside'], row: object]>([
    ['nothing', {}, {}, { branch: null, commit_sha: null, observed: '[]' }],
    [
      'what was seen',
      {},
      { git: { branch: 'main', commit_sha: 'abcdef1' } },
      { branch: 'main', commit_sha: 'abcdef1', observed: '["branch","commit_sha"]' },
    ],
    [
      'what was claimed before what was seen',
      { branch: 'mine', commit_sha: '1234567' },
      { git: { branch: 'main', commit_sha: 'abcdef1' } },
      { branch: 'mine', commit_sha: '1234567', observed: '[]' },
    ],
  ])('keeps %s', async (_, args, outside, row) => {
    const world = await World.make();
    await world.played(created());

    const ruled = await world.run(...thought(1, args), { outside });

    expect(written(ruled, 'thoughts')).toMatchObject([row]);
  });

  test.each<[what: string, args: object, code: string]>([
    ['a task that is not there', { task_id: 'T-0009' }, 'ERR_TASK_NOT_FOUND'],
    ['a session that is not there', { session_id: 'A-0009' }, 'ERR_SESSION_NOT_FOUND'],
    ['a session that is no id', { session_id: 'T-0001' }, 'ERR_SESSION_NOT_FOUND'],
    ['a session of another task', { session_id: 'A-0002' }, 'ERR_SESSION_NOT_FOUND'],
    ['a sealed session', { session_id: 'A-0001' }, 'ERR_ALREADY_FINALIZED'],
    ['a proof-grade task without an open session', { task_id: 'T-0003' }, 'ERR_SESSION_REQUIRED'],
  ])('refuses %s', async (_, args, code) => {
    const world = await World.make();
    await world.played(created(), created(), created({ proof_grade: true }));
    await world.played(opened(1), thought(1), sealed(1), opened(2));

    expect((await world.run(...thought(1, args))).code).toBe(code);
  });
});

describe('a session', () => {
  test('is opened with the skills in force, and sealed under the root of its records', async () => {
    const world = await World.make();
    await world.played(created());
    const skills = [{ name: 'release', digest: 'a'.repeat(64) }];

    const start = await world.run(...opened(1, { reason: 'r' }), { outside: { skills } });
    const { hash } = await world.played(thought(1));
    const ruled = await world.run(...sealed(1));

    expect(written(start, 'sessions')).toMatchObject([
      {
        status: 'open',
        scope: 'shallow',
        reason: DIGEST,
        skills: JSON.stringify(skills.map(({ digest, name }) => ({ digest, name }))),
      },
    ]);
    expect(written(ruled, 'sessions')).toMatchObject([
      {
        status: 'finalized',
        merkle_root: treeRoot([String(hash)]),
        leaf_count: 1,
        tree_depth: 1,
        sealed_task_id: null,
      },
    ]);
    expect(ruled).toMatchObject({ rows: [{ previous: 4 }] });
  });

  test.each<[what: string, call: readonly [string, object], code: string]>([
    ['opened twice', opened(1), 'ERR_SESSION_EXISTS'],
    ['opened on a task that is not there', opened(9), 'ERR_TASK_NOT_FOUND'],
    ['sealed without records', sealed(1), 'ERR_NO_RECORDS'],
    ['sealed without records of the one task', sealed(2, { task_id: 'T-0001' }), 'ERR_NO_RECORDS'],
    ['sealed for a task that is not there', sealed(2, { task_id: 'T-0009' }), 'ERR_TASK_NOT_FOUND'],
    ['sealed twice', sealed(3), 'ERR_ALREADY_FINALIZED'],
    ['sealed that is not there', sealed(9), 'ERR_SESSION_NOT_FOUND'],
  ])('is not %s', async (_, [tool, args], code) => {
    const world = await World.make();
    await world.played(
      created(),
      created(),
      created(),
      opened(1),
      opened(2),
      thought(2),
      opened(3),
      thought(3),
      sealed(3),
    );

    expect((await world.run(tool, args)).code).toBe(code);
  });
});

test('owner_adopt writes no row, and answers how many rows are accepted', async () => {
  const world = await World.make();
  await world.played(created());

  const said = { key: 'a key', rows: 2, signed: 'a signature' };
  const ruled = await world.run('owner_adopt', { reason: 'restored', ...said }, { source: 'cli' });

  expect(ruled).toEqual({ rows: [], result: { adopted_rows: 3, ...said } });
});

test('owner_transfer and owner_receive write no row, and name the places', async () => {
  const world = await World.make();
  await world.played(created());

  const left = await world.run('owner_transfer', { to: 'postgres:team' }, { source: 'cli' });
  const arrived = await world.run('owner_receive', { from: '/a.db' }, { source: 'cli' });

  expect(left).toEqual({ rows: [], result: { to: 'postgres:team', rows: 4 } });
  expect(arrived).toEqual({ rows: [], result: { from: '/a.db' } });
});

describe('a transaction and memory', () => {
  const task = fc.integer({ min: 1, max: 6 });
  const session = fc.integer({ min: 1, max: 4 });
  const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
  const statuses = Object.values(ARROWS).flatMap((arrows) => Object.keys(arrows));
  const actor = fc.constantFrom('ada', 'bob');

  const creating = fc
    .record({
      project: fc.constantFrom('p', 'q'),
      workflow: fc.constantFrom('kanban', 'pipeline'),
      proof_grade: optional(fc.boolean()),
      parent_id: optional(task.map(idOf)),
      depends_on: optional(fc.array(task.map(idOf), { maxLength: 3 })),
    })
    .map((args) => ['task_create', { title: 'a', ...given(args) }] as const);
  const updating = fc
    .record({
      task_id: task.map(idOf),
      status: optional(fc.constantFrom(...statuses)),
      progress: optional(fc.nat(100)),
      depends_on: optional(fc.array(task.map(idOf), { maxLength: 3 })),
    })
    .map((args) => ['task_update', { ...given(args), ...reasonFor(args.status ?? '') }] as const);
  /** Along the first arrow of each status, which is the way to the end. */
  const pushing = task.map((id) => ['push', { id }] as const);
  const thinking = fc
    .record({ id: task, session_id: optional(session.map((id) => `A-000${id}`)) })
    .map(({ id, ...args }) => thought(id, given(args)));
  const opening = fc
    .record({ id: task, scope: optional(fc.constantFrom('deep', 'shallow')) })
    .map(({ id, ...args }) => opened(id, given(args)));
  const sealing = fc
    .record({ id: session, task_id: optional(task.map(idOf)) })
    .map(({ id, ...args }) => sealed(id, given(args)));

  test('answer every question of every rule alike, whatever was called before', async () => {
    const seen = new Map<string, number>();
    const call = fc.oneof(creating, updating, pushing, pushing, thinking, thinking, opening, sealing);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(call, actor), { minLength: 20, maxLength: 60, size: 'max' }),
        async (calls) => {
          const world = await World.make();
          await world.played(
            created(),
            created({ proof_grade: true, parent_id: 'T-0001' }),
            opened(2),
            thought(2),
          );
          await world.played(created({ depends_on: ['T-0001'] }));
          for (const id of [2, 3]) await world.played(...moved(id, 'todo', 'in_progress', 'review'));
          for (const [[tool, args], by] of calls) {
            const [name, full] =
              tool === 'push' ? await nextStep(world, (args as { id: number }).id) : [tool, args];
            const ruled = await world.run(name, full, { actor: by });
            const what = `${name} ${ruled.code ?? 'ok'}`;
            seen.set(what, (seen.get(what) ?? 0) + 1);
          }
          await expectSameDerived(world);
          await world.storage.close();
        },
      ),
      trials('both lookups', 40, 400),
    );
    // Else the property says little.
    for (const what of EXPECTED) expect([...seen.keys()]).toContain(what);
  }, 300_000);

  async function nextStep(world: World, id: number): Promise<[string, object]> {
    const row = await world.storage.read((tx) =>
      tx.get<{ workflow: keyof typeof ARROWS; status: string }>(
        'SELECT workflow, status FROM tasks WHERE id = ?',
        id,
      ),
    );
    const arrows: Readonly<Record<string, readonly string[]>> = ARROWS[row?.workflow ?? 'kanban'];
    const [status = 'todo'] = arrows[row?.status ?? 'backlog'] ?? [];
    return ['task_update', { task_id: idOf(id), status, ...reasonFor(status) }];
  }

  async function expectSameDerived(world: World): Promise<void> {
    const rows = await world.storage.read((tx) =>
      tx.all<{ id: number }>('SELECT id, unmet, is_final, queue FROM tasks ORDER BY id'),
    );
    for (const { id, ...derived } of rows) expect(world.memory.derivedOf(id), idOf(id)).toEqual(derived);
  }
});

const EXPECTED = [
  ...['task_create ok', 'task_create ERR_TASK_NOT_FOUND', 'task_create ERR_CIRCULAR_DEPENDENCY'],
  ...['task_update ok', 'task_update ERR_INVALID_TRANSITION', 'task_update ERR_WRITEBACK_REQUIRED'],
  ...['task_update ERR_CIRCULAR_DEPENDENCY', 'task_update ERR_PROOF_REQUIRED'],
  ...['thought_record ok', 'thought_record ERR_SESSION_NOT_FOUND', 'thought_record ERR_SESSION_REQUIRED'],
  ...[
    'thought_record ERR_ALREADY_FINALIZED',
    'audit_session_start ok',
    'audit_session_start ERR_SESSION_EXISTS',
  ],
  ...['merkle_finalize ok', 'merkle_finalize ERR_NO_RECORDS', 'merkle_finalize ERR_ALREADY_FINALIZED'],
];

/** The statuses from the first to this one. */
function pathTo(workflow: keyof typeof ARROWS, status: string): string[] {
  const arrows: Readonly<Record<string, readonly string[]>> = ARROWS[workflow];
  const first = Object.keys(arrows)[0] ?? '';
  const paths = new Map<string, string[]>([[first, []]]);
  for (const [from, path] of paths)
    for (const to of arrows[from] ?? []) if (!paths.has(to)) paths.set(to, [...path, to]);
  return paths.get(status) ?? [];
}

/** Without what has no value. */
function given(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
