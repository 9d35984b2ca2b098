import { expect } from 'vitest';
import { proves } from './proves.ts';
import { type Desk, openDesk, type TaskTool } from './tasks-desk.ts';

/** Values of one field that are taken, the last of them at its limit, and values just outside. */
interface Field {
  readonly field: string;
  readonly taken: readonly unknown[];
  readonly refused: readonly unknown[];
  /** What task_get shows for a value; the value itself where nothing is said. */
  readonly shown?: (value: never) => unknown;
}

const x = (count: number) => 'x'.repeat(count);
const list = <T>(count: number, item: (i: number) => T) => Array.from({ length: count }, (_, i) => item(i));

const TITLE: Field = {
  field: 'title',
  taken: ['a', ' padded ', 'Ω'.repeat(256), x(256)],
  refused: ['', ' ', '\n\t', x(257), 5, {}],
};
const DESCRIPTION: Field = {
  field: 'description',
  taken: ['a', '', '# md\n\n- x\r\n', x(8_000)],
  refused: [x(8_001), 5, ['a']],
};
const PRIORITY: Field = {
  field: 'priority',
  taken: ['low', 'normal', 'high', 'critical'],
  refused: ['urgent', 'High', '', 1, ['high']],
};
const LABELS: Field = {
  field: 'labels',
  taken: [['a'], [], [x(64)], list(20, (i) => `l${i}`)],
  refused: [list(21, (i) => `l${i}`), [x(65)], [''], [' '], 'a', [1], { a: 1 }],
};
const ASSIGNEE: Field = {
  field: 'assignee',
  taken: ['agent-bob', 'Ada Lovelace', x(128)],
  refused: ['', ' ', x(129), 7],
};
const ESTIMATE: Field = {
  field: 'estimate_hours',
  taken: [4, 0, 0.25, 1e-7, 999.999, 1_000],
  refused: [-0.001, -1, 1_000.001, 'four', 1e308, '4h'],
};
const DEPENDS_ON: Field = {
  field: 'depends_on',
  taken: [['T-0001'], [], ['T-0002', 'T-0001'], list(100, () => 'T-0001')],
  refused: [list(101, () => 'T-0001'), [''], [x(33)], [1], 'T-0001'],
  shown: (ids: string[]) => [...new Set(ids)],
};

const CREATE: readonly Field[] = [
  TITLE,
  {
    field: 'project',
    taken: ['a', '0', '-', 'my-project-2', x(64)],
    refused: ['', x(65), 'A', 'a_b', 'a b', 'ä', 'a/b', 'a\n', 5],
  },
  DESCRIPTION,
  { field: 'parent_id', taken: ['T-0001', 'T-0002'], refused: ['', x(33), 1] },
  PRIORITY,
  LABELS,
  ASSIGNEE,
  ESTIMATE,
  {
    field: 'type',
    taken: ['implementation', 'refactor', 'doc', 'investigation', 'spike'],
    refused: ['bug', 'Doc', ''],
  },
  { field: 'proof_grade', taken: [true, false], refused: ['yes', 1, 'TRUE'] },
  { field: 'workflow', taken: ['kanban', 'pipeline'], refused: ['scrum', 'Kanban', ''] },
  DEPENDS_ON,
];

const UPDATE: readonly Field[] = [
  {
    field: 'status',
    taken: ['todo', 'in_progress', 'review', 'cancelled'],
    refused: ['Todo', 'doing', '', 1, ['todo']],
  },
  {
    field: 'progress',
    taken: [45, 0, 0.5, 33.333, 99.999, 100],
    refused: [-0.001, 100.001, -1, 101, 'half', '45%'],
  },
  TITLE,
  DESCRIPTION,
  PRIORITY,
  ASSIGNEE,
  LABELS,
  { field: 'blocked_reason', taken: ['waits', x(2_000)], refused: ['', ' ', x(2_001), 1] },
  ESTIMATE,
  DEPENDS_ON,
];

