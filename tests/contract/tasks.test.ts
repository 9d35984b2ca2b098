import { expect } from 'vitest';
import { canonical, sha256, withDatabase } from '../driver/audit-file.ts';
import type { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';
import { type Desk, openDesk, type TaskTool } from './tasks-desk.ts';

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

proves(
  'tasks.seed-examples',
  'the printed examples of the task tools work as printed',
  async ({ colibri }) => {
    const desk = await openDesk(colibri, { env: { COLIBRI_AGENT_ID: 'agent-alice' } });
    await desk.create({
      title: 'Package Setup',
      project: 'colibri',
      priority: 'critical',
      assignee: 'agent-alice',
    });
    await desk.move('T-0001', 'todo', 'in_progress');
    await desk.update('T-0001', { progress: 80 });
    for (let i = 2; i <= 41; i += 1) await desk.create({ project: 'colibri' });

    const created = await desk.ok('task_create', {
      title: 'Wire up task_create MCP handler',
      description:
        'Implement P0.3.2 per task-breakdown.md\n\n- Accept TaskCreateInput\n- Validate with Zod\n- Store in tasks table\n- Return TaskCreateOutput',
      project: 'colibri',
      priority: 'high',
      labels: ['phase-0', 'mcp', 'backend'],
      estimate_hours: 4,
    });
    await desk.move('T-0042', 'todo');
    const updated = await desk.ok('task_update', {
      task_id: 'T-0042',
      status: 'in_progress',
      progress: 45,
      assignee: 'agent-bob',
    });
    for (const title of ['first child', 'second child'])
      await desk.create({ title, project: 'colibri', parent_id: 'T-0042' });
    const got = await desk.ok('task_get', { task_id: 'T-0042', include_dependents: true });
    const listed = await desk.ok('task_list', {
      project: 'colibri',
      status: ['todo', 'in_progress'],
      sort_by: 'priority',
      sort_order: 'desc',
      limit: 10,
    });

    expect(created).toEqual({
      task_id: 'T-0042',
      status: 'backlog',
      created_at: expect.stringMatching(INSTANT),
      created_by: 'agent-alice',
      sequence: 42,
      workflow: 'kanban',
    });
    expect(updated).toEqual({
      task_id: 'T-0042',
      status: 'in_progress',
      progress: 45,
      updated_at: expect.stringMatching(INSTANT),
      updated_by: 'agent-alice',
      previous_status: 'todo',
    });
    expect(got).toMatchObject({
      task_id: 'T-0042',
      title: 'Wire up task_create MCP handler',
      description: expect.stringContaining('Implement P0.3.2 per task-breakdown.md'),
      project: 'colibri',
      status: 'in_progress',
      priority: 'high',
      progress: 45,
      assignee: 'agent-bob',
      labels: ['phase-0', 'mcp', 'backend'],
      estimate_hours: 4,
      created_at: created.created_at,
      updated_at: updated.updated_at,
      created_by: 'agent-alice',
      updated_by: 'agent-alice',
      dependents: ['T-0043', 'T-0044'],
    });
    expect(listed.tasks[0]).toEqual({
      task_id: 'T-0001',
      title: 'Package Setup',
      project: 'colibri',
      status: 'in_progress',
      priority: 'critical',
      progress: 80,
      assignee: 'agent-alice',
      created_at: expect.stringMatching(INSTANT),
      updated_at: expect.stringMatching(INSTANT),
    });
    expect(listed).toMatchObject({ total_count: 2, returned_count: 2, offset: 0, limit: 10 });
  },
);

proves(
  'tasks.seed-examples',
  'the printed example of task_next_actions works as printed',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    for (let i = 1; i <= 41; i += 1) await desk.create({ project: 'colibri' });
    const wire = { title: 'Wire up task_create MCP handler', priority: 'high', estimate_hours: 4 } as const;
    await desk.create({ ...wire, project: 'colibri', assignee: 'agent-bob' });
    for (const title of ['one', 'two']) await desk.create({ title, project: 'colibri' });
    await desk.create({
      title: 'Write task_create tests',
      project: 'colibri',
      priority: 'high',
      estimate_hours: 2,
      depends_on: ['T-0042'],
    });
    await desk.move('T-0042', 'todo');
    await desk.move('T-0045', 'todo');

    const answer = await desk.ok('task_next_actions', { project: 'colibri', limit: 5 });

    expect(answer).toMatchObject({
      next_actions: [
        { task_id: 'T-0042', ...wire, assignee: 'agent-bob', dependencies_unmet: 0 },
        {
          task_id: 'T-0045',
          title: 'Write task_create tests',
          priority: 'high',
          assignee: 'unassigned',
          estimate_hours: 2,
          dependencies_unmet: 1,
        },
      ],
      count: 2,
      project: 'colibri',
    });
  },
);

