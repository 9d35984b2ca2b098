import { setTimeout as sleep } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import { runColibri } from '../driver/command-line.ts';
import { openDatabase } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';
import { type Desk, type Output, openDesk } from './tasks-desk.ts';

type Listed = Output<'task_list'>['tasks'][number];

const RANK = { low: 0, normal: 1, high: 2, critical: 3 } as const;

/** Thirty tasks that differ in everything a filter looks at. */
async function fillBoard(desk: Desk): Promise<Output<'task_get'>[]> {
  for (let i = 0; i < 30; i += 1) {
    const id = await desk.create({
      project: i % 3 === 0 ? 'red' : 'blue',
      priority: (['low', 'normal', 'high', 'critical'] as const)[i % 4] ?? 'low',
      assignee: i % 2 === 0 ? 'ada' : 'bob',
      labels: [...(i % 5 === 0 ? ['five'] : []), 'all', `n${i}`],
      workflow: i % 7 === 0 ? 'pipeline' : 'kanban',
    });
    if (i % 2 === 1) await desk.update(id, { progress: (i * 7) % 100 });
    if (i % 4 === 3) await desk.move(id, i % 7 === 0 ? 'GATHER' : 'todo');
  }
  const tasks = [];
  for (let i = 1; i <= 30; i += 1) tasks.push(await desk.get(`T-${String(i).padStart(4, '0')}`));
  return tasks;
}

proves(
  ['tasks.list.filters', 'tasks.list.output'],
  'each filter lets through exactly what fits, alone and together with the others',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const board = await fillBoard(desk);
    const middle = board[14]?.created_at as string;
    const cases: [args: Parameters<Desk['list']>[0], fits: (task: Output<'task_get'>) => boolean][] = [
      [{}, () => true],
      [{ project: 'red' }, (task) => task.project === 'red'],
      [{ project: 'green' }, () => false],
      [{ status: ['todo'] }, (task) => task.status === 'todo'],
      [{ status: ['todo', 'GATHER', 'done'] }, (task) => ['todo', 'GATHER'].includes(task.status)],
      [{ status: [] }, () => false],
      [{ priority: ['high', 'critical'] }, (task) => RANK[task.priority] >= 2],
      [{ priority: [] }, () => false],
      [{ assignee: 'ada' }, (task) => task.assignee === 'ada'],
      [{ assignee: 'Ada' }, () => false],
      [{ label: 'five' }, (task) => task.labels.includes('five')],
      [{ label: 'fiv' }, () => false],
      [{ label: 'n12' }, (task) => task.task_id === 'T-0013'],
      [{ created_after: middle }, (task) => task.created_at > middle],
      [{ created_before: middle }, (task) => task.created_at < middle],
      [
        {
          project: 'blue',
          status: ['backlog'],
          priority: ['low', 'high'],
          assignee: 'ada',
          label: 'all',
          created_before: middle,
        },
        (task) =>
          task.project === 'blue' &&
          task.status === 'backlog' &&
          ['low', 'high'].includes(task.priority) &&
          task.assignee === 'ada' &&
          task.created_at < middle,
      ],
    ];

    for (const [args, fits] of cases) {
      const page = await desk.list({ ...args, sort_by: 'created', sort_order: 'asc' });
      const expected = board.filter(fits).map(summary);
      expect.soft(page.tasks, JSON.stringify(args)).toEqual(expected);
      expect.soft(page, JSON.stringify(args)).toMatchObject({
        total_count: expected.length,
        returned_count: expected.length,
        offset: 0,
        limit: 50,
      });
    }
  },
);

proves(
  'tasks.list.filters',
  'labels and assignee are found as they are now, not as they were',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create({ labels: ['old', 'kept'], assignee: 'ada' });

    await desk.update('T-0001', { labels: ['kept', 'new', 'kept'], assignee: 'bob' });

    expect(await desk.listIds({ label: 'old' })).toEqual([]);
    expect(await desk.listIds({ label: 'kept' })).toEqual(['T-0001']);
    expect(await desk.listIds({ label: 'new' })).toEqual(['T-0001']);
    expect(await desk.listIds({ assignee: 'ada' })).toEqual([]);
    expect((await desk.get('T-0001')).labels).toEqual(['kept', 'new']);
  },
);

