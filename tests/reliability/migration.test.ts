import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, expect } from 'vitest';
import { APPLICATION_ID, MIGRATIONS } from '../../src/storage/sqlite/migrations.ts';
import type { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { battery, eachOf, FULL, figure, noStrace, tier } from './battery.ts';
import { Checker, type Question, type Verdict } from './checker.ts';
import { inPlayground, verify } from './points.ts';
import { countSyscalls, type Fault, injection } from './strace.ts';

const checker = noStrace === undefined ? new Checker() : undefined;
afterAll(() => checker?.close());

async function judge(question: Question): Promise<Verdict> {
  if (checker === undefined) throw new Error('no checker');
  return await checker.judge(question);
}

/** Files as older versions left them, and no file at all. */
const OLDER = Array.from({ length: MIGRATIONS.length }, (_, version) => version);
const BOOT_SYSCALLS = ['pwrite64', 'fsync', 'ftruncate', 'unlink'] as const;

battery(
  'R6',
  `a server killed anywhere in a migration leaves the old version or the new, and the next start completes it (${tier('from the last but one, 12 points', 'from every version, all points')})`,
  async () => {
    const random = seededRandom('R6');
    const versions = tier(OLDER.slice(-1), OLDER);
    const left = { old: 0, new: 0 };
    let points = 0;

    for (const version of versions) {
      const counts = await inPlayground((colibri) => countBoot(colibri, version));
      const all = BOOT_SYSCALLS.flatMap((syscall) =>
        Array.from({ length: counts.get(syscall) ?? 0 }, (_, i) => ({ syscall, when: i + 1 })),
      );
      const chosen = FULL ? all : Array.from({ length: 12 }, () => random.pick(all));
      await eachOf(chosen, async (point) => {
        const found = await inPlayground((colibri) => killBoot(colibri, version, point));
        left[found === version ? 'old' : 'new'] += 1;
        points += 1;
      });
    }

    figure('R6', { points, left_old: left.old, left_new: left.new });
  },
  { unless: noStrace },
);

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

async function killBoot(colibri: Playground, version: number, point: { syscall: string; when: number }) {
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
