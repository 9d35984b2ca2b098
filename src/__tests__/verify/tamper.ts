import { copyFileSync } from 'node:fs';
import { type Database, openDatabase } from '../../../tests/driver/database.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openSqlite } from '../../storage/sqlite/engine.ts';
import type { Finding } from '../../verify/finding.ts';
import { verdictOf } from './history.ts';

/** Changes a copy of a database behind its triggers' backs, and answers what the verifier finds in it. */
export async function tampered(path: string, change: (db: Database) => void): Promise<Finding[]> {
  return await inTampered(path, change, async (storage) => (await verdictOf(storage)).findings);
}

/** Does something with a changed copy of a database. */
export async function inTampered<T>(
  path: string,
  change: (db: Database) => void,
  look: (storage: StorageEngine) => Promise<T>,
): Promise<T> {
  const copy = `${path}.${Math.random().toString(36).slice(2)}`;
  copyFileSync(path, copy);
  const db = openDatabase(copy);
  db.pragma('foreign_keys = OFF');
  db.pragma('ignore_check_constraints = ON');
  const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
    name: string;
    sql: string;
  }[];
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  change(db);
  for (const { sql } of triggers) db.exec(sql);
  db.close();
  const storage = await openSqlite({ path: copy, readOnly: true });
  try {
    return await look(storage);
  } finally {
    await storage.close();
  }
}

/** Merges the WAL, so that the file alone is the database. */
export function settleFile(path: string): void {
  const db = openDatabase(path);
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}
