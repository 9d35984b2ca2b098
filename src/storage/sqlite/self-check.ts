import type { Reader } from '../engine.ts';
import type { SqliteDriver } from './driver.ts';
import { MIGRATIONS } from './migrations.ts';

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly sql: string | null;
}

/** Tables whose every byte the log verifier reads and hashes; SQLite's own check of them would only cost time. */
const HASHED_TABLES: readonly string[] = ['actions', 'action_payloads'];

/** What ANALYZE makes is no concern of ours; anything else that only bears such a name is. */
const OBJECTS = `SELECT type, name, sql FROM sqlite_schema
  WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4') ORDER BY name`;

/** Compares the file's schema with the one this version makes, then lets SQLite check indexes and pages. */
export async function findSchemaProblems(driver: SqliteDriver, tx: Reader): Promise<string[]> {
  const expected = expectedObjects(driver);
  const problems: string[] = [];
  const found = await tx.all<SchemaObject>(OBJECTS);
  for (const object of found) {
    const sql = expected.get(object.name);
    if (sql === undefined) problems.push(`The ${object.type} ${object.name} is not one of Colibri's.`);
    else if (sql !== object.sql)
      problems.push(`The definition of the ${object.type} ${object.name} was changed.`);
    expected.delete(object.name);
  }
  const version = Object.values((await tx.get('PRAGMA user_version')) ?? {})[0];
  if (version !== MIGRATIONS.length)
    problems.push(`The file calls itself schema ${version}; this Colibri makes schema ${MIGRATIONS.length}.`);
  for (const name of expected.keys()) problems.push(`${name} was removed from the schema.`);
  for (const { type, name } of found) {
    if (type === 'table' && !HASHED_TABLES.includes(name)) problems.push(...(await checkPages(tx, name)));
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

function expectedObjects(driver: SqliteDriver): Map<string, string | null> {
  const db = driver.open(':memory:', { readOnly: false });
  try {
    for (const step of MIGRATIONS) db.exec(step);
    return new Map((db.prepare(OBJECTS).all() as SchemaObject[]).map((object) => [object.name, object.sql]));
  } finally {
    db.close();
  }
}
