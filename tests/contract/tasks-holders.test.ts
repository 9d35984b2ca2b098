import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { findingsAt } from '../../src/__tests__/tasks/bench.ts';
import { runColibri } from '../driver/command-line.ts';
import { modernMeta } from '../driver/era.ts';
import type { Playground, StartOptions } from '../driver/playground.ts';
import { type ServerProcess, sleepMs } from '../driver/server-process.ts';
import { proves } from './proves.ts';
import { type Desk, openDesk, type Refusal } from './tasks-desk.ts';

// A2: who holds a task. Every holder is a real process, or a person at the real command line.

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const LEASE_MS = 31 * 60_000;
const waited = new WeakSet<Playground>();

const agent = (colibri: Playground, clientName: string, options: StartOptions = {}) =>
  openDesk(colibri, { ...options, clientName });

/** A task that a desk has claimed. */
async function claimed(desk: Desk, changes: object = {}, moves = ['todo', 'in_progress']): Promise<string> {
  const task_id = await desk.create(changes);
  await desk.move(task_id, ...moves);
  return task_id;
}

function expectHeld(error: Refusal, task_id: string, held_by: string, present: boolean): void {
  expect(error.code).toBe('ERR_TASK_HELD');
  const times = { since: expect.stringMatching(TIME), last_seen: expect.stringMatching(TIME) };
  expect(error.details).toEqual({ task_id, held_by, present, ...times });
  for (const part of [held_by, task_id, error.details.since, error.details.last_seen, 'takeover: true'])
    expect(error.message).toContain(part);
  expect(error.message).toContain(present ? 'still running' : 'its process is gone');
}

/** Nothing is wrong in the log, and every call of it gives the same again. */
async function expectSound(colibri: Playground): Promise<void> {
  expect(await findingsAt(colibri.dbPath)).toEqual([]);
}

/**
 * A server whose clock is ahead: for what happens only after a long silence. On a server of a database, whose clock counts, the
 * lease is as short as it can be, and waited for.
 */
async function later(colibri: Playground, ms: number): Promise<{ env: Record<string, string> }> {
  if (!colibri.isOnFile) {
    if (!waited.has(colibri)) await sleepMs(61_000);
    waited.add(colibri);
    return { env: { COLIBRI_LEASE_MINUTES: '1' } };
  }
  const path = colibri.path('later.mjs');
  const shift = `const now = Date.now; Date.now = () => now() + ${ms};\n`;
  writeFileSync(path, shift);
  return { env: { NODE_OPTIONS: `--import=${path}` } };
}

proves(
  ['tasks.hold.refused', 'tasks.hold.takeover', 'tasks.hold.end'],
  'another agent cannot move a held task, can take it over, and the former holder is told',
  async ({ colibri }) => {
    const [ada, bob] = [await agent(colibri, 'ada'), await agent(colibri, 'bob')];
    const task_id = await claimed(ada);
    const { holder } = await bob.get(task_id);

    const refused = await bob.refused('task_update', { task_id, status: 'review' });
    const edited = await bob.update(task_id, { progress: 40 });
    const taken = await bob.update(task_id, { takeover: true });
    const former = await ada.refused('task_update', { task_id, status: 'review' });
    const person = await runColibri(colibri, ['move', task_id, 'review']);
    const again = await bob.update(task_id, { status: 'in_progress', takeover: true });
    const back = await ada.update(task_id, { status: 'review', takeover: true });

    expect(holder).toMatchObject({ held_by: 'ada', present: true, abandoned: false });
    expectHeld(refused, task_id, 'ada', true);
    expect(edited).not.toHaveProperty('taken_over_from');
    expect(taken).toMatchObject({ status: 'in_progress', progress: 40 });
    expect(taken).not.toHaveProperty('previous_status');
    expect(taken.taken_over_from).toEqual({
      ...{ held_by: 'ada', since: holder?.since, present: true },
      last_seen: expect.stringMatching(TIME),
    });
    expectHeld(former, task_id, 'bob', true);
    expect(former.message).toContain(`bob took ${task_id} over from ada`);
    expect(person.code).toBe(1);
    expect(person.stderr).toContain(`colibri move ${task_id} review --takeover`);
    expect(again).not.toHaveProperty('taken_over_from');
    expect(back).toMatchObject({ status: 'review', taken_over_from: { held_by: 'bob' } });
    expect(await ada.get(task_id)).not.toHaveProperty('holder');
    await expectSound(colibri);
    // What comes before is not known here, so that each call is judged alone.
    const told = await runColibri(colibri, ['log', '--limit', '2']);
    expect(told).toMatchObject({ code: 0, stderr: '' });
    expect(told.stdout).toMatch(/bob +changed .*: takeover true\n/);
    expect(told.stdout).toMatch(/ada +moved .*: in_progress → review; taken over from bob, silent since 2/);
  },
);