proves(
  'tasks.list.sorting',
  'every sort goes both ways, and the newest change comes first when unset',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const board = (await fillBoard(desk)).map(summary);
    const by: Record<string, (a: Listed, b: Listed) => number> = {
      created: (a, b) => text(a.created_at, b.created_at) || text(a.task_id, b.task_id),
      updated: (a, b) => text(a.updated_at, b.updated_at),
      priority: (a, b) => RANK[a.priority] - RANK[b.priority],
      progress: (a, b) => a.progress - b.progress,
    };

    for (const [sort_by, compare] of Object.entries(by)) {
      for (const sort_order of ['asc', 'desc'] as const) {
        const { tasks } = await desk.list({ sort_by: sort_by as 'created', sort_order });
        const sign = sort_order === 'asc' ? 1 : -1;
        const wrong = tasks.filter((task, i) => i > 0 && sign * compare(tasks[i - 1] as Listed, task) > 0);
        expect.soft(wrong, `${sort_by} ${sort_order}`).toEqual([]);
        expect.soft(sorted(tasks), `${sort_by} ${sort_order}`).toEqual(sorted(board));
      }
    }
    expect(await desk.listIds()).toEqual(await desk.listIds({ sort_by: 'updated', sort_order: 'desc' }));
    await desk.update('T-0003', { progress: 1 });
    expect((await desk.listIds())[0]).toBe('T-0003');
  },
);

proves(
  'tasks.list.paging',
  'pages together are every match once, in every order, and know the total',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await Promise.all(
      Array.from({ length: 107 }, (_, i) => desk.create({ project: i % 2 === 0 ? 'even' : 'odd' })),
    );

    const first = await desk.list();
    for (const sort_by of ['created', 'updated', 'priority', 'progress'] as const) {
      const pages = [];
      for (let offset = 0; offset < 107; offset += 25)
        pages.push(await desk.list({ sort_by, limit: 25, offset }));
      expect(pages.map((page) => page.returned_count)).toEqual([25, 25, 25, 25, 7]);
      expect(new Set(pages.flatMap((page) => page.tasks.map((task) => task.task_id))).size).toBe(107);
      for (const page of pages) expect(page.total_count).toBe(107);
    }
    const all = await desk.list({ limit: 500 });
    const exact = await desk.list({ project: 'even', limit: 54 });
    const beyond = await desk.list({ project: 'odd', offset: 53 });
    const farBeyond = await desk.list({ offset: 9_007_199_254_740_991 });

    expect(first).toMatchObject({ total_count: 107, returned_count: 50, offset: 0, limit: 50 });
    expect(all).toMatchObject({ total_count: 107, returned_count: 107, limit: 500 });
    expect(exact).toMatchObject({ total_count: 54, returned_count: 54 });
    expect(beyond).toEqual({ tasks: [], total_count: 53, returned_count: 0, offset: 53, limit: 50 });
    expect(farBeyond).toMatchObject({ total_count: 107, returned_count: 0 });
  },
);

proves('tasks.list.dates', 'the same instant is the same in every zone', async ({ colibri }) => {
  const desk = await openDesk(colibri, { env: { TZ: 'America/St_Johns' } });
  for (let i = 0; i < 3; i += 1) {
    await desk.create();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const at = Date.parse((await desk.get('T-0002')).created_at);

  for (const zone of ['Z', '+00:00', '-00:00', '+05:45', '-11:30', '+14:00', '-12:00', '+12:45', '-03:30']) {
    const instant = inZone(at, zone);
    expect.soft(await desk.listIds({ created_after: instant }), instant).toEqual(['T-0003']);
    expect.soft(await desk.listIds({ created_before: instant }), instant).toEqual(['T-0001']);
    const around = { created_after: inZone(at - 1, zone), created_before: inZone(at + 1, zone) };
    expect.soft(await desk.listIds(around), instant).toEqual(['T-0002']);
  }
  expect(await desk.listIds({ created_after: '2000-02-29' })).toHaveLength(3);
  expect(await desk.listIds({ created_before: '2000-02-29T24:00:00Z' })).toEqual([]);
  expect(await desk.listIds({ created_after: '0000-01-01T00:00:00+14:00' })).toHaveLength(3);
});

proves(
  'tasks.list.dates',
  'a time without a zone means the same wherever the server runs',
  async ({ colibri }) => {
    const west = await openDesk(colibri, { env: { TZ: 'Pacific/Pago_Pago' } });
    await west.create();
    const east = await openDesk(colibri, { env: { TZ: 'Pacific/Kiritimati' } });
    const created_before = new Date(Date.now() + 60_000).toISOString().replace('Z', '');

    expect((await west.list({ created_before })).total_count).toBe(1);
    expect((await east.list({ created_before })).total_count).toBe(1);
  },
);

proves(
  'tasks.list.dates',
  'a time that its zone pushes past the year 9999 is later than everything',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create();
    expect((await desk.list({ created_before: '9999-12-31T23:59:59-14:00' })).total_count).toBe(1);
  },
);

