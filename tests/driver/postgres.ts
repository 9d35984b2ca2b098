import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where the programs of PostgreSQL are, the newest version; undefined where it is not installed. */
const PROGRAMS = programs();

/** Why tests on PostgreSQL are skipped, or undefined where they run. */
export const NO_POSTGRES =
  PROGRAMS === undefined ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)' : undefined;

/** A cluster of its own in a temporary folder. It listens on a socket in that folder and nowhere else. */
export interface Cluster {
  readonly folder: string;
  /** Where psql, createdb and the others are. */
  readonly programs: string;
  /** Makes an empty database and answers its URL. */
  createDatabase(options?: string): Promise<string>;
  /** Runs SQL as the administrator and answers what it printed, a line per row. */
  sql(database: string, sql: string): string;
  urlOf(database: string, user?: string): string;
  /** Ends it as a power cut of the process would. */
  kill(): Promise<void>;
  /** The same, and starts it again. */
  killHard(): Promise<void>;
  /** Makes a standby the server that takes writes. */
  promote(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A new database for a test that runs on either engine, where the tests run on PostgreSQL (vitest.postgres.config.ts). */
export function databaseForTest(): string | undefined {
  const folder = process.env.COLIBRI_TEST_POSTGRES;
  if (folder === undefined) return undefined;
  const name = `t${randomUUID().replaceAll('-', '')}`;
  psql(folder, 'postgres', `CREATE DATABASE ${name}`);
  return urlIn(folder, name);
}

/** Removes the database of a test: of many hundreds, the files would fill the disk. */
export function dropDatabase(url: string): void {
  const { folder, database } = partsOf(url);
  psql(folder, 'postgres', `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
}

/** Runs a query on the database at a URL, as the administrator, and answers its rows. */
export function rowsAt(url: string, sql: string): Record<string, unknown>[] {
  // In hex: a terminal program may drop a character.
  const hex = psqlAt(
    url,
    `SELECT encode(convert_to(coalesce(json_agg(row_to_json(q))::text, '[]'), 'UTF8'), 'hex') FROM (${sql}) q`,
  );
  return JSON.parse(Buffer.from(hex.trim(), 'hex').toString('utf8')) as Record<string, unknown>[];
}

/** Runs statements on the database at a URL, as the administrator, and answers how many rows the last one changed. */
export function runAt(url: string, sql: string, unguarded: boolean): number {
  const role = unguarded ? 'SET session_replication_role = replica;' : '';
  const said = psqlAt(url, `${role} ${sql}`, []);
  return Number(/^[A-Z ]+?(?: 0)? (\d+)$/.exec(said.trim().split('\n').at(-1) ?? '')?.[1] ?? 0);
}

/** Every file of the database at a URL, once everything is in its place. */
export function filesAt(url: string): string[] {
  const { folder } = partsOf(url);
  psqlAt(url, 'CHECKPOINT');
  const [row] = rowsAt(url, 'SELECT oid FROM pg_database WHERE datname = current_database()');
  const base = join(folder, 'data', 'base', String(row?.oid));
  return readdirSync(base).map((name) => join(base, name));
}

/** A transaction that has read a table and stays open: it sees what was there, until it is told to let go. */
export function readAt(url: string, table: string): { release(): void } {
  return hold(url, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM colibri.${table};`);
}

/** Copies a database that nobody uses and answers the URL of the copy. */
export function copyOf(url: string): string {
  const { folder, database } = partsOf(url);
  const name = `t${randomUUID().replaceAll('-', '')}`;
  psql(folder, 'postgres', `CREATE DATABASE ${name} TEMPLATE ${database}`);
  return urlIn(folder, name);
}

/** Puts a copy of a database in the place of another. Nobody may use either of them. */
export function replaceDatabase(url: string, by: string): void {
  const { folder, database } = partsOf(url);
  dropDatabase(url);
  psql(folder, 'postgres', `CREATE DATABASE ${database} TEMPLATE ${partsOf(by).database}`);
}

/** Holds the write lock of a database until it is told to let go. */
export function holdLockAt(url: string): { release(): void } {
  return hold(url, 'BEGIN; SELECT id FROM colibri.log WHERE id = 1 FOR UPDATE;');
}

/** Lets nobody look at a table until it is told to let go. */
export function holdTableAt(url: string, table: string): { release(): void } {
  return hold(url, `BEGIN; LOCK TABLE colibri.${table};`);
}

function hold(url: string, sql: string): { release(): void } {
  const { folder, database } = partsOf(url);
  const child = spawn(join(PROGRAMS ?? '', 'psql'), ['-h', folder, '-U', 'owner', '-d', database, '-Xq'], {
    env: { PATH: process.env.PATH, PGAPPNAME: 'holder' },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.stdin.write(`${sql}\n`);
  const held = `SELECT pid FROM pg_stat_activity WHERE application_name = 'holder' AND state = 'idle in transaction'
    AND datname = '${database}'`;
  for (const since = Date.now(); rowsAt(url, held).length === 0; )
    if (Date.now() - since > 60_000) throw new Error('the transaction was not begun');
  return { release: () => child.kill('SIGKILL') };
}

function psqlAt(url: string, sql: string, options: readonly string[] = ['-q']): string {
  const { folder, database } = partsOf(url);
  return psql(folder, database, `SET search_path = colibri; ${sql}`, options);
}

export function partsOf(url: string): { folder: string; database: string } {
  const [folder = '', database = ''] = url.replace(/^postgres:\/\/\w+@/, '').split('/');
  return { folder: decodeURIComponent(folder), database };
}

function urlIn(folder: string, database: string, user = 'owner'): string {
  return `postgres://${user}@${encodeURIComponent(folder)}/${database}`;
}

function psql(folder: string, database: string, sql: string, options: readonly string[] = ['-q']): string {
  const { status, stdout, stderr } = spawnSync(
    join(PROGRAMS ?? '', 'psql'),
    ['-h', folder, '-U', 'owner', '-d', database, ...options, '-v', 'ON_ERROR_STOP=1', '-XAtf', '-'],
    { input: sql, encoding: 'utf8', maxBuffer: 2 ** 28, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } },
  );
  if (status !== 0) throw new Error(`psql ended with ${status}: ${stderr}`);
  return stdout;
}

// The server refuses to run as root.
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** `primary`: it is a standby of that one. `under`: the folder that its own is made in. */
export async function startCluster(
  settings: Readonly<Record<string, string>> = {},
  primary?: Cluster,
  under = tmpdir(),
): Promise<Cluster> {
  const bin = (name: string) => join(PROGRAMS ?? '', name);
  const folder = mkdtempSync(join(under, 'colibri-pg-'));
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  if (NOBODY.uid !== undefined) for (const path of [folder, data]) chownSync(path, NOBODY.uid, NOBODY.gid);
  const environment = { PATH: process.env.PATH, LC_ALL: 'C', HOME: folder, TZ: 'UTC' };
  const run = (program: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(bin(program), args, {
      ...NOBODY,
      encoding: 'utf8',
      env: environment,
      cwd: folder,
    });
    if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}`);
    return stdout;
  };
  if (primary === undefined)
    run('initdb', '-D', data, '-U', 'owner', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--no-instructions');
  else run('pg_basebackup', '-h', primary.folder, '-U', 'owner', '-D', data, '-R', '-c', 'fast', '--no-sync');
  let server: ChildProcess | undefined;
  let databases = 0;
  const given = { fsync: 'off', ...settings, listen_addresses: '', unix_socket_directories: folder };
  // In its file, so that ALTER SYSTEM can change them.
  const lines = Object.entries(given).map(([name, value]) => `${name} = '${value}'\n`);
  appendFileSync(join(data, 'postgresql.conf'), lines.join(''));
  const cluster: Cluster = {
    folder,
    programs: PROGRAMS ?? '',
    async start() {
      // A busy machine takes its time to recover from a kill, and as long as a child of the killed one lives, the next one ends.
      for (let tries = 0; tries < 1_200; tries += 1) {
        if (server === undefined || server.exitCode !== null || server.signalCode !== null)
          server = spawn(bin('postgres'), ['-D', data], {
            ...NOBODY,
            env: environment,
            cwd: folder,
            stdio: 'ignore',
          });
        const { status } = spawnSync(bin('pg_isready'), ['-q', '-h', folder], { env: environment });
        if (status === 0) return;
        await sleep(50);
      }
      throw new Error('PostgreSQL did not start');
    },
    async kill() {
      const ended = new Promise((resolve) => server?.once('exit', resolve));
      server?.kill('SIGKILL');
      await ended;
      // Its children notice that it is gone, and the shared memory must be free before the next start.
      await sleep(300);
      rmSync(join(data, 'postmaster.pid'), { force: true });
    },
    async killHard() {
      await cluster.kill();
      await cluster.start();
    },
    async promote() {
      cluster.sql('postgres', 'SELECT pg_promote()');
    },
    async stop() {
      const isRunning = server?.exitCode === null && server.signalCode === null;
      const ended = new Promise((resolve) => server?.once('exit', resolve));
      server?.kill('SIGINT');
      if (isRunning) await ended;
      rmSync(folder, { recursive: true, force: true });
    },
    async createDatabase(options = '') {
      databases += 1;
      const name = `db${databases}`;
      cluster.sql('postgres', `CREATE DATABASE ${name} ${options}`);
      return cluster.urlOf(name);
    },
    sql: (database, sql) => psql(folder, database, sql),
    urlOf: (database, user) => urlIn(folder, database, user),
  };
  await cluster.start();
  return cluster;
}

function programs(): string | undefined {
  const base = '/usr/lib/postgresql';
  if (!existsSync(base)) return undefined;
  const versions = readdirSync(base).sort((a, b) => Number(b) - Number(a));
  return versions
    .map((version) => join(base, version, 'bin'))
    .find((path) => existsSync(join(path, 'initdb')));
}