proves(
  'tasks.hold.takeover',
  'there is nothing to take over where nobody holds the task, and the step is checked before the hold',
  async ({ colibri }) => {
    const [ada, bob] = [await agent(colibri, 'ada'), await agent(colibri, 'bob')];
    const free = await ada.create();
    const held = await claimed(ada);

    const nothing = await bob.refused('task_update', { task_id: free, takeover: true });
    const twice = await bob.refused('task_update', { task_id: free, status: 'backlog', takeover: true });
    const step = await bob.refused('task_update', { task_id: held, status: 'done' });
    const claim = await bob.refused('task_update', { task_id: held, status: 'in_progress' });
    const wrong = await bob.refused('task_update', { task_id: held, status: 'done', takeover: true });

    for (const error of [nothing, twice, step, claim, wrong])
      expect(error.code).toBe('ERR_INVALID_TRANSITION');
    expect(nothing.message).toContain(`Nobody holds ${free}`);
    expect(claim.details).toMatchObject({ held_by: 'ada', since: expect.stringMatching(TIME) });
    expect(await ada.get(held)).toMatchObject({ holder: { held_by: 'ada' } });
  },
);

proves(
  ['tasks.hold.process', 'tasks.abandoned'],
  'two processes of one client are two holders, until the one that holds is killed',
  async ({ colibri }) => {
    const [one, two] = [await agent(colibri, 'ada'), await agent(colibri, 'ada')];
    const task_id = await claimed(one);
    const other = await claimed(one);

    const refused = await two.refused('task_update', { task_id, status: 'review' });
    const beside = await two.next();
    await one.server.killHard();
    const bob = await agent(colibri, 'bob');
    const [mine, theirs] = [await two.next(), await bob.next()];
    const held = await bob.refused('task_update', { task_id, status: 'review' });
    const moved = await two.update(task_id, { status: 'review' });
    const taken = await bob.update(other, { takeover: true });

    expectHeld(refused, task_id, 'ada', true);
    expect([beside.yours, beside.abandoned]).toEqual([undefined, undefined]);
    const both = [task_id, other].map((id) => ({ task_id: id, held_by: 'ada', present: false }));
    expect(mine.yours).toMatchObject(both);
    expect(mine.abandoned).toBeUndefined();
    expect(theirs.abandoned).toMatchObject(both);
    expect(theirs.hint).toContain('was abandoned. Take it over');
    expectHeld(held, task_id, 'ada', false);
    expect(moved.taken_over_from).toMatchObject({ held_by: 'ada', present: false });
    expect(taken.taken_over_from).toMatchObject({ held_by: 'ada', present: false });
    await expectSound(colibri);
  },
);

proves(
  ['tasks.hold.unseen', 'tasks.abandoned'],
  'a sleeping holder is present; after the lease its task is shown as abandoned, and still is its own',
  async ({ colibri }) => {
    const ada = await agent(colibri, 'ada');
    const task_id = await claimed(ada);
    ada.server.kill('SIGSTOP');
    const soon = await agent(colibri, 'bob');
    const early = await soon.get(task_id);
    const bob = await agent(colibri, 'bob', await later(colibri, LEASE_MS));

    const next = await bob.next();
    const { holder } = await bob.get(task_id);
    const refused = await bob.refused('task_update', { task_id, status: 'review' });
    const board = await runColibri(colibri, ['board'], await later(colibri, LEASE_MS));
    ada.server.kill('SIGCONT');
    const awake = await ada.update(task_id, { status: 'review' });

    expect(early.holder).toMatchObject({ held_by: 'ada', present: true, abandoned: false });
    expect(next.abandoned).toMatchObject([{ task_id, held_by: 'ada', present: true }]);
    expect(holder).toMatchObject({ held_by: 'ada', present: true, abandoned: true });
    expectHeld(refused, task_id, 'ada', true);
    expect(board.stdout).toContain('abandoned');
    expect(awake).not.toHaveProperty('taken_over_from');
    await expectSound(colibri);
  },
);

const UNSHARE = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc'];

proves(
  'tasks.hold.unseen',
  'a holder in a container that cannot be seen counts as present, even when it has ended',
  async ({ colibri }) => {
    const contained = await agent(colibri, 'ada', { wrapper: UNSHARE });
    const task_id = await claimed(contained);
    const bob = await agent(colibri, 'bob');

    const beside = await bob.refused('task_update', { task_id, status: 'review' });
    await contained.server.closeInput();
    const after = await bob.refused('task_update', { task_id, status: 'review' });
    const restarted = await agent(colibri, 'ada');
    const same = await restarted.refused('task_update', { task_id, status: 'review' });
    const taken = await restarted.update(task_id, { status: 'review', takeover: true });

    for (const error of [beside, after, same]) expectHeld(error, task_id, 'ada', true);
    expect(taken.taken_over_from).toMatchObject({ held_by: 'ada', present: true });
    await expectSound(colibri);
  },
  { unless: canUnshare() ? undefined : 'user namespaces are not allowed here' },
);

