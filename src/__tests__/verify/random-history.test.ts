import { expect, test } from 'vitest';
import { systemClock } from '../../clock.ts';
import type { Subject } from '../../domains/trail/tools.ts';
import { verifyChain } from '../../verify/chain.ts';
import type { Bench } from '../tasks/bench.ts';
import { freshBench, verdictOf } from './history.ts';

/** Small numbers that come again for the same seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

const STATUSES = [
  'todo',
  'in_progress',
  'review',
  'done',
  'blocked',
  'backlog',
  'cancelled',
  'GATHER',
  'ANALYZE',
  'PLAN',
  'APPLY',
  'VERIFY',
  'DONE',
  'CANCELLED',
];

async function live(bench: Bench, seed: number, calls: number): Promise<{ tasks: number; sessions: number }> {
  const random = randomFrom(seed);
  const pick = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const made = { tasks: 0, sessions: 0 };
  const status = new Map<string, string>();
  const task = () => `T-${String(1 + random(made.tasks + 1)).padStart(4, '0')}`;
  const session = () => `A-${String(1 + random(made.sessions + 1)).padStart(4, '0')}`;
  const maybe = (odds: number, fields: object) => (random(odds) === 0 ? fields : {});
  const actions: (() => Promise<unknown>)[] = [
    async () => {
      const args = {
        ...{ title: `t${random(99)}`, project: pick(['p', 'q']), workflow: pick(['kanban', 'pipeline']) },
        ...{
          ...maybe(2, { parent_id: task() }),
          ...maybe(3, { depends_on: [task(), task()] }),
          ...maybe(4, { proof_grade: true }),
        },
      };
      if ((await bench.call('task_create', args)).ok) made.tasks += 1;
    },
    async () =>
      await bench.call(
        'thought_record',
        {
          task_id: task(),
          type: 'plan',
          content: `c${random(999)}`,
          ...maybe(6, { session_id: session() }),
          ...maybe(5, { metadata: { n: random(9) } }),
        },
        pick(['ada', 'bob']),
      ),
    async () => {
      const task_id = task();
      const to =
        random(3) === 0 ? pick(STATUSES) : (NEXT[status.get(task_id) ?? 'backlog'] ?? pick(STATUSES));
      const fields = {
        ...maybe(6, { progress: random(101) }),
        ...maybe(5, { depends_on: [task()] }),
        ...maybe(6, { labels: ['x', 'y'] }),
      };
      const answer = await bench.call<{ status: string }>(
        'task_update',
        { task_id, status: to, blocked_reason: 'r', ...fields },
        pick(['ada', 'bob']),
      );
      if (answer.ok) status.set(task_id, answer.data.status);
    },
    async () => {
      if (
        (
          await bench.call('audit_session_start', {
            task_id: task(),
            auditor_id: 'a',
            scope: pick(['deep', 'shallow']),
          })
        ).ok
      )
        made.sessions += 1;
    },
    async () =>
      await bench.call('merkle_finalize', { session_id: session(), ...maybe(4, { task_id: task() }) }),
    async () => await bench.call('task_get', { task_id: task() }),
    async () => await bench.call('task_update', { task_id: task(), nonsense: 1 }),
  ];
  const odds = [0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 4, 5, 6];
  // In batches of any size: of those that wait together, each is judged on what the ones before it left.
  for (let left = calls; left > 0; ) {
    const size = Math.min(left, 1 + random(pick([1, 4, 40])));
    await Promise.all(Array.from({ length: size }, () => actions[pick(odds)]?.()));
    left -= size;
  }
  return made;
}

const NEXT: Readonly<Record<string, string>> = {
  ...{ backlog: 'todo', todo: 'in_progress', in_progress: 'review', review: 'done', blocked: 'todo' },
  ...{ INIT: 'GATHER', GATHER: 'ANALYZE', ANALYZE: 'PLAN', PLAN: 'APPLY', APPLY: 'VERIFY', VERIFY: 'DONE' },
};

test.each([1, 2, 3])(
  'what the five stages wrote is sound, whole and in part (seed %i)',
  async (seed) => {
    const bench = await freshBench();
    const { tasks, sessions } = await live(bench, seed, 400);

    const { verdict, findings } = await verdictOf(bench.storage);
    const options = { trace: false, pause: async () => undefined, clock: systemClock };
    const subjects: Subject[] = [
      ...Array.from({ length: tasks }, (_, i): Subject => ({ kind: 'task', id: i + 1 })),
      ...Array.from({ length: sessions }, (_, i): Subject => ({ kind: 'session', id: i + 1 })),
    ];
    const broken: unknown[] = [];
    for (const subject of subjects)
      broken.push(...(await bench.storage.read((tx) => verifyChain(tx, subject, options))).broken);
    await bench.close();

    expect(findings).toEqual([]);
    expect(verdict.replayedThrough).toBe(verdict.size);
    expect(broken).toEqual([]);
    expect(tasks * sessions).toBeGreaterThan(10);
  },
  120_000,
);
