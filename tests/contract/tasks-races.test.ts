import { expect } from 'vitest';
import { findingsAt } from '../../src/__tests__/tasks/bench.ts';
import type { WireError } from '../driver/message.ts';
import type { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { tier } from '../driver/tier.ts';
import { proves } from './proves.ts';
import { Desk } from './tasks-desk.ts';

const RACES = tier(25, 1_000);
const TIMEOUT_MS = 60_000 + RACES * 100;

interface Runner {
  readonly name: string;
  readonly desk: Desk;
}

/** Two agents, each with a server process of its own, on one file that the first has made. */
async function twoAgents(colibri: Playground): Promise<readonly [Runner, Runner]> {
  const start = async (name: string): Promise<Runner> => {
    const desk = new Desk(await colibri.start({ clientName: name }));
    await desk.list();
    return { name, desk };
  };
  return [await start('ada'), await start('bob')];
}

/** The log is one chain and every row of state is as the log says. */
async function expectSound(colibri: Playground): Promise<void> {
  expect(colibri.readAudit().findings).toEqual([]);
  expect(await findingsAt(colibri.dbPath)).toEqual([]);
}

proves(
  ['tasks.claim.one', 'tasks.claim.holder'],
  `of two processes that take the same task at once one gets it and the other learns who did (${RACES} races)`,
  async ({ colibri }) => {
    const agents = await twoAgents(colibri);
    const random = seededRandom('races for a task');
    const [{ desk }] = agents;
    await Promise.all(Array.from({ length: RACES }, () => desk.create()));
    const ids = Array.from({ length: RACES }, (_, i) => `T-${String(i + 1).padStart(4, '0')}`);
    await Promise.all(ids.map((id) => desk.move(id, 'todo')));
    const wins: Record<string, number> = { ada: 0, bob: 0 };

    for (const task_id of ids) {
      const order = random.oneIn(2) ? agents : agents.toReversed();
      const answers = await Promise.all(
        order.map(async ({ name, desk: own }) => ({
          name,
          answer: await own.server.call('task_update', { task_id, status: 'in_progress', assignee: name }),
        })),
      );
      const winners = answers.filter(({ answer }) => answer.error === undefined);
      const losers = answers.filter(({ answer }) => answer.error !== undefined);
      expect(winners, task_id).toHaveLength(1);
      const winner = winners[0]?.name as string;
      const taken = winners[0]?.answer.envelope?.data;
      wins[winner] = (wins[winner] ?? 0) + 1;
      expect(taken).toMatchObject({ status: 'in_progress', previous_status: 'todo', updated_by: winner });
      expectTold(losers[0]?.answer.error, task_id, winner, taken?.updated_at as string);
    }

    console.error(`${RACES} races: ada won ${wins.ada}, bob won ${wins.bob}`);
    expect((wins.ada ?? 0) + (wins.bob ?? 0)).toBe(RACES);
    const { tasks } = await desk.list({ status: ['in_progress'], limit: 500 });
    for (const task of tasks) expect(['ada', 'bob']).toContain(task.assignee);
    const outcomes = colibri
      .readAudit()
      .rows.filter((row) => row.stage === 'exit' && row.tool === 'task_update');
    expect(outcomes.filter((row) => row.error_code === 'ERR_INVALID_TRANSITION')).toHaveLength(RACES);
    expect(outcomes.filter((row) => row.outcome === 'ok')).toHaveLength(2 * RACES);
    await expectSound(colibri);
  },
  { timeoutMs: TIMEOUT_MS },
);

function expectTold(error: WireError | undefined, task_id: string, holder: string, since: string): void {
  expect(error?.code).toBe('ERR_INVALID_TRANSITION');
  expect(error?.details).toEqual({
    task_id,
    workflow: 'kanban',
    from: 'in_progress',
    to: 'in_progress',
    allowed: ['review', 'blocked', 'cancelled'],
    held_by: holder,
    since,
  });
  expect(error?.message).toContain(`${task_id} has been in_progress since ${since}, set by ${holder}`);
}

proves(
  'tasks.claim.one',
  'the same holds for the last step of a pipeline, with eight calls at once',
  async ({ colibri }) => {
    const agents = await twoAgents(colibri);
    const [{ desk }] = agents;

    for (let round = 0; round < 10; round += 1) {
      const task_id = await desk.create({ workflow: 'pipeline' });
      await desk.think(task_id);
      await desk.move(task_id, 'GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY');
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          agents[i % 2]?.desk.server.call('task_update', { task_id, status: 'DONE' }),
        ),
      );
      // Until the holder has made it, the other is told that it holds the task.
      const codes = answers.map((answer) => answer?.error?.code ?? 'ok');
      expect(codes.filter((code) => code === 'ok')).toHaveLength(1);
      expect(codes[0]).toBe('ok');
      for (const code of codes.slice(1))
        expect(['ERR_INVALID_TRANSITION', 'ERR_TASK_HELD', 'ok']).toContain(code);
    }
    await expectSound(colibri);
  },
);

