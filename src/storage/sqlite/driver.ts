import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { asError } from '../../errors.ts';
import { NoEngineError, type SqlValue } from '../engine.ts';

export interface SqliteStatement {
  get(...params: readonly SqlValue[]): object | undefined;
  all(...params: readonly SqlValue[]): object[];
  run(...params: readonly SqlValue[]): { readonly changes: number };
  /** From then on each row is a list. */
  setReturnArrays(on: boolean): void;
  /** From then on integers are read as bigint. Without it, an integer that a number cannot hold is an error. */
  setReadBigInts(on: boolean): void;
}

/** An open database, as both libraries give it. */
export interface SqliteConnection {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  /** Makes a function of SQL. With `directOnly`, nothing in the file itself can call it. */
  function(
    name: string,
    options: { readonly directOnly: boolean },
    body: (tasks: string, words: string) => string,
  ): void;
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
const RESULTS = {
  5: 'busy',
  6: 'busy',
  8: 'read-only',
  10: 'io',
  11: 'corrupt',
  13: 'full',
  14: 'cannot-open',
  26: 'not-a-database',
} as const;

/** Which of these an error is. */
export function resultOf(error: unknown): (typeof RESULTS)[keyof typeof RESULTS] | undefined {
  const { errcode } = Object(error) as { errcode?: unknown };
  // The low byte of a result code is the primary code.
  return RESULTS[(Number(errcode) & 0xff) as keyof typeof RESULTS];
}

/** SQLITE_CONSTRAINT_PRIMARYKEY, _UNIQUE and _ROWID: there is such a row already. */
const TAKEN: readonly unknown[] = [1555, 2067, 2579];

export function isTaken(error: unknown): boolean {
  return TAKEN.includes(Reflect.get(Object(error), 'errcode'));
}

/**
 * Before 3.51.3, several processes on one file corrupt it (the WAL-reset bug). Before 3.53.3, a journal that somebody put
 * beside the file deletes any file that it names.
 */
export const SQLITE_VERSION_MIN = '3.53.3';

/** The first Node whose own SQLite is that new and returns whole texts: 22.22.3 and 24.15 cut a text at U+0000. */
const NODE_VERSION_MIN = '24.19';

const PACKAGE = '@photostructure/sqlite';

let loaded: Promise<SqliteDriver> | undefined;

/** The driver for this runtime: Node's own SQLite where it can be used, otherwise the package. */
export function loadDriver(): Promise<SqliteDriver> {
  loaded ??= chooseDriver([nodeSqliteDriver, packagedDriver]);
  return loaded;
}

/** The first of these that can be loaded and used. */
export async function chooseDriver(
  loads: readonly (() => SqliteDriver | Promise<SqliteDriver>)[],
): Promise<SqliteDriver> {
  const complaints: string[] = [];
  for (const load of loads) {
    try {
      return await load();
    } catch (error) {
      complaints.push(asError(error).message);
    }
  }
  throw new NoEngineError(
    `There is no usable SQLite: ${complaints.join(', and ')}. Use Node ${NODE_VERSION_MIN} or newer, or reinstall Colibri: ${PACKAGE} has binaries for Linux, macOS and Windows on x64 and arm64.`,
  );
}

/** The part of `node:sqlite` that is used. Written out because the types of Node 20 do not have it. */
interface SqliteLibrary {
  readonly DatabaseSync: new (
    path: string | URL,
    options: { readOnly: boolean; timeout: number },
  ) => SqliteConnection;
}

/** SQLite as Node brings it. */
export function nodeSqliteDriver(): SqliteDriver {
  const { emitWarning } = process;
  // Loading it is announced as experimental on every terminal. What is used of it is checked below instead.
  process.emitWarning = () => undefined;
  try {
    const library: unknown = process.getBuiltinModule?.('node:sqlite' as 'node:fs');
    if (library === undefined) throw new Error(`Node ${process.versions.node} has no node:sqlite`);
    return driverOf('node:sqlite', library as SqliteLibrary);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The same interface from a package that contains its binaries. */
export function packagedDriver(): SqliteDriver {
  let library: SqliteLibrary;
  try {
    // Required, not imported: Node takes 5 ms longer to import a package that has CommonJS in it.
    library = createRequire(import.meta.url)(PACKAGE) as SqliteLibrary;
  } catch (error) {
    const { message, code } = asError(error) as NodeJS.ErrnoException;
    const [reason] = message.split('\n');
    const isAbsent = code === 'MODULE_NOT_FOUND';
    throw new Error(`${PACKAGE} ${isAbsent ? 'is not installed' : `cannot be loaded (${reason})`}`);
  }
  return driverOf(PACKAGE, library);
}

/** A driver, if the library can be trusted with a log: a safe SQLite, and texts that come back as they were stored. */
export function driverOf(name: string, { DatabaseSync }: SqliteLibrary): SqliteDriver {
  const open: SqliteDriver['open'] = (path, { readOnly }) => new DatabaseSync(path, { readOnly, timeout: 0 });
  const openUnchanging = (path: string) =>
    new DatabaseSync(new URL(`${pathToFileURL(path).href}?immutable=1`), { readOnly: true, timeout: 0 });
  const db = open(':memory:', { readOnly: false });
  const probe = db.prepare("SELECT sqlite_version() AS version, CAST(x'610062' AS TEXT) AS text").get();
  db.close();
  const { version, text } = probe as { version: string; text: string };
  if (rank(version) < rank(SQLITE_VERSION_MIN))
    throw new Error(`${name} has SQLite ${version}, which is older than ${SQLITE_VERSION_MIN}`);
  if (text !== 'a\0b') throw new Error(`${name} of Node ${process.versions.node} cuts texts at U+0000`);
  return { name, sqliteVersion: version, open, openUnchanging };
}

function rank(version: string): number {
  return version.split('.').reduce((sum, part) => sum * 1_000 + Number(part), 0);
}