const LIST: readonly Field[] = [
  { field: 'project', taken: ['p', x(64)], refused: ['', x(65), 'P', 'a_b'] },
  {
    field: 'status',
    taken: [['todo'], [], ['todo', 'DONE', 'review']],
    refused: [['doing'], 'todo', [1], list(16, () => 'todo')],
  },
  {
    field: 'priority',
    taken: [['low'], [], ['low', 'normal', 'high', 'critical']],
    refused: [['urgent'], 'low', list(5, () => 'low')],
  },
  { field: 'assignee', taken: ['bob', x(128)], refused: ['', ' ', x(129), 1] },
  { field: 'label', taken: ['a', x(64)], refused: ['', ' ', x(65), ['a']] },
  {
    field: 'created_after',
    taken: ['2026-04-08', '2026-04-08T22:15:30Z', '2026-04-08T22:15:30.123+05:45', '2026-04-08T24:00:00Z'],
    refused: [
      '',
      'yesterday',
      '08.04.2026',
      '2026-13-01',
      '2026-04-32',
      '2026-04-08T25:00:00Z',
      'T22:15:30Z',
      '1775686530',
      1_775_686_530,
      x(41),
    ],
  },
  {
    field: 'created_before',
    taken: ['2026-04-08', '2026-04-08T22:15:30-11:30'],
    refused: ['', 'now', '2026-04', '26-04-08'],
  },
  { field: 'search', taken: ['a', '', ' ', '"', '*', 'AND', x(8_000)], refused: [x(8_001), 1, ['a']] },
  { field: 'limit', taken: [1, 50, 500], refused: [0, -1, 501, 1.5, 'ten'] },
  { field: 'offset', taken: [0, 1, 1_000_000], refused: [-1, 0.5, 'x'] },
  {
    field: 'sort_by',
    taken: ['created', 'updated', 'priority', 'progress'],
    refused: ['title', 'Created', '', 'id; DROP TABLE tasks'],
  },
  { field: 'sort_order', taken: ['asc', 'desc'], refused: ['ASC', 'up', ''] },
];

const NEXT: readonly Field[] = [
  { field: 'project', taken: ['p'], refused: ['', x(65), 'P'] },
  { field: 'limit', taken: [1, 20, 100], refused: [0, -1, 101, 2.5] },
  { field: 'include_blocked', taken: [true, false], refused: ['yes', 1] },
];

const GET: readonly Field[] = [
  { field: 'task_id', taken: ['T-0001'], refused: ['', x(33), 1, ['T-0001']] },
  { field: 'include_thought_trail', taken: [true, false], refused: ['yes', 0] },
  { field: 'include_dependents', taken: [true, false], refused: ['yes', 0] },
];

proves(
  ['tasks.create.fields', 'tasks.priorities', 'tasks.output-schema', 'tasks.project.slug'],
  'task_create takes every field up to its limit, gives it back, and refuses what is just outside',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();
    await desk.create();

    for (const { field, taken, shown = same } of CREATE) {
      for (const value of taken) {
        const id = await desk.create({ [field]: value });
        const task = await desk.get(id);
        expect
          .soft(task[field as keyof typeof task], `${field} ${brief(value)}`)
          .toEqual(shown(value as never));
      }
    }
    await expectRefusals(desk, 'task_create', { title: 'x', project: 'p' }, CREATE);
  },
);

proves('tasks.create.fields', 'title and project are required, nothing else is', async ({ colibri }) => {
  const desk = await openDesk(colibri);

  const nothing = await desk.rejected('task_create', {});
  const noTitle = await desk.rejected('task_create', { project: 'p' });
  const noProject = await desk.rejected('task_create', { title: 'x', project: null });

  expect(nothing.message).toContain('title is required (string). project is required (string).');
  expect(noTitle.message).toContain('title is required');
  expect(noProject.message).toContain('project');
  expect((await desk.list()).total_count).toBe(0);
});

proves(
  ['tasks.create.defaults', 'tasks.create.output', 'tasks.get.fields'],
  'a task that names nothing but title and project has the documented defaults and no empty fields',
  async ({ colibri }) => {
    const desk = await openDesk(colibri, { clientName: 'ada' });

    const created = await desk.ok('task_create', { title: 'x', project: 'p' });
    const task = await desk.get('T-0001');

    expect(created).toEqual({
      task_id: 'T-0001',
      status: 'backlog',
      created_at: expect.any(String),
      created_by: 'ada',
      sequence: 1,
      workflow: 'kanban',
    });
    expect(task).toEqual({
      task_id: 'T-0001',
      title: 'x',
      description: '',
      project: 'p',
      status: 'backlog',
      priority: 'normal',
      progress: 0,
      assignee: 'unassigned',
      labels: [],
      created_at: created.created_at,
      updated_at: created.created_at,
      created_by: 'ada',
      updated_by: 'ada',
      sequence: 1,
      workflow: 'kanban',
      proof_grade: false,
      depends_on: [],
      dependencies_unmet: 0,
      status_since: created.created_at,
      status_by: 'ada',
    });
  },
);

