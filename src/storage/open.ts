import type { ColibriError } from '../errors.ts';
import { type StorageEngine, UnusableStorage } from './engine.ts';
import { copySqlite } from './sqlite/backup.ts';
import { loadDriver } from './sqlite/driver.ts';
import { openSqlite } from './sqlite/engine.ts';
import { assertPresent } from './sqlite/file.ts';

export { isLocked } from './sqlite/engine.ts';

/** Where a database is. */
export interface DatabasePlace {
  /** A file, or `:memory:`. */
  readonly dbPath: string;
  /** Why it must not be opened or created, although nothing is wrong with the path itself. */
  readonly dbProblem?: string;
}

export interface OpenOptions {
  /** Reading is enough: where the database cannot be written, open it as it is. */
  readonly readingIsEnough?: boolean;
  /** Never create or write. */
  readonly readOnly?: boolean;
  /** Told once when a commit may or may not have happened; the process must end. */
  readonly onUncertain?: (error: ColibriError) => void;
}

/** Opens, or creates, a database with the engine that it belongs to. */
export async function openStorage(place: DatabasePlace, options: OpenOptions): Promise<StorageEngine> {
  if (place.dbProblem !== undefined) throw new UnusableStorage(place.dbProblem);
  return await openSqlite({ path: place.dbPath, ...options });
}

/** For those who never create a database: throws an `UnusableStorage` where there is none. */
export function assertDatabase({ dbPath, dbProblem }: DatabasePlace): void {
  if (dbProblem !== undefined) throw new UnusableStorage(dbProblem);
  assertPresent(dbPath);
}

/** Copies a database into a file that is not there yet, as of one moment, while others go on writing. */
export async function copyDatabase({ dbPath }: DatabasePlace, to: string): Promise<void> {
  await copySqlite(dbPath, to);
}

/** What stores data here, in a word or two. Throws a `NoEngineError` where nothing can. */
export async function storageRuntime(): Promise<string> {
  const { name, sqliteVersion } = await loadDriver();
  return `SQLite ${sqliteVersion} (${name})`;
}