function canUnshare(): boolean {
  try {
    return readFileSync('/proc/sys/user/max_user_namespaces', 'utf8').trim() !== '0';
  } catch {
    return false;
  }
}

proves(
  'tasks.hold.assignee',
  'an orchestrator claims and assigns, and the worker goes on to the end',
  async ({ colibri }) => {
    const [boss, worker] = [await agent(colibri, 'boss'), await agent(colibri, 'worker')];
    const task_id = await boss.create({ workflow: 'pipeline' });
    await boss.update(task_id, { status: 'GATHER', assignee: 'worker' });
    const hidden = await worker.next();

    const handed = await worker.update(task_id, { status: 'ANALYZE' });
    const told = await boss.refused('task_update', { task_id, status: 'PLAN' });
    const [mine, others] = [await worker.next(), await boss.next()];
    await worker.think(task_id);
    await worker.move(task_id, 'PLAN', 'APPLY', 'VERIFY', 'DONE');

    expect(hidden).toMatchObject({ count: 0 });
    expect(handed.taken_over_from).toMatchObject({ held_by: 'boss', present: true });
    expectHeld(told, task_id, 'worker', true);
    expect(mine).toMatchObject({
      next_actions: [{ task_id, status: 'ANALYZE' }],
      yours: [{ task_id, status: 'ANALYZE', held_by: 'worker' }],
    });
    expect(others).toMatchObject({ count: 0 });
    expect(await boss.get(task_id)).not.toHaveProperty('holder');
    await expectSound(colibri);
    const [log, stats] = [await runColibri(colibri, ['log']), await runColibri(colibri, ['stats', '--json'])];
    expect(log.stdout).toMatch(/worker +moved .*: GATHER → ANALYZE; handed over from boss\n/);
    expect(JSON.parse(stats.stdout)).toMatchObject({ abandoned: [] });
  },
);

proves(
  'tasks.hold.assignee',
  'the assignee gets the task from another process of its own name, and back from who took it over',
  async ({ colibri }) => {
    const [one, two] = [await agent(colibri, 'ada'), await agent(colibri, 'ada')];
    const bob = await agent(colibri, 'bob');
    const task_id = await claimed(one, { assignee: 'ada', workflow: 'pipeline' }, ['GATHER']);

    const handed = await two.update(task_id, { status: 'ANALYZE' });
    await bob.update(task_id, { takeover: true });
    const back = await one.update(task_id, { status: 'PLAN' });
    const told = await bob.refused('task_update', { task_id, status: 'APPLY' });

    expect(handed.taken_over_from).toMatchObject({ held_by: 'ada', present: true });
    expect(back.taken_over_from).toMatchObject({ held_by: 'bob', present: true });
    expectHeld(told, task_id, 'ada', true);
    await expectSound(colibri);
  },
);

proves(
  'tasks.hold.gateway',
  'a gateway that serves many is a holder for each name, and each has a lease of its own',
  async ({ colibri }) => {
    const gateway = await colibri.start({ era: 'modern' });
    const as = (server: ServerProcess, clientName: string) => async (tool: string, args: object) => {
      const { envelope, error } = await server.callModern(tool, args, modernMeta({ clientName }));
      return (error ?? envelope?.data) as Record<string, unknown>;
    };
    const [ada, bob] = [as(gateway, 'ada'), as(gateway, 'bob')];
    await ada('task_create', { title: 't', project: 'p' });
    for (const status of ['todo', 'in_progress']) await ada('task_update', { task_id: 'T-0001', status });

    const refused = await bob('task_update', { task_id: 'T-0001', status: 'review' });
    const [yours, theirs] = [await ada('task_next_actions', {}), await bob('task_next_actions', {})];
    // The gateway goes on for bob, and ada is silent. Its own clock is jumped over by another process.
    const desk = await openDesk(colibri, { clientName: 'eve', ...(await later(colibri, LEASE_MS)) });
    await desk.list();
    await bob('server_ping', {});
    const { holder } = await desk.get('T-0001');
    const taken = await bob('task_update', { task_id: 'T-0001', status: 'review', takeover: true });

    expect(refused).toMatchObject({ code: 'ERR_TASK_HELD', details: { held_by: 'ada', present: true } });
    expect(yours).toMatchObject({ yours: [{ task_id: 'T-0001' }] });
    expect(theirs).not.toHaveProperty('yours');
    expect(theirs).not.toHaveProperty('abandoned');
    expect(holder).toMatchObject({ held_by: 'ada', present: true, abandoned: true });
    expect(taken).toMatchObject({ taken_over_from: { held_by: 'ada', present: true } });
    await expectSound(colibri);
  },
);

