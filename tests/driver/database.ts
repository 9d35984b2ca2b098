import { DatabaseSync, enhance } from '@photostructure/sqlite';

/** A database in the hands of another program. */
export type Database = ReturnType<typeof openDatabase>;

/** Opens the file without Colibri, and with none of SQLite's guards against writing what should not be written. */
export function openDatabase(path: string, { readOnly = false, timeout = 5_000, readBigInts = false } = {}) {
  return enhance(new DatabaseSync(path, { readOnly, timeout, readBigInts, defensive: false }));
}

/** Copies a database that may be in use, a few pages at a time. */
export { backup } from '@photostructure/sqlite';