proves(
  ['tasks.pattern-b', 'tasks.not-found'],
  'every id that leads nowhere is answered inside a success with the nearest ids',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const nothingYet = await desk.refused('task_get', { task_id: 'T-0001' });
    for (let i = 0; i < 7; i += 1) await desk.create();

    const asked: [TaskTool, object, field: string][] = [
      ['task_get', { task_id: 'T-0009' }, 'task_id'],
      ['task_update', { task_id: 'T-0009', progress: 1 }, 'task_id'],
      ['task_create', { title: 'x', project: 'p', parent_id: 'T-0009' }, 'parent_id'],
      ['task_create', { title: 'x', project: 'p', depends_on: ['T-0001', 'T-0009'] }, 'depends_on'],
      ['task_update', { task_id: 'T-0001', depends_on: ['T-0009'] }, 'depends_on'],
    ];

    expect(nothingYet.message).toContain('task_create');
    for (const [tool, args, field] of asked) {
      const error = await desk.refused(tool, args);
      expect(error.code).toBe('ERR_TASK_NOT_FOUND');
      expect(error.details).toEqual({ field, id: 'T-0009', nearest: ['T-0005', 'T-0006', 'T-0007'] });
      for (const part of ['"T-0009"', field, 'T-0005, T-0006, T-0007']) expect(error.message).toContain(part);
    }
    expect((await desk.list()).total_count).toBe(7);
  },
);

proves(
  'tasks.not-found',
  'what only looks like an id is no id, and the one meant is named',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    for (let i = 0; i < 12; i += 1) await desk.create();

    for (const task_id of [
      'T-3',
      't-0003',
      'T-00003',
      '3',
      'T-0003 ',
      'T-3.0',
      'task 3',
      'Θ-0003',
      'A-0003',
    ]) {
      const error = await desk.refused('task_get', { task_id });
      expect.soft(error.code, task_id).toBe('ERR_TASK_NOT_FOUND');
      expect.soft(error.details.nearest, task_id).toContain('T-0003');
    }
    for (const task_id of [
      'T-0000',
      'T--001',
      'T-',
      'nonsense',
      'T-99999999999999999999',
      'T-1e3',
      '%',
      "' OR 1=1 --",
    ]) {
      const error = await desk.refused('task_get', { task_id });
      expect.soft(error.code, task_id).toBe('ERR_TASK_NOT_FOUND');
      expect.soft(error.details.nearest, task_id).not.toEqual([]);
    }
  },
);

proves(
  'tasks.strict',
  'an unknown field is refused by name, with the field meant, in all five tools',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();
    const slips: [TaskTool, object, slip: string, meant: string][] = [
      ['task_create', { title: 'x', project: 'p', asignee: 'bob' }, 'asignee', 'assignee'],
      ['task_create', { title: 'x', project: 'p', label: ['a'] }, 'label', 'labels'],
      ['task_create', { title: 'x', project: 'p', estimated_hours: 1 }, 'estimated_hours', 'estimate_hours'],
      ['task_create', { title: 'x', project: 'p', dependson: [] }, 'dependson', 'depends_on'],
      ['task_update', { task_id: 'T-0001', progress: 1, stauts: 'todo' }, 'stauts', 'status'],
      ['task_update', { taskId: 'T-0001', progress: 1 }, 'taskId', 'task_id'],
      ['task_get', { task_id: 'T-0001', include_dependent: true }, 'include_dependent', 'include_dependents'],
      ['task_list', { labels: 'a' }, 'labels', 'label'],
      ['task_list', { sortby: 'created' }, 'sortby', 'sort_by'],
      ['task_next_actions', { includeBlocked: true }, 'includeBlocked', 'include_blocked'],
    ];

    for (const [tool, args, slip, meant] of slips) {
      const error = await desk.rejected(tool, args);
      expect.soft(error.message, slip).toContain(`Unknown field "${slip}". Did you mean ${meant}?`);
      expect
        .soft(error.details.issues, slip)
        .toContainEqual(expect.objectContaining({ code: 'unrecognized_keys', keys: [slip] }));
    }
    expect((await desk.list()).total_count).toBe(1);
  },
);

