import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import { openDatabase } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { sleepMs } from '../driver/server-process.ts';
import { toolsMissing } from '../driver/surface.ts';
import { lockNewFile, lockWholeFile } from '../driver/write-lock.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_list', 'thought_record');

const PAGE_BYTES = 4_096;

proves(
  ['boot.transport-first', 'boot.gate'],
  'handshake and list are answered while the database is locked; a call waits for it',
  async ({ colibri }) => {
    const lock = lockNewFile(colibri);
    const server = colibri.spawn();

    await server.initialize();
    await server.request('tools/list');
    const early = server.call('server_ping');
    const other = server.call('server_health');
    await sleepMs(700);
    const whileLocked = server.history.map((sent) => sent.state);
    lock.release();

    expect((await early).envelope?.ok).toBe(true);
    expect((await other).envelope?.data).toMatchObject({ status: 'ok' });
    expect(whileLocked).toEqual(['acked', 'acked', 'sent', 'sent']);
    expect(colibri.readAudit().rows).toHaveLength(4);
  },
);

proves(
  ['boot.gate', 'boot.transport-first'],
  'the first thing a client sends may be a call',
  async ({ colibri }) => {
    const server = colibri.spawn();

    const { envelope } = await server.callModern('server_ping', {});

    expect(envelope?.ok).toBe(true);
  },
);

proves(
  ['boot.timeout', 'config.startup-timeout'],
  'past the startup limit the process ends with 75 and says why',
  async ({ colibri }) => {
    lockNewFile(colibri);
    const server = colibri.spawn({ env: { COLIBRI_STARTUP_TIMEOUT_MS: '800' } });
    // A busy machine may reach the limit before the first answer.
    server.initialize().catch(() => undefined);
    const waiting = server.call('server_ping').catch((error: Error) => error);

    expect(await server.waitForExit()).toEqual({ code: 75, signal: null });
    expect(server.stderr).toMatch(/800/);
    expect(await waiting).toBeInstanceOf(Error);
  },
);

proves(
  ['boot.timeout', 'boot.degraded'],
  'a file another process has locked for itself is waited for, not given up at once',
  async ({ colibri }) => {
    await aUsedDatabase(colibri);
    const lock = lockWholeFile(colibri);
    const server = await colibri.start();

    const health = server.call('server_health');
    await sleepMs(1_000);
    lock.release();

    expect((await health).envelope?.data).toMatchObject({ status: 'ok' });
  },
);

proves(
  ['stop.bounded', 'stop.answered', 'protocol.one-answer'],
  'a stop during boot answers the calls that wait, and is prompt',
  async ({ colibri }) => {
    lockNewFile(colibri);

    for (const leave of ['SIGTERM', 'end of input'] as const) {
      const server = await colibri.start();
      const waiting = server.call('server_ping').catch((error: Error) => error.message);
      // Answered behind it, so the server has the call.
      await server.request('tools/list');
      const began = performance.now();

      if (leave === 'SIGTERM') server.kill(leave);
      const exit = leave === 'SIGTERM' ? await server.waitForExit() : await server.closeInput();

      expect(exit).toEqual({ code: 0, signal: null });
      expect(await waiting).toMatchObject({
        message: { error: { message: expect.stringContaining('did not start') } },
      });
      expect(performance.now() - began).toBeLessThan(4_000);
    }
  },
);

/** Files no Colibri can work with, and what the reason must say of each. */
const UNUSABLE: readonly [what: string, make: (colibri: Playground) => unknown, reason: RegExp][] = [
  [
    'a text file',
    ({ dbPath }) => writeFileSync(dbPath, 'not a database. '.repeat(100)),
    /not a SQLite database/,
  ],
  ['a folder', ({ dbPath }) => mkdirSync(dbPath), /folder/],
  ['a symbolic link', (colibri) => symlinkSync(colibri.path('elsewhere.db'), colibri.dbPath), /link/],
  ['a FIFO', ({ dbPath }) => execFileSync('mkfifo', [dbPath]), /regular file/],
  ['a database of another program', ({ dbPath }) => foreignDatabase(dbPath, 'delete'), /another program/],
  ['a WAL database of another program', ({ dbPath }) => foreignDatabase(dbPath, 'wal'), /another program/],
  ['a file of a newer version', newerDatabase, /newer/],
  [
    'a file cut to half',
    async (colibri) => {
      await aUsedDatabase(colibri);
      truncateSync(colibri.dbPath, statSync(colibri.dbPath).size / 2);
    },
    /malformed|corrupt|damaged/,
  ],
  [
    'a file cut inside its header',
    async (colibri) => {
      await aUsedDatabase(colibri);
      truncateSync(colibri.dbPath, 50);
    },
    /malformed|corrupt|damaged|not a database/,
  ],
  [
    'a file whose schema is garbage',
    (colibri) => overwrite(colibri, () => 100, 3_000),
    /malformed|corrupt|damaged/,
  ],
  [
    'a file whose log is garbage',
    (colibri) => overwrite(colibri, rootOf('actions'), PAGE_BYTES),
    /malformed|corrupt|damaged/,
  ],
  [
    'a file whose open calls are garbage',
    (colibri) => overwrite(colibri, rootOf('open_calls'), PAGE_BYTES),
    /malformed|corrupt|damaged/,
  ],
];