proves(
  'tasks.concurrent.fields',
  'fields changed at the same time by two processes all keep their last change',
  async ({ colibri }) => {
    const [ada, bob] = await twoAgents(colibri);
    await ada.desk.create();
    const rounds = Math.max(10, Math.floor(RACES / 4));

    for (let i = 0; i < rounds; i += 1) {
      const hers = { title: `title ${i}`, progress: i % 100, labels: [`l${i}`] };
      const his = { description: `description ${i}`, assignee: `agent-${i}`, estimate_hours: i % 1_000 };
      await Promise.all([
        ...Object.entries(hers).map(([field, value]) => ada.desk.update('T-0001', { [field]: value })),
        ...Object.entries(his).map(([field, value]) => bob.desk.update('T-0001', { [field]: value })),
      ]);
      const seen = [await ada.desk.get('T-0001'), await bob.desk.get('T-0001')];
      expect(seen[0]).toMatchObject({ ...hers, ...his });
      expect(seen[1]).toEqual(seen[0]);
    }
    await expectSound(colibri);
  },
);

proves(
  'tasks.concurrent.counts',
  'children that end at the same time in two processes are both counted',
  async ({ colibri }) => {
    const [ada, bob] = await twoAgents(colibri);

    for (let round = 0; round < 15; round += 1) {
      const parent_id = await ada.desk.create();
      const children = await Promise.all([
        ada.desk.create({ parent_id }),
        bob.desk.create({ parent_id }),
        ada.desk.create({ parent_id }),
        bob.desk.create({ parent_id }),
      ]);
      const before = await ada.desk.get(parent_id);
      await Promise.all(children.map((id, i) => (i % 2 === 0 ? ada : bob).desk.move(id, 'cancelled')));
      const after = await bob.desk.get(parent_id);
      expect([before.dependencies_unmet, after.dependencies_unmet]).toEqual([4, 0]);
    }
    await expectSound(colibri);
  },
);

proves(
  'tasks.concurrent.counts',
  'two halves of a cycle tied at the same time: one of them is refused',
  async ({ colibri }) => {
    const [ada, bob] = await twoAgents(colibri);

    for (let round = 0; round < 15; round += 1) {
      const [one, two] = [await ada.desk.create(), await bob.desk.create()];
      const answers = await Promise.all([
        ada.desk.server.call('task_update', { task_id: one, depends_on: [two] }),
        bob.desk.server.call('task_update', { task_id: two, depends_on: [one] }),
      ]);
      const codes = answers.map((answer) => answer.error?.code ?? 'ok').sort();
      expect(codes).toEqual(['ERR_CIRCULAR_DEPENDENCY', 'ok']);
    }
  },
);

proves(
  'tasks.concurrent.counts',
  'ids and sequences given out by two processes never repeat',
  async ({ colibri }) => {
    const agents = await twoAgents(colibri);
    const made = await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        (agents[i % 2] as Runner).desk.ok('task_create', {
          title: `t${i}`,
          project: i % 3 === 0 ? 'a' : 'b',
        }),
      ),
    );
    const tasks = await Promise.all(made.map(({ task_id }) => agents[0].desk.get(task_id)));

    expect(new Set(made.map(({ task_id }) => task_id)).size).toBe(120);
    for (const [project, count] of [
      ['a', 40],
      ['b', 80],
    ] as const) {
      const sequences = tasks.filter((task) => task.project === project).map((task) => task.sequence);
      expect(sequences.sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i + 1));
    }
    await expectSound(colibri);
  },
);

proves('tasks.list.search', 'what one process wrote is found by the other at once', async ({ colibri }) => {
  const [ada, bob] = await twoAgents(colibri);
  await ada.desk.create();

  for (let i = 0; i < 30; i += 1) {
    await ada.desk.update('T-0001', { title: `word${i} stays` });
    expect(await bob.desk.listIds({ search: `word${i}` })).toEqual(['T-0001']);
    if (i > 0) expect(await bob.desk.listIds({ search: `word${i - 1} stays` })).toEqual([]);
  }
});
