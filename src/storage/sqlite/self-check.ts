import type { Reader } from '../engine.ts';
import type { SqliteDriver } from './driver.ts';
import { MIGRATIONS } from './migrations.ts';

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** Tables whose every byte the log verifier reads and hashes; SQLite's own check of them would only cost time. */
const HASHED_TABLES: readonly string[] = ['actions', 'action_payloads'];

/** What ANALYZE makes is no concern of ours; anything else that only bears such a name is. */
const OBJECTS = `SELECT type, name, tbl_name, sql FROM sqlite_schema
  WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4') ORDER BY name`;

/** Compares the file's schema with the one this version makes, then lets SQLite check indexes and pages. */
export async function findSchemaProblems(driver: SqliteDriver, tx: Reader): Promise<string[]> {
  const expected = expectedObjects(driver);
  const missing = new Map(expected);
  const problems: string[] = [];
  for (const object of await tx.all<SchemaObject>(OBJECTS)) {
    const wanted = expected.get(object.name);
    if (wanted === undefined) problems.push(`The ${object.type} ${object.name} is not one of Colibri's.`);
    else if (!isSame(wanted, object))
      problems.push(`The definition of the ${wanted.type} ${object.name} was changed.`);
    missing.delete(object.name);
  }
  const version = Object.values((await tx.get('PRAGMA user_version')) ?? {})[0];
  if (version !== MIGRATIONS.length)
    problems.push(`The file calls itself schema ${version}; this Colibri makes schema ${MIGRATIONS.length}.`);
  for (const name of missing.keys()) problems.push(`${name} was removed from the schema.`);
  // By our own list, not by what the file says of itself: a table that calls itself something else is checked all the same.
  for (const { type, name } of expected.values()) {
    if (type === 'table' && !HASHED_TABLES.includes(name) && !missing.has(name))
      problems.push(...(await checkPages(tx, name)));
  }
  return problems;
}

/** A connection that has searched before checks against what it remembers of the index, unless it searches again. */
const FRESHEN = "SELECT rowid FROM task_words WHERE task_words MATCH 'fresh' LIMIT 1";

async function checkPages(tx: Reader, table: string): Promise<string[]> {
  if (table === 'task_words') await tx.get(FRESHEN);
  const rows = await tx.all(`PRAGMA integrity_check("${table.replaceAll('"', '""')}")`);
  const lines = rows.map((row) => String(Object.values(row)[0]));
  return lines.filter((line) => line !== 'ok').map((line) => `SQLite says of ${table}: ${line}`);
}

function isSame(a: SchemaObject, b: SchemaObject): boolean {
  return a.type === b.type && a.tbl_name === b.tbl_name && a.sql === b.sql;
}

function expectedObjects(driver: SqliteDriver): Map<string, SchemaObject> {
  const db = driver.open(':memory:', { readOnly: false });
  try {
    for (const step of MIGRATIONS) db.exec(step);
    return new Map((db.prepare(OBJECTS).all() as SchemaObject[]).map((object) => [object.name, object]));
  } finally {
    db.close();
  }
}