proves(
  'tasks.hold.person',
  'a person at the command line holds a task without a process or a lease',
  async ({ colibri }) => {
    const call = async (tool: string, args: object, env: Readonly<Record<string, string>>) => {
      const { stdout } = await runColibri(colibri, ['call', tool, JSON.stringify(args)], { env });
      return JSON.parse(stdout) as { data: Record<string, unknown> };
    };
    const ana = { COLIBRI_AGENT_ID: 'Ana' };
    await call('task_create', { title: 't', project: 'p' }, ana);
    for (const status of ['todo', 'in_progress'])
      await call('task_update', { task_id: 'T-0001', status }, ana);
    const bob = await agent(colibri, 'bob', await later(colibri, LEASE_MS));

    const refused = await bob.refused('task_update', { task_id: 'T-0001', status: 'review' });
    const next = await bob.next();
    const { holder } = await bob.get('T-0001');
    const own = await call('task_next_actions', {}, ana);
    const moved = await call(
      'task_update',
      { task_id: 'T-0001', status: 'blocked', blocked_reason: 'x' },
      ana,
    );

    expect(refused.code).toBe('ERR_TASK_HELD');
    expect(refused.message).toContain('a person at the command line');
    expect(refused.details).not.toHaveProperty('last_seen');
    expect(next.abandoned).toBeUndefined();
    expect(holder).toEqual({
      ...{ held_by: 'Ana', since: expect.stringMatching(TIME), present: true, abandoned: false },
    });
    expect(own.data).toMatchObject({ yours: [{ task_id: 'T-0001', held_by: 'Ana' }] });
    expect(moved.data).toMatchObject({ status: 'blocked' });
    expect(moved.data).not.toHaveProperty('taken_over_from');
    await expectSound(colibri);
  },
);

proves(
  'tasks.history',
  'the history of a task tells who did what, what was refused and who took it over, newest first',
  async ({ colibri }) => {
    const [ada, bob] = [await agent(colibri, 'ada'), await agent(colibri, 'bob')];
    const task_id = await claimed(ada, { title: 'A title' });
    await bob.refused('task_update', { task_id, status: 'review' });
    await bob.update(task_id, { takeover: true });
    await bob.update(task_id, { description: 'x'.repeat(300) });
    await bob.think(task_id);
    const { history = [], history_total } = await ada.ok('task_get', { task_id, include_history: true });

    const told = history.map(
      ({ actor, tool, outcome, error_code, args, previous_status, taken_over_from }) => {
        return { actor, tool, outcome, error_code, args, previous_status, from: taken_over_from?.held_by };
      },
    );
    expect(told).toMatchObject([
      { actor: 'bob', tool: 'thought_record', args: { type: 'decision', content: 'because' } },
      { actor: 'bob', tool: 'task_update', args: { description: `${'x'.repeat(200)}…` } },
      { actor: 'bob', tool: 'task_update', args: { takeover: true }, from: 'ada' },
      { actor: 'bob', outcome: 'error', error_code: 'ERR_TASK_HELD', args: { status: 'review' } },
      { actor: 'ada', args: { status: 'in_progress' }, previous_status: 'todo' },
      { actor: 'ada', args: { status: 'todo' }, previous_status: 'backlog' },
      { actor: 'ada', tool: 'task_create', outcome: 'ok', args: { title: 'A title', project: 'p' } },
    ]);
    expect(history_total).toBe(7);
    expect(history.find(({ outcome }) => outcome === 'error')?.message).toContain('ada has held');
    for (const { at } of history) expect(at).toMatch(TIME);

    const run = (...args: string[]) => runColibri(colibri, args);
    const session_id = 'A-0001';
    await run('call', 'audit_session_start', JSON.stringify({ task_id, auditor_id: 'eve' }));
    await bob.think(task_id);
    await run('call', 'merkle_finalize', JSON.stringify({ session_id }));
    const sealed = await ada.ok('task_get', { task_id, include_history: true });
    const seal = { tool: 'merkle_finalize', outcome: 'ok', args: { session_id } };
    expect(sealed.history?.[0]).toMatchObject(seal);
    expect(sealed.history_total).toBe(10);
    const shown = JSON.parse((await run('show', task_id, '--json')).stdout);
    expect(shown.history.at(-1).row).toMatchObject({ tool: seal.tool, outcome: seal.outcome });
    expect((await run('log', '--task', task_id)).stdout).toContain(session_id);

    for (let i = 0; i < 60; i += 1) await bob.update(task_id, { progress: i });
    const more = await ada.ok('task_get', { task_id, include_history: true });
    expect(more.history).toHaveLength(50);
    expect(more.history_total).toBe(70);
    expect(more.history?.[0]?.args).toEqual({ progress: 59 });
  },
);
