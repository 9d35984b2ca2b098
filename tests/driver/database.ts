import { DatabaseSync, enhance } from '@photostructure/sqlite';
import { onServer } from './postgres-database.ts';

/** A database in the hands of another program. */
export type Database = ReturnType<typeof openFile>;

/** Opens the database without Colibri, and with none of SQLite's guards against writing what should not be written. */
export function openDatabase(path: string, options: FileOptions = {}): Database {
  // As much of a file's interface as tests on both engines need.
  return path.startsWith('postgres:') ? (onServer(path) as unknown as Database) : openFile(path, options);
}

interface FileOptions {
  readonly readOnly?: boolean;
  readonly timeout?: number;
  readonly readBigInts?: boolean;
}

function openFile(path: string, { readOnly = false, timeout = 5_000, readBigInts = false }: FileOptions) {
  return enhance(new DatabaseSync(path, { readOnly, timeout, readBigInts, defensive: false }));
}

/** Runs `change` while no trigger is in the way, and no foreign key unless a transaction is open, and puts them back. */
export function withoutTriggers(db: Database, change: () => void): void {
  if (Reflect.get(db, 'unguarded') !== undefined) {
    Reflect.set(db, 'unguarded', true);
    change();
    Reflect.set(db, 'unguarded', false);
    return;
  }
  const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
    name: string;
    sql: string;
  }[];
  db.pragma('foreign_keys = OFF');
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  change();
  for (const { sql } of triggers) db.exec(sql);
}

/** Runs a statement and answers how many rows it changed, whatever numbers it wrote. */
export function changedBy(db: Database, sql: string): number {
  if (Reflect.get(db, 'unguarded') !== undefined) return Number(db.prepare(sql).run().changes);
  db.exec(sql);
  return Number(db.prepare('SELECT changes()').pluck().get());
}

/** Copies a database that may be in use, a few pages at a time. */
export { backup } from '@photostructure/sqlite';