for (const [what, make, reason] of UNUSABLE) {
  proves(
    ['boot.degraded', 'boot.untouched'],
    `with ${what} the server answers, says why, and leaves it as it is`,
    async ({ colibri }) => {
      mkdirSync(dirname(colibri.dbPath));
      await make(colibri);
      const before = digestOf(colibri.dbPath);

      const server = await colibri.start();
      const ping = await server.call('server_ping');
      const { envelope } = await server.call('server_health');
      const exit = await server.closeInput();

      expect(ping.envelope?.ok).toBe(true);
      expect(envelope?.data).toMatchObject({
        status: 'degraded',
        db: { open: false, reason: expect.stringMatching(reason) },
      });
      expect(envelope?.data?.db).toMatchObject({ reason: expect.stringContaining(colibri.dbPath) });
      expect(server.stderr).toMatch(reason);
      expect(exit).toEqual({ code: 0, signal: null });
      expect(digestOf(colibri.dbPath)).toBe(before);
    },
  );
}

proves(
  ['boot.degraded', 'boot.untouched'],
  'a folder that cannot be written degrades, and nothing is created elsewhere',
  async ({ colibri }) => {
    for (const path of ['/sys/colibri/colibri.db', '/dev/null/colibri.db']) {
      const server = await colibri.start({ env: { COLIBRI_DB_PATH: path } });

      const { envelope } = await server.call('server_health');

      expect(envelope?.data).toMatchObject({
        status: 'degraded',
        db: { reason: expect.stringContaining(path) },
      });
    }
  },
);

proves(
  ['boot.degraded', 'boot.timeout'],
  'a folder in which no folder can be made does not hang the server',
  async ({ colibri }) => {
    const server = await colibri.start({ env: { COLIBRI_DB_PATH: '/proc/colibri/colibri.db' } });
    colibri.onDispose(() => server.kill('SIGKILL'));

    const health = await Promise.race([server.call('server_health'), sleepMs(20_000)]);

    expect(health?.envelope?.data).toMatchObject({ status: 'degraded' });
  },
);

proves(
  'boot.degraded-tools',
  'without a database every other tool says ERR_INIT_FAILED, why and what to do, in pattern A',
  async ({ colibri }) => {
    mkdirSync(dirname(colibri.dbPath));
    foreignDatabase(colibri.dbPath, 'delete');
    const server = await colibri.start();

    const create = await server.call('task_create', { title: 'a', project: 'demo' });
    const list = await server.call('task_list', {});
    const thought = await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'c' });

    for (const { envelope, isError } of [create, list, thought]) {
      expect(isError).toBe(true);
      expect(envelope).toMatchObject({
        ok: false,
        error: {
          code: 'HANDLER_ERROR',
          message: expect.stringMatching(/^ERR_INIT_FAILED: .*another program.*COLIBRI_DB_PATH/s),
        },
      });
    }
  },
  { unless: noTasks },
);

async function aUsedDatabase(colibri: Playground): Promise<void> {
  const server = await colibri.start();
  await Promise.all(Array.from({ length: 40 }, () => server.call('server_ping')));
  await server.closeInput();
}

function foreignDatabase(path: string, journal: 'delete' | 'wal'): void {
  const db = openDatabase(path);
  db.pragma(`journal_mode = ${journal}`);
  db.exec('CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)');
  db.close();
}

async function newerDatabase(colibri: Playground): Promise<void> {
  await aUsedDatabase(colibri);
  const db = openDatabase(colibri.dbPath);
  db.pragma('user_version = 9999');
  db.close();
}

function rootOf(table: string): (path: string) => number {
  return (path) =>
    withDatabase(path, (db) => {
      const root = db
        .prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?')
        .pluck()
        .get(table) as number;
      return (root - 1) * PAGE_BYTES;
    });
}

async function overwrite(colibri: Playground, at: (path: string) => number, bytes: number): Promise<void> {
  await aUsedDatabase(colibri);
  const offset = at(colibri.dbPath);
  const fd = openSync(colibri.dbPath, 'r+');
  writeSync(fd, Buffer.alloc(bytes, 0xab), 0, bytes, offset);
  closeSync(fd);
}

/** Of a regular file its bytes; of anything else what it is. */
function digestOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) return stat === undefined ? 'nothing' : String(stat.mode);
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}
