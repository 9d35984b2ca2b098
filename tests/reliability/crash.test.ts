import { readFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import type { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { type ServerProcess, sleepMs } from '../driver/server-process.ts';
import { FULL, figure, tier } from '../driver/tier.ts';
import { battery, eachOf, noStrace } from './battery.ts';
import { Checker, type Question, type Verdict } from './checker.ts';
import { inPlayground, type Point, pointsOf, prepared, sample, verify } from './points.ts';
import { Recorder } from './recorder.ts';
import { countSyscalls, type Fault, injection, Tracer } from './strace.ts';
import { TARGETS } from './targets.ts';

const checker = noStrace === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

async function judge(question: Question): Promise<Verdict> {
  if (checker === undefined) throw new Error('no checker');
  return await checker.judge(question);
}

battery(
  'R3',
  `a server killed at any storage system call of a writing call leaves it whole or not at all (${tier('5 points', 'all points')})`,
  async () => {
    const points = await pointsOf(TARGETS);
    const chosen = sample(points, 5, seededRandom('R3'));
    let acked = 0;
    let whole = 0;
    let crashed = 0;

    await eachOf(chosen, async (point, index) => {
      const result = await inPlayground((colibri) => killAt(colibri, point, FULL || index % 5 === 0));
      acked += result.acked;
      whole += result.after.ok - result.acked;
      crashed += result.after.crashed;
    });

    figure('R3', {
      points: chosen.length,
      of: points.length,
      acked,
      acked_lost: 0,
      killed_call_stored: whole,
      killed_call_crashed: crashed,
    });
  },
  { unless: noStrace },
);

async function killAt(colibri: Playground, point: Point, thorough: boolean) {
  const what = `${point.target.tool}, ${point.syscall} ${point.when}`;
  const { server, recorder, args } = await prepared(colibri, point.target);
  const fault: Fault = { syscall: point.syscall, when: String(point.when), signal: 'KILL' };
  await Tracer.attach(colibri, server, injection(fault));

  const answer = await recorder.call(point.target.tool, args).catch(() => undefined);
  // A point behind the answer is not reached: then the end is an ordinary one.
  if (answer !== undefined) await server.killHard();
  const exit = await server.waitForExit();
  const before = await judge({ db: colibri.dbPath, acked: recorder.acked });
  const next = await colibri.start();
  const health = await next.call('server_health');
  await next.killHard();
  const after = await judge({ db: colibri.dbPath, acked: recorder.acked, settled: true });

  expect(exit.signal, what).toBe('SIGKILL');
  expect([...before.findings, ...after.findings], what).toEqual([]);
  expect(health.envelope?.data, what).toMatchObject({ status: 'ok' });
  expect(after.crashed, what).toBe(before.open);
  expect(before.open, what).toBeLessThanOrEqual(1);
  if (thorough) await expectNothingMore(colibri, after, what);
  return { after, acked: recorder.acked.length };
}

/** A second start explains nothing again, and `colibri verify` has nothing to say. */
async function expectNothingMore(colibri: Playground, before: Verdict, what: string): Promise<void> {
  const again = await colibri.start();
  await again.call('server_health');
  await again.closeInput();

  expect(await judge({ db: colibri.dbPath, settled: true }), what).toMatchObject({
    findings: [],
    crashed: before.crashed,
  });
  expect(await verify(colibri), what).toMatchObject({ findings: [] });
}

const LIFE_SYSCALLS = ['pwrite64', 'write', 'fsync', 'fdatasync', 'ftruncate', 'unlink', 'rename', 'mkdir'];

battery(
  'R3',
  `a server killed at any such call from start to stop starts again without a false alarm (${tier(6, 150)} points)`,
  async () => {
    const random = seededRandom('R3, a whole life');
    const counts = await inPlayground((colibri) => countLife(colibri));
    const points = LIFE_SYSCALLS.flatMap((syscall) =>
      Array.from({ length: counts.get(syscall) ?? 0 }, (_, i) => ({ syscall, when: i + 1 })),
    );
    // Each kind of call as often as any other: there are hundreds of writes to a handful of renames.
    const chosen = Array.from({ length: tier(6, 150) }, () => {
      const syscall = random.pick(points.map((point) => point.syscall).filter(isFirst));
      return random.pick(points.filter((point) => point.syscall === syscall));
    });
    let acked = 0;

    await eachOf(chosen, async (point) => {
      acked += await inPlayground((colibri) => killInLife(colibri, point));
    });

    figure('R3', {
      whole_life_points: chosen.length,
      of: points.length,
      acked,
      acked_lost: 0,
      false_alarms: 0,
    });
  },
  { unless: noStrace },
);

function isFirst<T>(item: T, index: number, all: readonly T[]): boolean {
  return all.indexOf(item) === index;
}

/** The file is there, with no row in it: how it is made is another test (R6). */
async function makeFile(colibri: Playground): Promise<void> {
  const server = await colibri.start();
  await server.stderrHolds('ready');
  await server.closeInput();
}

/** Start, a sealed chapter, the signature that follows, stop. */
async function live(server: ServerProcess, recorder: Recorder): Promise<void> {
  await server.initialize();
  await recorder.chapter('a life');
  await server.closeInput();
}

async function countLife(colibri: Playground): Promise<Map<string, number>> {
  await makeFile(colibri);
  const log = colibri.path('life.log');
  const server = colibri.spawn({
    wrapper: ['strace', '-f', '-o', log, '-e', `trace=${LIFE_SYSCALLS.join()}`],
  });
  await live(server, new Recorder(server));
  return countSyscalls(readFileSync(log, 'utf8'));
}

async function killInLife(colibri: Playground, point: { syscall: string; when: number }): Promise<number> {
  const what = `${point.syscall} ${point.when}`;
  await makeFile(colibri);
  const fault: Fault = { syscall: point.syscall, when: String(point.when), signal: 'KILL' };
  const server = colibri.spawn({ wrapper: ['strace', '-f', '-o', '/dev/null', ...injection(fault)] });
  const recorder = new Recorder(server);
  await live(server, recorder).catch(() => undefined);
  await server.waitForExit();

  const next = await colibri.start();
  const health = await healthWhenSettled(next);
  const created = await next.call('task_create', { title: 'goes on', project: 'demo' });
  await next.closeInput();

  expect(health, what).toMatchObject({ status: 'ok' });
  expect(created.error, what).toBeUndefined();
  expect(await judge({ db: colibri.dbPath, acked: recorder.acked, settled: true }), what).toMatchObject({
    findings: [],
  });
  expect(await verify(colibri), what).toMatchObject({ findings: [] });
  return recorder.acked.length;
}

/** The look back at the signed log runs beside the first calls; a little later it is over. */
async function healthWhenSettled(server: ServerProcess): Promise<unknown> {
  await server.call('server_ping');
  for (let tries = 0; ; tries += 1) {
    const data = (await server.call('server_health')).envelope?.data as { status?: string } | undefined;
    if (data?.status === 'ok' || tries === 100) return data;
    await sleepMs(100);
  }
}