proves('tasks.create.output', 'ids count globally and sequence counts per project', async ({ colibri }) => {
  const desk = await openDesk(colibri);

  const answers = [];
  for (const project of ['a', 'b', 'a', 'a', 'b'])
    answers.push(await desk.ok('task_create', { title: 'x', project }));

  expect(answers.map(({ task_id, sequence }) => `${task_id} ${sequence}`)).toEqual([
    'T-0001 1',
    'T-0002 1',
    'T-0003 2',
    'T-0004 3',
    'T-0005 2',
  ]);
});

proves(
  ['tasks.update.fields', 'tasks.priorities', 'tasks.output-schema'],
  'task_update takes every field up to its limit, stores it, and refuses what is just outside',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();
    await desk.create();

    for (const { field, taken, shown = same } of UPDATE) {
      const id = await desk.create();
      for (const value of taken) {
        await desk.update(id, { [field]: value });
        const task = await desk.get(id);
        expect
          .soft(task[field as keyof typeof task], `${field} ${brief(value)}`)
          .toEqual(shown(value as never));
      }
    }
    await expectRefusals(desk, 'task_update', { task_id: 'T-0001' }, UPDATE);
  },
);

proves(
  'tasks.update.something',
  'an update that changes nothing is refused with what to give',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();
    const before = await desk.get('T-0001');

    const empty = await desk.rejected('task_update', { task_id: 'T-0001' });
    const nulls = await desk.rejected('task_update', { task_id: 'T-0001', status: null, progress: null });
    const noId = await desk.rejected('task_update', { progress: 1 });

    expect(empty.message).toContain('at least one field besides task_id');
    expect(nulls.message).toContain('at least one field besides task_id');
    expect(noId.message).toContain('task_id is required (string).');
    expect(await desk.get('T-0001')).toEqual(before);
  },
);

proves(
  ['tasks.update.output', 'tasks.update.only'],
  'each update changes its own field, the time and the name of who did it, and nothing else',
  async ({ colibri }) => {
    const ada = await openDesk(colibri, { clientName: 'ada' });
    const bob = await openDesk(colibri, { clientName: 'bob' });
    await ada.create();
    const changes = {
      progress: 10,
      title: 'new title',
      description: 'new description',
      priority: 'critical',
      assignee: 'carol',
      labels: ['new'],
      estimate_hours: 3,
      depends_on: ['T-0002'],
    } as const;
    await ada.create();
    await ada.move('T-0002', 'cancelled');

    for (const [field, value] of Object.entries(changes)) {
      const before = await ada.get('T-0001');
      const answer = await bob.update('T-0001', { [field]: value });
      const after = await ada.get('T-0001');
      const { updated_at } = answer;
      expect(after).toEqual({ ...before, [field]: value, updated_at, updated_by: 'bob' });
      expect(answer).toEqual({
        task_id: 'T-0001',
        status: 'backlog',
        progress: 10,
        updated_at,
        updated_by: 'bob',
      });
      expect(updated_at >= before.updated_at).toBe(true);
    }
  },
);

proves(
  'tasks.update.output',
  'previous_status is there when the task moved and only then',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();

    const moved = await desk.update('T-0001', { status: 'todo', title: 'both at once' });
    const stayed = await desk.update('T-0001', { title: 'again' });

    expect(moved).toMatchObject({ status: 'todo', previous_status: 'backlog' });
    expect(stayed).not.toHaveProperty('previous_status');
    expect(stayed).not.toHaveProperty('warnings');
  },
);

proves(
  'tasks.update.only',
  'a refused update changes none of the fields that came with it',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();
    const before = await desk.get('T-0001');

    await desk.refused('task_update', { task_id: 'T-0001', status: 'done', title: 'new', progress: 5 });
    await desk.refused('task_update', { task_id: 'T-0001', depends_on: ['T-0001'], title: 'new' });
    await desk.rejected('task_update', { task_id: 'T-0001', title: 'new', progress: 101 });

    expect(await desk.get('T-0001')).toEqual(before);
  },
);

