import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, expect } from 'vitest';
import { APPLICATION_ID, MIGRATIONS } from '../../src/storage/sqlite/migrations.ts';
import type { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
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
  readonly version: number;
  readonly syscall: string;
  readonly when: number;
}

const OLDER = Array.from({ length: MIGRATIONS.length - 1 }, (_, i) => i + 1);

battery(
  'R6',
  `a server killed anywhere in a migration leaves the old version or the new, and the next start completes it (${tier('from the last but one, 12 points', 'from every version, all points')})`,
  async () => {
    const random = seededRandom('R6');
    const points = (await Promise.all(tier(OLDER.slice(-1), OLDER).map(bootPoints))).flat();
    const chosen = FULL ? points : Array.from({ length: 12 }, () => random.pick(points));

    const left = await killAll(chosen);

    figure('R6', { points: chosen.length, of: points.length, ...left });
  },
  { unless: noStrace },
);

battery(
  'R6',
  `a server killed anywhere in the very first start leaves nothing or a whole file, and the next start completes it (${tier('the first syncs and removals', 'all points')})`,
  async () => {
    const points = await bootPoints(0);
    const early = ({ syscall, when }: BootPoint) =>
      when <= 6 && (syscall === 'unlink' || syscall === 'fsync');
    const chosen = points.filter((point) => FULL || early(point));

    const left = await killAll(chosen);

    figure('R6', { first_start_points: chosen.length, of: points.length, ...left });
  },
  { unless: noStrace },
);

/** One traced start tells where it can be cut. */
async function bootPoints(version: number): Promise<BootPoint[]> {
  const counts = await inPlayground((colibri) => countBoot(colibri, version));
  return BOOT_SYSCALLS.flatMap((syscall) =>
    Array.from({ length: counts.get(syscall) ?? 0 }, (_, i) => ({ version, syscall, when: i + 1 })),
  );
}

async function killAll(points: readonly BootPoint[]): Promise<{ left_old: number; left_new: number }> {
  const left = { left_old: 0, left_new: 0 };
  await eachOf(points, async (point) => {
    const found = await inPlayground((colibri) => killBoot(colibri, point));
    left[found === point.version ? 'left_old' : 'left_new'] += 1;
  });
  return left;
}

function makeOlder(colibri: Playground, version: number): void {
  mkdirSync(dirname(colibri.dbPath), { recursive: true, mode: 0o700 });
  if (version === 0) return;
  const db = new Sqlite(colibri.dbPath);
  db.pragma('journal_mode = WAL');
  for (const step of MIGRATIONS.slice(0, version)) db.exec(step);
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.pragma(`user_version = ${version}`);
  db.close();
}

async function countBoot(colibri: Playground, version: number): Promise<Map<string, number>> {
  makeOlder(colibri, version);
  const log = colibri.path('boot.log');
  const server = await colibri.start({
    wrapper: ['strace', '-f', '-o', log, '-e', `trace=${BOOT_SYSCALLS.join()}`],
  });
  await server.call('server_health');
  await server.closeInput();
  return countSyscalls(readFileSync(log, 'utf8'));
}

async function killBoot(colibri: Playground, point: BootPoint): Promise<number> {
  const { version } = point;
  const what = `from ${version}, ${point.syscall} ${point.when}`;
  makeOlder(colibri, version);
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
  expect([version, MIGRATIONS.length], what).toContain(left?.version ?? 0);
  expect(health.envelope?.data, what).toMatchObject({
    status: 'ok',
    db: { user_version: MIGRATIONS.length },
  });
  expect(after, what).toMatchObject({ findings: [], version: MIGRATIONS.length });
  expect(await verify(colibri), what).toMatchObject({ findings: [] });
  return left?.version ?? 0;
}
