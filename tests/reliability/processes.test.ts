import { afterAll, expect } from 'vitest';
import type { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { type ServerProcess, sleepMs, until } from '../driver/server-process.ts';
import { figure, tier } from '../driver/tier.ts';
import { battery, noPython, noStrace } from './battery.ts';
import { Checker } from './checker.ts';
import { type Answered, Recorder } from './recorder.ts';
import { injection, Tracer } from './strace.ts';

const checker = noPython === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

const WRITERS = 4;
const KILL_EVERY_MS = 250;
const RUN_MS = tier(2_500, 60_000);
const KILLS_MIN = tier(5, 100);
/** Promised is 1 s; a machine that does other things meanwhile must not fail the test. */
const WAIT_MS_MAX = 5_000;
const TASK = { title: 'a task', project: 'demo' };

battery(
  'R9',
  `${WRITERS} processes write to one file and one of them is killed every ${KILL_EVERY_MS} ms: nothing acked is lost, nobody is told it is busy`,
  async (colibri) => {
    const random = seededRandom('R9');
    const recorders: Recorder[] = [];
    const errors: string[] = [];
    const living: ServerProcess[] = [];
    let over = false;
    await (await colibri.start()).closeInput();

    /** One place at the table: whoever sits there writes until it is killed, then another sits down. */
    const seat = async (number: number) => {
      while (!over) {
        const server = await colibri.start({ clientName: `seat-${number}` });
        living[number] = server;
        const recorder = new Recorder(server);
        recorders.push(recorder);
        await writeUntilKilled(server, recorder, () => over, errors);
      }
    };
    const seats = Array.from({ length: WRITERS }, (_, number) => seat(number));
    let kills = 0;
    // A busy machine starts servers more slowly than they could be killed: then it takes longer.
    for (const began = performance.now(); performance.now() - began < RUN_MS || kills < KILLS_MIN; ) {
      await sleepMs(KILL_EVERY_MS);
      const victim = random.pick(living.filter((server) => server?.isAlive && server.history.length > 2));
      victim?.kill('SIGKILL');
      kills += victim === undefined ? 0 : 1;
    }
    over = true;
    await Promise.all(seats);
    const last = await colibri.start();
    await last.call('server_health');
    await last.closeInput();

    const acked = recorders.flatMap((recorder) => recorder.acked);
    const verdict = await checker?.judge({ db: colibri.dbPath, acked, settled: true });
    const worstMs = Math.round(Math.max(...recorders.map((recorder) => recorder.worstMs)));
    figure('R9', {
      seconds: RUN_MS / 1_000,
      kills,
      acked: acked.length,
      acked_lost: verdict?.lost ?? -1,
      explained_as_crashed: verdict?.crashed ?? -1,
      worst_wait_ms: worstMs,
    });
    expect(errors).toEqual([]);
    expect(verdict?.findings).toEqual([]);
    expect(worstMs).toBeLessThan(WAIT_MS_MAX);
  },
  { unless: noPython },
);

async function writeUntilKilled(
  server: ServerProcess,
  recorder: Recorder,
  over: () => boolean,
  errors: string[],
): Promise<void> {
  while (!over()) {
    const answer = await recorder.call('task_create', TASK).catch(() => undefined);
    if (answer === undefined) return;
    if (answer.error !== undefined) errors.push(answer.error.message);
  }
  await server.closeInput();
}

for (let round = 0; round < tier(1, 5); round += 1) {
  battery(
    'R10',
    `a process stopped with the write lock in hand: the others say ERR_STORAGE_BUSY at 10 s and not before, and go on when it does (round ${round + 1})`,
    async (colibri) => {
      const stopped = await colibri.start();
      const other = await colibri.start();
      const [slow, quick] = [new Recorder(stopped), new Recorder(other)];
      await slow.data('task_create', TASK);
      await quick.data('task_create', TASK);
      // In the middle of its commit: it has the lock, and its frames are half written.
      const tracer = await Tracer.attach(
        colibri,
        stopped,
        injection({ syscall: 'pwrite64', when: '4', signal: 'STOP' }),
      );

      const held = slow.call('task_create', { ...TASK, title: 'held' });
      await until(
        () => tracer.log.includes('stopped by SIGSTOP'),
        10_000,
        () => 'the server was never stopped',
      );
      const sentMs = performance.now();
      const refused = await quick.call('task_create', { ...TASK, title: 'refused' });
      const waitedMs = performance.now() - sentMs;
      process.kill(stopped.pid, 'SIGCONT');
      const finished = await held;
      const after = await quick.call('task_create', { ...TASK, title: 'after' });
      await stopped.closeInput();
      await other.closeInput();

      figure('R10', { told_after_ms: Math.round(waitedMs) });
      expect(refused.error).toMatchObject({
        message: expect.stringMatching(/^ERR_STORAGE_BUSY: /),
        details: { waited_ms: 10_000 },
      });
      expect(waitedMs).toBeGreaterThanOrEqual(10_000);
      expect(waitedMs).toBeLessThan(12_500);
      expect(finished.error).toBeUndefined();
      expect(after.error).toBeUndefined();
      await expectSound(colibri, [...slow.acked, ...quick.acked]);
    },
    { unless: noStrace, concurrent: true },
  );
}

async function expectSound(colibri: Playground, acked: readonly Answered[]): Promise<void> {
  // A call that could not be begun for want of the lock is known to the client only.
  const owed = acked.filter((call) => !('code' in call && call.code === 'ERR_STORAGE_BUSY'));
  const verdict = await checker?.judge({ db: colibri.dbPath, acked: owed, settled: true });
  expect(verdict?.findings).toEqual([]);
}
