import { expect } from 'vitest';
import { proves } from './proves.ts';
import { openDesk } from './tasks-desk.ts';

proves(
  ['tasks.next.members', 'tasks.project.active'],
  'next actions are todo tasks and pipeline tasks that are not final, and no others',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const ids: Record<string, string> = {};
    for (const path of [
      [],
      ['todo'],
      ['todo', 'in_progress'],
      ['todo', 'blocked'],
      ['todo', 'in_progress', 'review'],
      ['cancelled'],
    ]) {
      const id = await desk.create();
      await desk.move(id, ...path);
      ids[path.at(-1) ?? 'backlog'] = id;
    }
    ids.done = await desk.create();
    await desk.finish(ids.done);
    const steps = ['GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY'];
    for (let i = 0; i <= steps.length; i += 1) {
      const id = await desk.create({ workflow: 'pipeline' });
      await desk.move(id, ...steps.slice(0, i));
      ids[steps[i - 1] ?? 'INIT'] = id;
    }
    const cancelled = await desk.create({ workflow: 'pipeline' });
    await desk.move(cancelled, 'CANCELLED');
    await desk.finish(await desk.create({ workflow: 'pipeline' }));

    const { next_actions, count, project, yours, ...rest } = await desk.next();

    const expected = ['todo', 'INIT', ...steps];
    expect(next_actions.map(({ task_id }) => task_id)).toEqual(expected.map((status) => ids[status]));
    expect(count).toBe(expected.length);
    expect(project).toBe('*');
    expect(yours?.map(({ task_id }) => task_id)).toEqual(
      ['in_progress', ...steps].map((status) => ids[status]).sort(),
    );
    expect(rest).toEqual({});
  },
);

proves(
  'tasks.next.order',
  'ready ones come first, then the more urgent, then the older',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const wanted: [unmet: boolean, priority: 'low' | 'normal' | 'high' | 'critical'][] = [];
    for (let i = 0; i < 24; i += 1)
      wanted.push([i % 3 === 0, (['low', 'critical', 'normal', 'high'] as const)[(i * 5) % 4] ?? 'low']);
    const blocker = await desk.create();
    const made: { id: string; unmet: boolean; rank: number }[] = [];
    for (const [unmet, priority] of wanted) {
      const id = await desk.create({ priority, ...(unmet && { depends_on: [blocker] }) });
      await desk.move(id, 'todo');
      made.push({ id, unmet, rank: ['critical', 'high', 'normal', 'low'].indexOf(priority) });
    }
    const inOrder = (tasks: typeof made) =>
      tasks
        .toSorted((a, b) => Number(a.unmet) - Number(b.unmet) || a.rank - b.rank || (a.id < b.id ? -1 : 1))
        .map(({ id }) => id);

    const { next_actions } = await desk.next({ limit: 100 });
    const firstFive = await desk.next({ limit: 5 });
    await desk.move(blocker, 'cancelled');
    const freed = await desk.next({ limit: 100 });

    expect(next_actions.map((action) => action.task_id)).toEqual(inOrder(made));
    expect(firstFive.next_actions).toEqual(next_actions.slice(0, 5));
    expect(freed.next_actions.map((action) => action.task_id)).toEqual(
      inOrder(made.map((task) => ({ ...task, unmet: false }))),
    );
    expect(freed.next_actions.every((action) => action.dependencies_unmet === 0)).toBe(true);
  },
);

proves(
  ['tasks.next.members', 'tasks.next.order'],
  'the pipeline tasks that an agent holds are among its next actions, the most urgent first, however many others it holds',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const kanban = [await desk.create(), await desk.create(), await desk.create()];
    for (const id of kanban) await desk.move(id, 'todo', 'in_progress');
    const low = await desk.create({ workflow: 'pipeline', priority: 'low' });
    const high = await desk.create({ workflow: 'pipeline', priority: 'high' });
    for (const id of [low, high]) await desk.move(id, 'GATHER');

    for (const limit of [1, 2]) {
      const { next_actions, yours } = await desk.next({ limit });

      expect(next_actions.map(({ task_id }) => task_id)).toEqual([high, low].slice(0, limit));
      expect(yours?.map(({ task_id }) => task_id)).toEqual(kanban.slice(0, limit));
    }
  },
);

proves(
  'tasks.next.limit',
  'twenty come where nothing is said, and a hundred at most',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await Promise.all(Array.from({ length: 105 }, () => desk.create({ workflow: 'pipeline' })));

    expect(await desk.next()).toMatchObject({ count: 20 });
    expect((await desk.next({ limit: 100 })).next_actions).toHaveLength(100);
    expect((await desk.next({ limit: 1 })).next_actions).toHaveLength(1);
  },
);

