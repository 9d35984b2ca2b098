import type { SqlValue } from '../engine.ts';

export interface SqliteStatement {
  get(...params: readonly SqlValue[]): object | undefined;
  all(...params: readonly SqlValue[]): object[];
  run(...params: readonly SqlValue[]): { readonly changes: number };
}

export interface SqliteConnection {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

/** What the engine needs of a SQLite library. Two implement it; nothing above this folder knows which. */
export interface SqliteDriver {
  readonly name: string;
  readonly sqliteVersion: string;
  /** Opens without any waiting of SQLite's own: the engine waits itself. */
  open(path: string, options: { readonly readOnly: boolean }): SqliteConnection;
  /** Opens a file that nobody can be writing, where not even the files beside it can be made: on read-only media. */
  openUnchanging(path: string): SqliteConnection;
  /** The primary result code of an error the driver threw, or undefined for any other error. */
  resultCode(error: unknown): SqliteResult | undefined;
}

/** The result codes the engine treats differently; the rest is `other`. */
export type SqliteResult =
  | 'busy'
  | 'full'
  | 'io'
  | 'corrupt'
  | 'not-a-database'
  | 'cannot-open'
  | 'read-only'
  | 'other';

const BY_NUMBER: Readonly<Record<number, SqliteResult>> = {
  5: 'busy',
  6: 'busy',
  8: 'read-only',
  10: 'io',
  11: 'corrupt',
  13: 'full',
  14: 'cannot-open',
  26: 'not-a-database',
};

/** The primary code is the low byte of an extended one. */
export function resultOfNumber(code: number): SqliteResult {
  return BY_NUMBER[code & 0xff] ?? 'other';
}

/** Several processes on one file corrupt it in every SQLite before this one (the WAL-reset bug). */
export const SQLITE_VERSION_MIN = '3.51.3';

let loaded: Promise<SqliteDriver> | undefined;

/** The driver for this runtime: the built-in one where it is new enough, else the native module. */
export function loadDriver(): Promise<SqliteDriver> {
  loaded ??= chooseDriver();
  return loaded;
}

async function chooseDriver(): Promise<SqliteDriver> {
  const complaints: string[] = [];
  for (const load of [loadNodeSqlite, loadBetterSqlite3]) {
    try {
      const driver = await load();
      if (isAtLeast(driver.sqliteVersion, SQLITE_VERSION_MIN)) return driver;
      complaints.push(
        `${driver.name} carries SQLite ${driver.sqliteVersion}, and ${SQLITE_VERSION_MIN} is the oldest safe one`,
      );
    } catch (error) {
      complaints.push(error instanceof Error ? error.message : String(error));
    }
  }
  throw new Error(
    `no usable SQLite: ${complaints.join('; ')}. Use Node 22.13 or newer, or run "npm install" again so that better-sqlite3 is built.`,
  );
}

async function loadNodeSqlite(): Promise<SqliteDriver> {
  const { nodeSqliteDriver } = await import('./node-sqlite.ts');
  return nodeSqliteDriver();
}

async function loadBetterSqlite3(): Promise<SqliteDriver> {
  const { betterSqlite3Driver } = await import('./better-sqlite3.ts');
  return await betterSqlite3Driver();
}

function isAtLeast(version: string, minimum: string): boolean {
  const [a, b] = [version, minimum].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i += 1) {
    const difference = (a?.[i] ?? 0) - (b?.[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
