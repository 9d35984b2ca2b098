import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, expect } from 'vitest';
import { SCHEMA_VERSION } from '../../src/storage/sqlite/schema.ts';
import type { Playground } from '../driver/playground.ts';
import { FULL, figure, tier } from '../driver/tier.ts';
import { battery, eachOf, noStrace } from './battery.ts';
import { Checker, type Question, type Verdict } from './checker.ts';
import { inPlayground, verify } from './points.ts';
import { countSyscalls, type Fault, injection } from './strace.ts';

const checker = noStrace === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

async function judge(question: Question): Promise<Verdict> {
  if (checker === undefined) throw new Error('no checker');
  return await checker.judge(question);
}

const BOOT_SYSCALLS = ['pwrite64', 'fsync', 'ftruncate', 'unlink'] as const;

interface BootPoint {
  readonly syscall: string;
  readonly when: number;
}

battery(
  'R6',
  `a server killed anywhere in the very first start leaves nothing or a whole file, and the next start completes it (${tier('the first syncs and removals', 'all points')})`,
  async () => {
    const points = await bootPoints();
    const early = ({ syscall, when }: BootPoint) =>
      when <= 6 && (syscall === 'unlink' || syscall === 'fsync');
    const chosen = points.filter((point) => FULL || early(point));

    const left = await killAll(chosen);

    figure('R6', { first_start_points: chosen.length, of: points.length, ...left });
  },
  { unless: noStrace },
);

/** One traced start tells where it can be cut. */
async function bootPoints(): Promise<BootPoint[]> {
  const counts = await inPlayground((colibri) => countBoot(colibri));
  return BOOT_SYSCALLS.flatMap((syscall) =>
    Array.from({ length: counts.get(syscall) ?? 0 }, (_, i) => ({ syscall, when: i + 1 })),
  );
}

async function killAll(points: readonly BootPoint[]): Promise<{ left_nothing: number; left_whole: number }> {
  const left = { left_nothing: 0, left_whole: 0 };
  await eachOf(points, async (point) => {
    const version = await inPlayground((colibri) => killBoot(colibri, point));
    left[version === 0 ? 'left_nothing' : 'left_whole'] += 1;
  });
  return left;
}

async function countBoot(colibri: Playground): Promise<Map<string, number>> {
  mkdirSync(dirname(colibri.dbPath), { recursive: true, mode: 0o700 });
  const log = colibri.path('boot.log');
  const server = await colibri.start({
    wrapper: ['strace', '-f', '-o', log, '-e', `trace=${BOOT_SYSCALLS.join()}`],
  });
  await server.call('server_health');
  await server.closeInput();
  return countSyscalls(readFileSync(log, 'utf8'));
}

async function killBoot(colibri: Playground, point: BootPoint): Promise<number> {
  const what = `${point.syscall} ${point.when}`;
  mkdirSync(dirname(colibri.dbPath), { recursive: true, mode: 0o700 });
  const fault: Fault = { syscall: point.syscall, when: String(point.when), signal: 'KILL' };
  const server = colibri.spawn({
    wrapper: ['strace', '-f', '-o', '/dev/null', ...injection(fault)],
  });
  await server.initialize().catch(() => undefined);
  await server.call('server_health').catch(() => undefined);
  await server.closeInput();

  const left = existsSync(colibri.dbPath) ? await judge({ db: colibri.dbPath }) : undefined;
  const next = await colibri.start();
  const health = await next.call('server_health');
  await next.call('task_create', { title: 'works', project: 'demo' });
  await next.closeInput();
  const after = await judge({ db: colibri.dbPath, settled: true });

  expect(left?.findings ?? [], what).toEqual([]);
  expect([0, SCHEMA_VERSION], what).toContain(left?.version ?? 0);
  expect(health.envelope?.data, what).toMatchObject({
    status: 'ok',
    db: { user_version: SCHEMA_VERSION },
  });
  expect(after, what).toMatchObject({ findings: [], version: SCHEMA_VERSION });
  expect(await verify(colibri), what).toMatchObject({ findings: [] });
  return left?.version ?? 0;
}
