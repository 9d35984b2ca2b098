import { expect } from 'vitest';
import type { ServerProcess } from '../driver/server-process.ts';
import { proves } from './proves.ts';
import { Desk, openDesk } from './tasks-desk.ts';
import { callsIn, DOCUMENTS, type MakeCall, TaughtAgent, type Turn } from './taught-agent.ts';

// A1: connect, ask what to do, and get something to do. The loop that is taught is followed to the letter.

const calling =
  (server: ServerProcess): MakeCall =>
  async (tool, args) => {
    const { error, envelope } = await server.call(tool, args);
    return { data: (envelope?.data ?? {}) as Record<string, unknown>, error };
  };

/** Turns until there is nothing to do. */
async function workToTheEnd(agent: TaughtAgent): Promise<Turn[]> {
  const turns: Turn[] = [];
  while (turns.at(-1) !== 'nothing to do' && turns.length < 60) turns.push(await agent.turn());
  return turns;
}

for (const [name, document] of Object.entries(DOCUMENTS)) {
  proves(
    'agents.loop',
    `the loop of the ${name} gets an agent from an empty project to a finished task`,
    async ({ colibri }) => {
      const desk = await openDesk(colibri);
      const agent = new TaughtAgent(document, calling(desk.server));

      const turns = await workToTheEnd(agent);

      expect(turns).toEqual(['followed the hint', 'followed the hint', 'finished', 'nothing to do']);
      expect(agent.refusals).toEqual([]);
      expect(await desk.get('T-0001')).toMatchObject({ status: 'done' });
    },
  );
}

proves('agents.loop', 'it works through a full backlog', async ({ colibri }) => {
  const desk = await openDesk(colibri);
  for (let i = 0; i < 6; i += 1)
    await desk.create({ ...(i % 3 === 2 && { workflow: 'pipeline' as const, depends_on: ['T-0001'] }) });
  const agent = new TaughtAgent(DOCUMENTS.skill, calling(desk.server));

  const turns = await workToTheEnd(agent);

  expect(turns.filter((turn) => turn === 'finished')).toHaveLength(6);
  expect(agent.refusals).toEqual([]);
  const { tasks } = await desk.list();
  expect(new Set(tasks.map(({ status }) => status.toLowerCase()))).toEqual(new Set(['done']));
});

proves('agents.loop', 'it works beside a second agent that follows it too', async ({ colibri }) => {
  const [ada, bob] = [
    await openDesk(colibri, { clientName: 'ada' }),
    await openDesk(colibri, { clientName: 'bob' }),
  ];
  for (let i = 0; i < 8; i += 1) await ada.move(await ada.create(), 'todo');
  const agents = [ada, bob].map((desk, i) => {
    return new TaughtAgent(Object.values(DOCUMENTS)[i] ?? '', calling(desk.server));
  });

  await Promise.all(agents.map(workToTheEnd));

  const { tasks } = await ada.list({ status: ['done'] });
  expect(tasks).toHaveLength(8);
  // Both are offered the same tasks. Who comes second is told who was first, and goes on with another one. What is in
  // review nobody holds: whoever has nothing else to do may finish it.
  for (const { code, details } of agents.flatMap(({ refusals }) => refusals)) {
    expect(code).toBe('ERR_INVALID_TRANSITION');
    expect(details?.held_by ?? details?.status_by).toMatch(/^(ada|bob)$/);
  }
});

proves('agents.loop', 'after a restart it goes on with what it held', async ({ colibri }) => {
  const first = await openDesk(colibri, { clientName: 'ada' });
  const task_id = await first.create();
  await first.move(task_id, 'todo');
  const before = new TaughtAgent(DOCUMENTS.skill, calling(first.server));
  expect(await before.claim()).toMatchObject({ task_id });
  await first.server.killHard();
  const second = await openDesk(colibri, { clientName: 'ada' });
  const after = new TaughtAgent(DOCUMENTS.skill, calling(second.server));

  const next = await second.next();
  const turn = await after.turn();

  expect(next.yours).toMatchObject([{ task_id, status: 'in_progress', held_by: 'ada', present: false }]);
  expect(next.abandoned).toBeUndefined();
  expect([turn, after.refusals]).toEqual(['finished', []]);
});

proves(
  ['agents.loop', 'tasks.next.hint'],
  'a hint says how many tasks wait and which call brings one forward',
  async ({ colibri }) => {
    const desk = await openDesk(colibri);
    const hint = async () => (await desk.next()).hint ?? '';

    expect(callsIn(await hint())).toEqual([
      { tool: 'task_create', args: { title: 'What to do', project: 'my-project' } },
    ]);
    const low = await desk.create({ priority: 'low' });
    const high = await desk.create({ priority: 'high' });
    expect(await hint()).toContain('2 tasks wait in backlog');
    expect(callsIn(await hint())[0]).toEqual({
      tool: 'task_update',
      args: { task_id: high, status: 'todo' },
    });
    await desk.move(high, 'todo');
    expect((await desk.next()).hint).toBeUndefined();
    await desk.update(high, { depends_on: [low] });
    expect(await hint()).toContain('1 listed task waits for others to be finished. 1 task waits in backlog');
    await desk.move(low, 'todo', 'in_progress', 'review');
    expect(callsIn(await hint())[0]).toEqual({ tool: 'task_update', args: { task_id: low, status: 'done' } });
    await desk.think(low);
    await desk.move(low, 'done');
    await desk.move(high, 'blocked');
    expect(await hint()).toBe('1 task is blocked. With include_blocked, you see what they wait for.');
    const blocked = await desk.next({ include_blocked: true });
    expect(blocked.hint).toBe(
      '1 task is blocked. When what a blocked_reason says is over, set that task to todo.',
    );
    await desk.move(high, 'cancelled');
    expect(await hint()).toBe('Nothing is left to claim: every task is finished or held by someone else.');
  },
);

proves(
  'agents.claim.reasons',
  'a claim from the backlog says which step comes first, and nothing of a holder',
  async ({ colibri }) => {
    const desk = new Desk(await colibri.start({ clientName: 'ada' }));
    const task_id = await desk.create();

    const error = await desk.refused('task_update', { task_id, status: 'in_progress' });

    expect(error.code).toBe('ERR_INVALID_TRANSITION');
    expect(error.details).toMatchObject({ first: 'todo', allowed: ['todo', 'cancelled'] });
    expect(error.details).not.toHaveProperty('held_by');
    expect(error.message).toContain('Set it to todo first.');
    expect(error.message).not.toContain('held');
  },
);