proves(
  'tasks.next.blocked',
  'blocked tasks come with their reasons, only where asked',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create({ title: 'stuck' });
    await desk.create({ title: 'free', parent_id: 'T-0001', estimate_hours: 2 });
    for (const id of ['T-0001', 'T-0002']) await desk.move(id, 'todo');
    await desk.update('T-0001', { status: 'blocked', blocked_reason: 'no key' });

    const without = await desk.next();
    const told = await desk.next({ include_blocked: true, project: 'p' });

    expect(without).not.toHaveProperty('blocked');
    expect(told).toEqual({
      next_actions: [
        {
          task_id: 'T-0002',
          title: 'free',
          priority: 'normal',
          assignee: 'unassigned',
          estimate_hours: 2,
          parent_id: 'T-0001',
          dependencies_unmet: 0,
        },
      ],
      count: 1,
      project: 'p',
      blocked: [{ task_id: 'T-0001', title: 'stuck', blocked_reason: 'no key' }],
    });
  },
);

proves(
  ['tasks.project.opened', 'tasks.project.unknown'],
  'creating opens a project; asking about one that is not there names the nearest',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const none = await desk.refused('task_next_actions', { project: 'colibri' });
    await desk.create({ project: 'colibri' });
    await desk.create({ project: 'website' });

    const slip = await desk.refused('task_next_actions', { project: 'colibry' });
    const other = await desk.refused('task_next_actions', { project: 'entirely-different' });

    for (const error of [none, slip, other]) expect(error.code).toBe('ERR_PROJECT_NOT_FOUND');
    expect(none.message).toContain('task_create creates one');
    expect(slip.message).toContain('There is no project "colibry". Did you mean colibri?');
    expect(slip.details).toEqual({ project: 'colibry', projects: ['colibri', 'website'] });
    expect(other.message).toContain('colibri, website');
    expect(await desk.next({ project: 'colibri' })).toMatchObject({ count: 0, project: 'colibri' });
    expect(await desk.list({ project: 'colibry' })).toMatchObject({ total_count: 0 });
  },
);

proves(
  ['tasks.project.listed', 'tasks.project.unknown'],
  'with COLIBRI_PROJECTS only the listed projects exist',
  async ({ colibri }) => {
    const free = await openDesk(colibri);
    await free.create({ project: 'rogue' });
    const desk = await openDesk(colibri, { env: { COLIBRI_PROJECTS: 'colibri, website' } });

    const elsewhere = await desk.refused('task_create', { title: 'x', project: 'web-site' });
    const rogue = await desk.refused('task_next_actions', { project: 'rogue' });
    const empty = await desk.next({ project: 'website' });
    const created = await desk.ok('task_create', { title: 'x', project: 'colibri' });

    expect(elsewhere.code).toBe('ERR_PROJECT_NOT_FOUND');
    expect(elsewhere.message).toContain('There is no project "web-site". Did you mean website?');
    expect(elsewhere.details).toEqual({ project: 'web-site', projects: ['colibri', 'website'] });
    expect(rogue.code).toBe('ERR_PROJECT_NOT_FOUND');
    expect(empty).toMatchObject({ count: 0, project: 'website' });
    expect(created.task_id).toBe('T-0002');
  },
);

proves(
  'tasks.project.active',
  'COLIBRI_PROJECT stands in where a project may be left out',
  async ({ colibri }) => {
    const desk = await openDesk(colibri, { env: { COLIBRI_PROJECT: 'home', COLIBRI_WORKFLOW: 'pipeline' } });
    const early = await desk.next();
    await desk.create({ project: 'home' });
    await desk.create({ project: 'away' });

    const required = await desk.rejected('task_create', { title: 'x' });

    expect(early).toMatchObject({ project: 'home', count: 0, hint: expect.stringContaining('task_create') });
    expect(required.message).toContain('project is required');
    expect(await desk.listIds()).toEqual(['T-0001']);
    expect(await desk.listIds({ project: 'away' })).toEqual(['T-0002']);
    expect(await desk.next()).toMatchObject({
      project: 'home',
      count: 1,
      next_actions: [{ task_id: 'T-0001' }],
    });
    expect(await desk.next({ project: 'away' })).toMatchObject({
      project: 'away',
      next_actions: [{ task_id: 'T-0002' }],
    });
  },
);