proves(
  'tasks.readonly',
  'a mode that does not admit writing refuses in pattern A, and reading goes on',
  async ({ colibri }) => {
    const writer = await openDesk(colibri);
    await writer.create();
    await writer.server.closeInput();
    const desk = await openDesk(colibri, { env: { COLIBRI_MODE: 'READONLY' } });

    for (const [tool, args] of [
      ['task_create', { title: 'x', project: 'p' }],
      ['task_update', { task_id: 'T-0001', progress: 1 }],
    ] as const) {
      const answer = await desk.server.call(tool, args);
      expect(answer.envelope).toMatchObject({ ok: false, error: { code: 'HANDLER_ERROR' } });
      expect(answer.error?.message).toMatch(/^TOOL_NOT_ADMITTED: /);
    }
    expect(await desk.get('T-0001')).toMatchObject({ task_id: 'T-0001', progress: 0 });
  },
);

proves(
  'tasks.effects',
  'each write reports every row it touched, whole, and no other',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const watch = new Watch(colibri, desk);
    // The handshake is answered before there is a file; a call is not.
    await desk.list();

    await watch.call('task_create', { title: 'parent', project: 'p', labels: ['a', 'b'] }, ['T-0001']);
    await watch.call('task_create', { title: 'child', project: 'p', parent_id: 'T-0001' }, ['T-0002']);
    await watch.call('task_create', { title: 'waits', project: 'p', depends_on: ['T-0002'] }, ['T-0003']);
    await watch.call('task_create', { title: 'waits too', project: 'p', depends_on: ['T-0002', 'T-0003'] }, [
      'T-0004',
    ]);
    await watch.call('task_update', { task_id: 'T-0002', title: 'renamed' }, ['T-0002']);
    await watch.call('task_update', { task_id: 'T-0002', labels: ['b'], status: 'todo' }, ['T-0002']);
    await watch.call('task_update', { task_id: 'T-0004', depends_on: ['T-0001'] }, ['T-0004']);
    await watch.call('task_update', { task_id: 'T-0002', status: 'cancelled' }, ['T-0002']);
    await watch.call('task_get', { task_id: 'T-0002' }, []);
    await watch.call('task_list', { search: 'renamed' }, []);
    await watch.call('task_next_actions', {}, []);
    await watch.call('task_update', { task_id: 'T-0002', status: 'todo' }, []);
    await watch.call('task_update', { task_id: 'T-0002' }, []);
  },
);

/** Looks at the file before and after a call: what changed must be what the audit row says, digest by digest. */
class Watch {
  readonly #colibri: Playground;
  readonly #desk: Desk;

  constructor(colibri: Playground, desk: Desk) {
    this.#colibri = colibri;
    this.#desk = desk;
  }

  async call(tool: TaskTool, args: object, touched: readonly string[]): Promise<void> {
    const before = this.#rows();
    await this.#desk.server.call(tool, args);
    const after = this.#rows();

    const changed = [...after]
      .filter(([id, row]) => canonical(row) !== canonical(before.get(id)))
      .map(([id]) => id);
    const exit = this.#colibri.readAudit().rows.at(-1);
    expect(exit).toMatchObject({ stage: 'exit', tool });
    expect(changed.sort()).toEqual(touched);
    expect(exit?.effects.map(({ table, id }) => `${table} ${id}`).sort()).toEqual(
      touched.map((id) => `tasks ${id}`),
    );
    for (const { id, hash } of exit?.effects ?? [])
      expect(hash).toBe(sha256(canonical({ ...after.get(id), table: 'tasks' })));
  }

  /** Without what is counted from other tasks. */
  #rows(): Map<string, Record<string, unknown>> {
    return withDatabase(this.#colibri.dbPath, (db) => {
      const stored = (db.pragma('table_info(tasks)') as { name: string }[]).map(({ name }) => name);
      const facts = stored.filter((name) => !['unmet', 'is_final', 'queue'].includes(name));
      const rows = db.prepare(`SELECT ${facts.join(', ')} FROM tasks`).all();
      return new Map((rows as { id: number }[]).map((row) => [`T-${String(row.id).padStart(4, '0')}`, row]));
    });
  }
}