proves('tasks.list.dates', 'a day that does not exist is refused', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  expect((await desk.server.call('task_list', { created_after: '2026-02-30' })).isError).toBe(true);
});

proves('tasks.list.dates', 'a date with something behind it is refused', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  expect((await desk.server.call('task_list', { created_after: '2026-04-08 (about)' })).isError).toBe(true);
});

proves(
  ['tasks.list.search', 'tasks.list.search-safe'],
  'search finds words and prefixes in title and description, as just written, whatever is in it',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    await desk.create({ title: 'Wire up the task handler', description: 'Zod validation, then SQLite.' });
    await desk.create({
      title: 'Überarbeite "quoted" C++ parser',
      description: '東京タワーを直す 🚀 100% a_b',
    });

    for (const [search, ids] of [
      ['wire', ['T-0001']],
      ['WIR', ['T-0001']],
      ['hand zod', ['T-0001']],
      ['sqlite wire', ['T-0001']],
      ['ire', []],
      ['wire parser', []],
      ['überarb', ['T-0002']],
      ['uberarbeite', ['T-0002']],
      ['"quoted"', ['T-0002']],
      ['"', ['T-0002']],
      ['C++', ['T-0002']],
      ['タワー', ['T-0002']],
      ['京', ['T-0002']],
      ['🚀', ['T-0002']],
      ['🦜', []],
      ['100%', ['T-0002']],
      ['%', ['T-0002']],
      ['_', ['T-0002']],
      ['a_b', ['T-0002']],
      ['%ire%', []],
      ['w_re', []],
      ['AND', []],
      ['wire OR parser', []],
      ['NOT', []],
      ['wire*', ['T-0001']],
      ['title:wire', []],
      ['*', []],
      ['', ['T-0002', 'T-0001']],
      [' \n\t', ['T-0002', 'T-0001']],
    ] as const) {
      expect.soft(await desk.listIds({ search }), JSON.stringify(search)).toEqual(ids);
    }

    await desk.update('T-0001', { title: 'Rewired', description: '' });
    expect(await desk.listIds({ search: 'wire' })).toEqual([]);
    expect(await desk.listIds({ search: 'zod' })).toEqual([]);
    expect(await desk.listIds({ search: 'rewired' })).toEqual(['T-0001']);
    expect(await desk.listIds({ search: 'rewired', project: 'other' })).toEqual([]);
    expect(await desk.list({ search: 'parser', limit: 1, offset: 1 })).toMatchObject({
      total_count: 1,
      returned_count: 0,
    });
  },
);

proves(
  'tasks.list.search',
  'tasks are found on both sides of the end of the index: by this server, by the next and by a person, after kill -9 too',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const create = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => desk.create({ title: `common word${i}x` })));
    await create(130);
    // Nobody asks for anything, so the server finds the time.
    await vi.waitFor(() => expect(notIndexed(colibri)).toBe(0), { timeout: 10_000, interval: 50 });
    await create(20);
    await desk.update('T-0001', { title: 'common early' });
    await desk.update('T-0150', { title: 'common late' });
    await desk.server.killHard();

    const next = await openDesk(colibri);
    expect(notIndexed(colibri)).toBe(20);
    expect(await next.list({ search: 'common', limit: 10, offset: 140 })).toMatchObject({
      total_count: 150,
      returned_count: 10,
    });
    expect(await next.listIds({ search: 'early' })).toEqual(['T-0001']);
    expect(await next.listIds({ search: 'late com' })).toEqual(['T-0150']);
    const { code, stdout } = await runColibri(colibri, ['search', 'late', '--json']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('T-0150')]);
    expect(await runColibri(colibri, ['verify'])).toMatchObject({ code: 0 });

    await next.create({ title: 'one more' });
    await next.server.closeInput();
    expect(notIndexed(colibri)).toBe(0);
    expect(await runColibri(colibri, ['verify'])).toMatchObject({ code: 0 });
  },
);

