import { expect } from 'vitest';
import { proves } from './proves.ts';
import { type Desk, openDesk } from './tasks-desk.ts';

async function unmet(desk: Desk, task_id: string): Promise<number> {
  return (await desk.get(task_id)).dependencies_unmet;
}

proves(
  ['tasks.dependencies.unmet', 'tasks.dependencies.cancelled'],
  'children and dependencies count until they are finished or cancelled',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create({ title: 'waits' });
    for (let i = 2; i <= 4; i += 1) await desk.create();
    await desk.create({ parent_id: 'T-0001', workflow: 'pipeline' });
    await desk.create({ parent_id: 'T-0001' });
    await desk.update('T-0001', { depends_on: ['T-0002', 'T-0003', 'T-0004'] });
    const counts = [await unmet(desk, 'T-0001')];

    await desk.finish('T-0002');
    counts.push(await unmet(desk, 'T-0001'));
    await desk.move('T-0003', 'cancelled');
    counts.push(await unmet(desk, 'T-0001'));
    await desk.finish('T-0005');
    counts.push(await unmet(desk, 'T-0001'));
    await desk.move('T-0006', 'todo', 'cancelled');
    counts.push(await unmet(desk, 'T-0001'));
    await desk.move('T-0004', 'todo', 'in_progress', 'review');
    counts.push(await unmet(desk, 'T-0001'));
    await desk.think('T-0004');
    await desk.move('T-0004', 'done');
    counts.push(await unmet(desk, 'T-0001'));

    expect(counts).toEqual([5, 4, 3, 2, 1, 1, 0]);
  },
);

proves('tasks.dependencies.unmet', 'a child that is also a dependency counts once', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  await desk.create();
  await desk.create({ parent_id: 'T-0001' });

  await desk.update('T-0001', { depends_on: ['T-0002', 'T-0002'] });
  const both = await unmet(desk, 'T-0001');
  await desk.move('T-0002', 'cancelled');
  const after = await unmet(desk, 'T-0001');

  expect([both, after]).toEqual([1, 0]);
});

proves(
  'tasks.dependencies.unmet',
  'dependencies can be given, replaced and taken away',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    for (let i = 1; i <= 3; i += 1) await desk.create();
    await desk.move('T-0003', 'cancelled');

    await desk.create({ depends_on: ['T-0001', 'T-0003', 'T-0001'] });
    const given = await desk.get('T-0004');
    await desk.update('T-0004', { depends_on: ['T-0002', 'T-0001'] });
    const replaced = await desk.get('T-0004');
    await desk.update('T-0004', { title: 'something else' });
    const kept = await desk.get('T-0004');
    await desk.update('T-0004', { depends_on: [] });
    const taken = await desk.get('T-0004');
    await desk.move('T-0001', 'cancelled');

    expect(given).toMatchObject({ depends_on: ['T-0001', 'T-0003'], dependencies_unmet: 1 });
    expect(replaced).toMatchObject({ depends_on: ['T-0002', 'T-0001'], dependencies_unmet: 2 });
    expect(kept).toMatchObject({ depends_on: ['T-0002', 'T-0001'], dependencies_unmet: 2 });
    expect(taken).toMatchObject({ depends_on: [], dependencies_unmet: 0 });
    expect(await unmet(desk, 'T-0004')).toBe(0);
  },
);

proves('tasks.dependencies.unmet', 'one call may finish a task and rewire it', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  for (let i = 1; i <= 2; i += 1) await desk.create();
  await desk.create({ depends_on: ['T-0001'] });

  const answer = await desk.update('T-0001', { status: 'cancelled', depends_on: ['T-0002'] });

  expect(answer.status).toBe('cancelled');
  expect(await desk.get('T-0001')).toMatchObject({ depends_on: ['T-0002'], dependencies_unmet: 1 });
  expect(await unmet(desk, 'T-0003')).toBe(0);
});

proves(
  'tasks.dependencies.cycle',
  'every kind of cycle is refused and spelled out, and changes nothing',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    // T-0002 waits for T-0001; T-0003 for T-0002; T-0004 is the parent of T-0005, the parent of T-0006.
    await desk.create();
    await desk.create({ depends_on: ['T-0001'] });
    await desk.create({ depends_on: ['T-0002'] });
    await desk.create();
    await desk.create({ parent_id: 'T-0004' });
    await desk.create({ parent_id: 'T-0005' });
    const before = await desk.list({ limit: 500 });
    const circles: [changes: object, cycle: string[]][] = [
      [{ task_id: 'T-0001', depends_on: ['T-0001'] }, ['T-0001', 'T-0001']],
      [{ task_id: 'T-0001', depends_on: ['T-0002'] }, ['T-0001', 'T-0002', 'T-0001']],
      [{ task_id: 'T-0001', depends_on: ['T-0003'] }, ['T-0001', 'T-0003', 'T-0002', 'T-0001']],
      [{ task_id: 'T-0001', depends_on: ['T-0003', 'T-0002'] }, ['T-0001', 'T-0002', 'T-0001']],
      [{ task_id: 'T-0005', depends_on: ['T-0004'] }, ['T-0005', 'T-0004', 'T-0005']],
      [{ task_id: 'T-0006', depends_on: ['T-0004'] }, ['T-0006', 'T-0004', 'T-0005', 'T-0006']],
    ];

    for (const [changes, cycle] of circles) {
      const error = await desk.refused('task_update', { ...changes, title: 'must not stick' });
      expect(error.code).toBe('ERR_CIRCULAR_DEPENDENCY');
      expect(error.details).toEqual({ cycle });
      expect(error.message).toContain(cycle.join(' waits for '));
      expect(error.message).toContain('Remove one of these dependencies.');
    }
    const born = await desk.refused('task_create', {
      title: 'x',
      project: 'p',
      parent_id: 'T-0005',
      depends_on: ['T-0004'],
    });
    expect(born.code).toBe('ERR_CIRCULAR_DEPENDENCY');
    expect(born.details).toEqual({ cycle: ['T-0005', 'the new task', 'T-0004', 'T-0005'] });
    const ownParent = await desk.refused('task_create', {
      title: 'x',
      project: 'p',
      parent_id: 'T-0001',
      depends_on: ['T-0001'],
    });
    expect(ownParent.details).toEqual({ cycle: ['T-0001', 'the new task', 'T-0001'] });
    expect(await desk.list({ limit: 500 })).toEqual(before);
  },
);

proves('tasks.dependencies.cycle', 'what only looks like a cycle is allowed', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  await desk.create();
  await desk.create({ parent_id: 'T-0001' });
  await desk.create({ parent_id: 'T-0001', depends_on: ['T-0002'] });
  await desk.create({ depends_on: ['T-0001', 'T-0002', 'T-0003'] });

  await desk.update('T-0001', { depends_on: ['T-0003', 'T-0002'] });

  expect(await unmet(desk, 'T-0001')).toBe(2);
  expect(await unmet(desk, 'T-0004')).toBe(3);
});

proves('tasks.dependencies.cycle', 'a chain of a hundred is followed to its end', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  const ids = [await desk.create()];
  for (let i = 1; i < 100; i += 1) ids.push(await desk.create({ depends_on: [ids[i - 1] as string] }));

  const error = await desk.refused('task_update', { task_id: 'T-0001', depends_on: ['T-0100'] });

  expect(error.details.cycle).toEqual(['T-0001', ...ids.toReversed()]);
});
