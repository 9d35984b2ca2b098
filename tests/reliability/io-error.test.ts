import { afterAll, expect } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import type { ToolAnswer } from '../driver/message.ts';
import type { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { type ServerProcess, sleepMs } from '../driver/server-process.ts';
import { figure, tier } from '../driver/tier.ts';
import { battery, eachOf, noStrace } from './battery.ts';
import { Checker, type Question, type Verdict } from './checker.ts';
import { inPlayground, type Point, pointsOf, prepared, sample } from './points.ts';
import { preciseCode, writeChapters } from './recorder.ts';
import { type Fault, injection, Tracer } from './strace.ts';
import { TARGETS, type Target } from './targets.ts';

const FAILED_MERGES = tier(3, 100);
const ROUNDS_MAX = 60;

const checker = noStrace === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

async function judge(question: Question): Promise<Verdict> {
  if (checker === undefined) throw new Error('no checker');
  return await checker.judge(question);
}

battery(
  'R5',
  `an I/O error or a full disk at any write or sync of a call: a code that says so, nothing acked lost (${tier('4 points, two errors each', 'all points')})`,
  async () => {
    const random = seededRandom('R5');
    const points = (await pointsOf(TARGETS)).filter(({ syscall }) => syscall !== 'write');
    const chosen = sample(points, 4, random);
    const codes = new Map<string, number>();
    let worstExitMs = 0;

    const faults = chosen.flatMap((point) => (['EIO', 'ENOSPC'] as const).map((error) => ({ point, error })));
    await eachOf(faults, async ({ point, error }) => {
      const result = await inPlayground((colibri) => failAt(colibri, point, error));
      const seen = `${error} ${point.syscall} ${result.code}`;
      codes.set(seen, (codes.get(seen) ?? 0) + 1);
      worstExitMs = Math.max(worstExitMs, result.exitMs);
    });

    figure('R5', {
      runs: chosen.length * 2,
      points_in_all: points.length,
      worst_exit_ms: Math.round(worstExitMs),
      ...Object.fromEntries(codes),
    });
  },
  { unless: noStrace },
);

/** How long a process may go on after the disk has failed under it. */
const EXIT_MS_MAX = 2_000;

async function failAt(colibri: Playground, point: Point, error: 'EIO' | 'ENOSPC') {
  const what = `${error} at ${point.target.tool}, ${point.syscall} ${point.when}`;
  const { server, recorder, args } = await prepared(colibri, point.target);
  const before = recorder.acked.length;
  const tracer = await Tracer.attach(
    colibri,
    server,
    injection({ syscall: point.syscall, when: String(point.when), error }),
  );

  const answer = await recorder.call(point.target.tool, args);
  const answeredMs = performance.now();
  const code = codeOf(answer);
  const ends = code === 'ERR_STORAGE_UNCERTAIN';
  if (!ends) {
    await tracer.detach();
    await recorder.data('task_create', { title: 'goes on', project: 'demo' });
  }
  const exit = ends ? await server.waitForExit() : await server.closeInput();
  const exitMs = ends ? performance.now() - answeredMs : 0;
  // What was refused as unknown may be there or not; only the others are owed.
  const owed = recorder.acked.filter((call) => !('code' in call && call.code.startsWith('ERR_STORAGE')));
  const next = await colibri.start();
  const health = await next.call('server_health');
  const looked = await lookUp(next, point.target, args);
  await next.closeInput();
  const after = await judge({ db: colibri.dbPath, acked: owed, settled: true });

  expect(after.findings, what).toEqual([]);
  expect(health.envelope?.data, what).toMatchObject({ status: 'ok' });
  expect(looked.error, what).toBeUndefined();
  // A merge of the log is no part of the call: a fault that hits it changes nothing.
  expect(['ERR_STORAGE_UNCERTAIN', 'ERR_STORAGE_FULL', 'none'], `${what}: ${server.stderr}`).toContain(code);
  if (error === 'EIO') expect(code, what).not.toBe('ERR_STORAGE_FULL');
  expect(exit.code, `${what}: ${server.stderr}`).toBe(ends ? 74 : 0);
  expect(exitMs, what).toBeLessThan(EXIT_MS_MAX);
  // The calls before, the one that went on, and the one in question if it was stored after all.
  const sure = before + (ends ? 0 : 1) + (code === 'none' ? 1 : 0);
  expect([0, ends ? 1 : 0], what).toContain(after.ok - sure);
  return { code, exitMs };
}

function codeOf({ error }: ToolAnswer): string {
  return error === undefined ? 'none' : preciseCode(error);
}

/** What the message tells the caller to do: see whether the call was stored. */
async function lookUp(server: ServerProcess, target: Target, args: object): Promise<ToolAnswer> {
  if ('task_id' in args)
    return await server.call('task_get', { task_id: args.task_id, include_thought_trail: true });
  if ('session_id' in args) return await server.call('merkle_root', args);
  return await server.call('task_list', { search: target.tool === 'task_create' ? 'task' : '' });
}

battery(
  'R5',
  'after a failed sync no call is answered well by that process, though the next sync would succeed',
  async (colibri) => {
    const { server, recorder } = await prepared(colibri, TARGETS[0] as Target, { UV_THREADPOOL_SIZE: '1' });
    // The kernel reports a failed flush once and then forgets the pages: a second fdatasync says nothing of them.
    const fault: Fault = { syscall: 'fdatasync', when: '1', error: 'EIO' };
    await Tracer.attach(colibri, server, injection(fault));

    // Held still while the calls are sent, so that it reads them all at once and they wait for one sync together.
    server.kill('SIGSTOP');
    const calls = Array.from({ length: 24 }, (_, i) =>
      recorder.call('task_create', { title: `call ${i}`, project: 'demo' }).then(codeOf, () => 'no answer'),
    );
    await sleepMs(50);
    server.kill('SIGCONT');
    const codes = await Promise.all(calls);
    const exit = await server.waitForExit();

    figure('R5', { after_failed_sync: codes.join(' ') });
    expect(codes).toContain('ERR_STORAGE_UNCERTAIN');
    expect(exit.code).toBe(74);
    const acked = new Set(recorder.acked.filter((call) => 'data' in call).map(({ id }) => id));
    const firstFailure = recorder.acked.find((call) => 'code' in call)?.id ?? 0;
    expect([...acked].filter((id) => id > firstFailure)).toEqual([]);
  },
  { unless: noStrace },
);

battery(
  'R5',
  'merging the log into the file may fail as often as it likes: calls go on and nothing is lost',
  async (colibri) => {
    const { server, recorder } = await prepared(colibri, TARGETS[0] as Target);
    // SQLite syncs with fsync, and only when it merges; the sync before an answer is an fdatasync.
    const tracer = await Tracer.attach(
      colibri,
      server,
      injection({ syscall: 'fsync', when: '1+', error: 'EIO' }),
    );

    // However much a call writes: until the log is long enough to be merged, in a pause or by each commit, and then some more.
    const injected = () => tracer.log.match(/INJECTED/g)?.length ?? 0;
    for (let rounds = 0; rounds < ROUNDS_MAX && injected() < FAILED_MERGES; rounds += 1) {
      await writeChapters(recorder, 3, 5);
      await sleepMs(10 * LIMITS.quietMs);
    }
    await writeChapters(recorder, 3, 2);
    const failed = injected();
    await tracer.detach();
    await server.killHard();
    const verdict = await judge({ db: colibri.dbPath, acked: recorder.acked });

    figure('R5', { failed_fsyncs_of_merges: failed, acked: recorder.acked.length, acked_lost: verdict.lost });
    expect(failed).toBeGreaterThanOrEqual(FAILED_MERGES);
    expect(verdict.findings).toEqual([]);
  },
  { unless: noStrace },
);