proves(
  'tasks.list.search',
  'few tasks wait for the index where somebody searches, and no call waits for the index where somebody else writes',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const create = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => desk.create({ title: `word${i}` })));
    await create(1);
    const db = openDatabase(colibri.dbPath);
    let waiting = 0;
    // On a slow machine the server may find the time before the database is locked.
    for (let rounds = 0; waiting === 0 && rounds < 20; rounds += 1) {
      await create(200);
      db.exec('BEGIN IMMEDIATE');
      waiting = notIndexed(colibri);
      await sleep(20 * LIMITS.quietMs);
      db.exec('ROLLBACK');
    }
    await sleep(20 * LIMITS.quietMs);
    // It has not waited for the lock.
    expect(notIndexed(colibri)).toBe(waiting);
    db.close();

    await desk.list({ search: 'word' });
    await create(200);
    await desk.server.killHard();
    expect(notIndexed(colibri)).toBeLessThan(LIMITS.newTasksDue);
  },
);

proves(
  'tasks.tamper.copies',
  'an index that ends long before the tasks is a finding',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const count = LIMITS.newTasksMax + 20;
    await Promise.all(Array.from({ length: count }, (_, i) => desk.create({ title: `word${i}` })));
    expect(notIndexed(colibri)).toBeLessThan(LIMITS.newTasksMax);
    await desk.server.closeInput();
    const db = openDatabase(colibri.dbPath);
    db.exec('DELETE FROM task_words WHERE rowid > 20');
    db.close();

    const { code, stdout } = await runColibri(colibri, ['verify', '--json']);

    expect(code).toBe(1);
    expect(stdout).toContain(`task_words ends ${LIMITS.newTasksMax} tasks or more before task ${count}`);
  },
);

proves('tasks.list.search', 'a row planted behind the index hides no new task', async ({ colibri }) => {
  await runColibri(colibri, ['add', 'alpha', '--project', 'p']);
  const db = openDatabase(colibri.dbPath);
  db.exec("INSERT INTO task_words_content VALUES (1 << 60, 'a', 'b')");
  db.close();

  await runColibri(colibri, ['add', 'beta', '--project', 'p']);
  const { stdout } = await runColibri(colibri, ['search', 'beta']);

  expect(stdout).toContain('T-0002');
  expect(await runColibri(colibri, ['verify'])).toMatchObject({ code: 1 });
});

proves(
  'tasks.list.search',
  'a planted task with a number that nobody can count stops no search and no other call',
  async ({ colibri }) => {
    await runColibri(colibri, ['add', 'alpha', '--project', 'p']);
    const db = openDatabase(colibri.dbPath);
    const names = db.prepare("SELECT name FROM pragma_table_xinfo('tasks') WHERE hidden = 0").pluck().all();
    const values = names.map(
      (name) => ({ id: '9223372036854775807', sequence: '999' })[name as string] ?? name,
    );
    db.exec(`INSERT INTO tasks (${names}) SELECT ${values} FROM tasks WHERE id = 1`);
    db.close();
    const desk = await openDesk(colibri);

    expect(await desk.listIds({ search: 'alpha' })).toContain('T-0001');
    await desk.server.call('task_create', { title: 'beta', project: 'p' });
    expect(await desk.think('T-0001')).toBe('Θ-0001');
    expect(await desk.listIds({ search: 'alpha' })).toContain('T-0001');
  },
);

/** How many tasks are not in the index of words yet. */
function notIndexed({ dbPath }: Playground): number {
  const db = openDatabase(dbPath, { readOnly: true });
  try {
    return db.prepare('SELECT id FROM tasks EXCEPT SELECT rowid FROM task_words').all().length;
  } finally {
    db.close();
  }
}

function summary(task: Output<'task_get'>): Listed {
  const { task_id, title, project, status, priority, progress, assignee, created_at, updated_at } = task;
  return { task_id, title, project, status, priority, progress, assignee, created_at, updated_at };
}

/** An instant as a clock in that zone shows it. */
function inZone(ms: number, zone: string): string {
  const [, sign, hours = '0', minutes = '0'] = /([+-])(\d\d):(\d\d)/.exec(zone) ?? [];
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  return new Date(ms + offset).toISOString().replace('Z', zone);
}

function sorted(tasks: readonly Listed[]): Listed[] {
  return tasks.toSorted((a, b) => text(a.task_id, b.task_id));
}

function text(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