proves(
  ['tasks.get.fields', 'tasks.get.thought-trail', 'tasks.get.dependents', 'tasks.output-schema'],
  'task_get shows every field, and thoughts and children only where asked',
  async ({ colibri }) => {
    const desk = await openDesk(colibri, { clientName: 'ada' });
    await desk.create();
    await desk.create();
    await desk.ok('task_create', {
      title: 'whole',
      project: 'p',
      description: 'every field',
      parent_id: 'T-0001',
      priority: 'low',
      labels: ['a', 'b'],
      assignee: 'bob',
      estimate_hours: 1.5,
      type: 'spike',
      proof_grade: true,
      workflow: 'kanban',
      depends_on: ['T-0002'],
    });
    await desk.move('T-0003', 'todo', 'blocked');
    for (const parent_id of ['T-0003', 'T-0001', 'T-0003']) await desk.create({ parent_id });
    await desk.other('audit_session_start', { task_id: 'T-0003', auditor_id: 'eve' });
    const thoughts = [await desk.think('T-0003'), await desk.think('T-0003')];
    await desk.think('T-0001');

    const plain = await desk.get('T-0003');
    const full = await desk.ok('task_get', {
      task_id: 'T-0003',
      include_thought_trail: true,
      include_dependents: true,
    });
    const bare = await desk.ok('task_get', {
      task_id: 'T-0002',
      include_thought_trail: true,
      include_dependents: true,
    });

    expect(plain).toEqual({
      task_id: 'T-0003',
      title: 'whole',
      description: 'every field',
      project: 'p',
      status: 'blocked',
      priority: 'low',
      progress: 0,
      assignee: 'bob',
      labels: ['a', 'b'],
      estimate_hours: 1.5,
      created_at: expect.any(String),
      updated_at: expect.any(String),
      created_by: 'ada',
      updated_by: 'ada',
      parent_id: 'T-0001',
      blocked_reason: 'waits',
      sequence: 3,
      workflow: 'kanban',
      type: 'spike',
      proof_grade: true,
      depends_on: ['T-0002'],
      dependencies_unmet: 3,
      status_since: expect.any(String),
      status_by: 'ada',
    });
    expect(full).toEqual({ ...plain, thought_trail: thoughts, dependents: ['T-0004', 'T-0006'] });
    expect(bare).toMatchObject({ thought_trail: [], dependents: [] });
    await expectRefusals(desk, 'task_get', { task_id: 'T-0001' }, GET);
  },
);

proves(
  [
    'tasks.list.filters',
    'tasks.list.paging',
    'tasks.list.sorting',
    'tasks.next.limit',
    'tasks.output-schema',
  ],
  'the reading tools take every field up to its limit and refuse what is just outside',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();

    for (const { field, taken } of LIST)
      for (const value of taken) await desk.ok('task_list', { [field]: value });
    for (const { field, taken } of NEXT)
      for (const value of taken) await desk.ok('task_next_actions', { [field]: value });

    await expectRefusals(desk, 'task_list', {}, LIST);
    await expectRefusals(desk, 'task_next_actions', {}, NEXT);
  },
);

proves(
  'tasks.repair',
  'what clients get wrong and can mean one thing only is taken, and noted',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);

    await desk.ok('task_create', {
      title: 'x',
      project: 'p',
      labels: '["a","b"]',
      estimate_hours: '4.5',
      proof_grade: 'true',
      parent_id: null,
      depends_on: null,
    });
    await desk.ok('task_update', { task_id: 'T-0001', progress: '45', labels: '[]', assignee: null });
    const next = await desk.ok('task_next_actions', { limit: '5', include_blocked: 'true', project: null });
    const listed = await desk.ok('task_list', { limit: '1', offset: '0', status: '["backlog"]' });

    expect(await desk.get('T-0001')).toMatchObject({
      labels: [],
      estimate_hours: 4.5,
      proof_grade: true,
      progress: 45,
      assignee: 'unassigned',
    });
    expect(next).toMatchObject({ count: 0, blocked: [] });
    expect(listed).toMatchObject({ returned_count: 1, limit: 1 });
    const repaired = colibri.readAudit().rows.filter((row) => row.tool === 'task_create')[0]?.repaired;
    expect(repaired).toEqual([
      'labels: text taken as array',
      'estimate_hours: text taken as number',
      'proof_grade: text taken as boolean',
      'parent_id: null taken as absent',
      'depends_on: null taken as absent',
    ]);
  },
);

/** Each value outside must be refused with its field named, in the message and in the issue, and must leave nothing. */
async function expectRefusals(
  desk: Desk,
  tool: TaskTool,
  rest: object,
  fields: readonly Field[],
): Promise<void> {
  const before = await desk.list({ limit: 500 });
  for (const { field, refused } of fields) {
    for (const value of refused) {
      const what = `${tool} ${field} ${brief(value)}`;
      const error = await desk.rejected(tool, { ...rest, [field]: value });
      const issues = error.details.issues as { path: (string | number)[] }[];
      expect
        .soft(
          issues.some(({ path }) => path[0] === field),
          what,
        )
        .toBe(true);
      expect.soft(error.message, what).toMatch(new RegExp(`^${tool}: ${field}`));
      expect.soft(error.message, what).toContain('Correct this and call again.');
    }
  }
  expect(await desk.list({ limit: 500 })).toEqual(before);
}

function same(value: unknown): unknown {
  return value;
}

function brief(value: unknown): string {
  return JSON.stringify(value).slice(0, 60);
}
