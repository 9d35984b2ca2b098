import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { SqlValue } from '../engine.ts';

export interface SqliteStatement {
  get(...params: readonly SqlValue[]): object | undefined;
  all(...params: readonly SqlValue[]): object[];
  run(...params: readonly SqlValue[]): { readonly changes: number };
  /** From then on each row is a list. The libraries have a name each for it. */
  setReturnArrays?(on: boolean): void;
  raw?(on: boolean): void;
}

/** An open database, as both libraries give it. */
export interface SqliteConnection {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

/** What the engine needs of a SQLite library. Nothing above this folder knows which it is. */
export interface SqliteDriver {
  readonly name: string;
  readonly sqliteVersion: string;
  /** Opens without any waiting of SQLite's own: the engine waits itself. */
  open(path: string, options: { readonly readOnly: boolean }): SqliteConnection;
  /** Opens a file that nobody can be writing, where not even the files beside it can be made: on read-only media. */
  openUnchanging(path: string): SqliteConnection;
}

/** The result codes that the engine treats differently. */
const RESULTS = [
  [5, 'SQLITE_BUSY', 'busy'],
  [6, 'SQLITE_LOCKED', 'busy'],
  [8, 'SQLITE_READONLY', 'read-only'],
  [10, 'SQLITE_IOERR', 'io'],
  [11, 'SQLITE_CORRUPT', 'corrupt'],
  [13, 'SQLITE_FULL', 'full'],
  [14, 'SQLITE_CANTOPEN', 'cannot-open'],
  [26, 'SQLITE_NOTADB', 'not-a-database'],
] as const;

/** Which of these an error is, whichever library threw it. */
export function resultOf(error: unknown): (typeof RESULTS)[number][2] | undefined {
  const { errcode, code } = Object(error) as { errcode?: unknown; code?: unknown };
  // One library gives a number whose low byte is the primary code, the other a name that begins with it.
  return RESULTS.find(
    ([number, name]) => (Number(errcode) & 0xff) === number || String(code).startsWith(name),
  )?.[2];
}

/** Several processes on one file corrupt it in every SQLite before this one (the WAL-reset bug). */
export const SQLITE_VERSION_MIN = '3.51.3';

let loaded: Promise<SqliteDriver> | undefined;

/** The driver for this runtime: the built-in one where it is new enough, else the native module. */
export function loadDriver(): Promise<SqliteDriver> {
  loaded ??= chooseDriver([nodeSqliteDriver, betterSqlite3Driver]);
  return loaded;
}

/** The first of these that loads and is new enough. */
export async function chooseDriver(
  loads: readonly (() => SqliteDriver | Promise<SqliteDriver>)[],
): Promise<SqliteDriver> {
  const complaints: string[] = [];
  for (const load of loads) {
    try {
      const driver = await load();
      const { name, sqliteVersion } = driver;
      if (rank(sqliteVersion) >= rank(SQLITE_VERSION_MIN)) return driver;
      complaints.push(
        `${name} carries SQLite ${sqliteVersion}, and ${SQLITE_VERSION_MIN} is the oldest safe one`,
      );
    } catch (error) {
      complaints.push(error instanceof Error ? error.message : String(error));
    }
  }
  throw new Error(
    `no usable SQLite: ${complaints.join('; ')}. Use Node 22.13 or newer, or run "npm install" again so that better-sqlite3 is built.`,
  );
}

function rank(version: string): number {
  return version.split('.').reduce((sum, part) => sum * 1_000 + Number(part), 0);
}

/** The part of `node:sqlite` that is used. Written out because the types of Node 20 do not have it. */
interface NodeSqlite {
  readonly DatabaseSync: new (
    path: string | URL,
    options: { readOnly: boolean; timeout?: number },
  ) => SqliteConnection;
}

/** SQLite as Node brings it: no native build, so nothing to compile and nothing to block. */
export function nodeSqliteDriver(): SqliteDriver {
  const library = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as NodeSqlite | undefined;
  if (library === undefined) throw new Error(`Node ${process.versions.node} has no node:sqlite`);
  return withVersion({
    name: 'node:sqlite',
    open: (path, { readOnly }) => new library.DatabaseSync(path, { readOnly, timeout: 0 }),
    openUnchanging: (path) =>
      new library.DatabaseSync(new URL(`${pathToFileURL(path).href}?immutable=1`), { readOnly: true }),
  });
}

/** SQLite for Node 20, from a native module. Version 13 of it crashes there. */
export async function betterSqlite3Driver(): Promise<SqliteDriver> {
  const { default: Sqlite } = await import('better-sqlite3');
  return withVersion({
    name: 'better-sqlite3',
    open: (path, { readOnly }) =>
      new Sqlite(path, { readonly: readOnly, timeout: 0 }) as unknown as SqliteConnection,
    openUnchanging(path) {
      const bytes = readFileSync(path);
      // The header then says that there is no write-ahead log: in memory there can be none.
      bytes.fill(1, 18, 20);
      return new Sqlite(bytes) as unknown as SqliteConnection;
    },
  });
}

function withVersion(driver: Omit<SqliteDriver, 'sqliteVersion'>): SqliteDriver {
  const db = driver.open(':memory:', { readOnly: false });
  const row = db.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  db.close();
  return { ...driver, sqliteVersion: row.version };
}
