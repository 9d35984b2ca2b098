import { asError } from '../../errors.ts';
import type { Reader, StorageProblem } from '../engine.ts';
import type { SqliteDriver } from './driver.ts';
import { SCHEMA, SCHEMA_VERSION } from './schema.ts';
import { findWordIndexProblems } from './word-index.ts';

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** What ANALYZE makes may be there; anything else that only has such a name may not. */
const OBJECTS = `SELECT type, name, tbl_name, sql FROM sqlite_schema
  WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4') ORDER BY name`;

const SHARED_ROOTS = `SELECT group_concat(name, ', ') AS names
  FROM (SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY name) GROUP BY rootpage HAVING count(*) > 1`;

/** Compares the file's schema with the one this version makes, then lets SQLite check every table, index and page. */
export async function findSchemaProblems(driver: SqliteDriver, tx: Reader): Promise<StorageProblem[]> {
  const problems: StorageProblem[] = [];
  const tell = (record: string, message: string) =>
    problems.push({ table: 'sqlite_schema', record, message });
  const expected = expectedObjects(driver);
  const present = new Set<string>();
  for (const object of await tx.all<SchemaObject>(OBJECTS)) {
    const { name, type } = object;
    const wanted = expected.get(name);
    present.add(name);
    if (wanted === undefined) tell(name, `The ${type} ${name} is not one of Colibri's.`);
    else if (JSON.stringify(wanted) !== JSON.stringify(object))
      tell(name, `The definition of the ${wanted.type} ${name} was changed.`);
  }
  for (const { names } of await tx.all<{ names: string }>(SHARED_ROOTS))
    tell(names, `These have the same pages, and each must have its own: ${names}.`);
  const version = Object.values((await tx.get('PRAGMA user_version')) ?? {})[0];
  const told = `The file calls itself schema ${version}; this Colibri makes schema ${SCHEMA_VERSION}.`;
  if (version !== SCHEMA_VERSION) tell('user_version', told);
  // By our own list, not by what the file says of itself: a table that calls itself something else is checked all the same.
  for (const { type, name } of expected.values()) {
    if (!present.has(name)) tell(name, `${name} was removed from the schema.`);
    // Of actions SQLite would compute the 17 columns shown of each text, 4.3 us a row; the verifier finds each by its key.
    else if (type === 'table' && name !== 'actions') problems.push(...(await checkPages(tx, name)));
  }
  const inWords = await findWordIndexProblems(tx);
  // What names the task or the page says more than SQLite's words about the whole index.
  const others = inWords.length === 0 ? problems : problems.filter(({ table }) => table !== 'task_words');
  return [...others, ...inWords];
}

/** A connection that has searched before checks against what it remembers of the index, unless it searches again. */
const FRESHEN = "SELECT rowid FROM task_words WHERE task_words MATCH 'fresh' LIMIT 1";

async function checkPages(tx: Reader, table: string): Promise<StorageProblem[]> {
  const told = (line: unknown) => ({ table, record: table, message: `SQLite says of ${table}: ${line}` });
  try {
    if (table === 'task_words') await tx.get(FRESHEN);
    const rows = await tx.all(`PRAGMA integrity_check("${table}")`);
    return rows
      .flatMap((row) => Object.values(row))
      .filter((line) => line !== 'ok')
      .map(told);
  } catch (thrown) {
    return [told(asError(thrown).message)];
  }
}

function expectedObjects(driver: SqliteDriver): Map<string, SchemaObject> {
  const db = driver.open(':memory:', { readOnly: false });
  try {
    db.exec(SCHEMA);
    return new Map((db.prepare(OBJECTS).all() as SchemaObject[]).map((object) => [object.name, object]));
  } finally {
    db.close();
  }
}
