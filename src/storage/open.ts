import type { ColibriError } from '../errors.ts';
import type { Address } from './address.ts';
import { type StorageEngine, UnusableStorage } from './engine.ts';
import { loadDriver } from './sqlite/driver.ts';
import { openSqlite } from './sqlite/engine.ts';
import { assertPresent } from './sqlite/file.ts';

export { copySqlite as copyFile } from './sqlite/backup.ts';
export { isLocked } from './sqlite/engine.ts';
export { reach } from './sqlite/file.ts';

/** Where a database is. */
export interface DatabasePlace {
  /** A file, or `:memory:`; how a database on a server is called. */
  readonly dbPath: string;
  /** Why it must not be opened or created, although nothing is wrong with the path itself. */
  readonly dbProblem?: string;
  /** A database on a server. */
  readonly server?: Address | undefined;
}

export interface OpenOptions {
  /** Reading is enough: where the database cannot be written, open it as it is. */
  readonly readingIsEnough?: boolean;
  /** Never create or write. */
  readonly readOnly?: boolean;
  /** Told once when a commit may or may not have happened; the process must end. */
  readonly onUncertain?: (error: ColibriError) => void;
  /** Which process this is, where it is one that calls can be open of. */
  readonly process?: string;
}

/** Opens, or creates, a database with the engine that it belongs to. */
export async function openStorage(
  { dbPath, dbProblem, server }: DatabasePlace,
  { process, ...options }: OpenOptions,
): Promise<StorageEngine> {
  if (server !== undefined) {
    // Loaded only where a server is named: cold starts without one need not wait for it.
    const { openPostgres } = await import('./postgres/engine.ts');
    return await openPostgres({ address: server, process, ...options });
  }
  if (dbProblem !== undefined) throw new UnusableStorage(dbProblem);
  return await openSqlite({ path: dbPath, ...options });
}

/** For those who never create a database: throws an `UnusableStorage` where there is none. */
export function assertDatabase({ dbPath, dbProblem, server }: DatabasePlace): void {
  if (server !== undefined) return;
  if (dbProblem !== undefined) throw new UnusableStorage(dbProblem);
  assertPresent(dbPath);
}

/** Why `copyFile` does not copy this database, where it does not. */
export function whyNotCopied({ dbPath, server }: DatabasePlace): string | undefined {
  return server === undefined
    ? undefined
    : `${dbPath} is on a server, so nothing was copied. Back it up there, with pg_dump or base backups; see "Backups" in the guide "A team’s database".`;
}

/** What stores data in files here, in a word or two. Throws a `NoEngineError` where nothing can. */
export async function storageRuntime(): Promise<string> {
  const { name, sqliteVersion } = await loadDriver();
  return `SQLite ${sqliteVersion} (${name})`;
}
