import { asError } from '../../errors.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { visibleLine } from '../../untrusted.ts';
import { FOREIGN_TOLD_MAX, ForeignSchema, type Reader, type StorageProblem } from '../engine.ts';
import type { Connection } from './connection.ts';
import type { SqliteDriver } from './driver.ts';
import { SCHEMA } from './schema.ts';
import { findWordIndexProblems } from './word-index.ts';

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** Tables or indexes whose pages are the same. */
interface SharedRoot {
  readonly names: string;
}

/** What ANALYZE makes may be there; anything else that only has such a name may not, such as a table with a computed column. */
export const OBJECTS = `SELECT type, name, tbl_name, sql FROM sqlite_schema
  WHERE (type, name, sql) IS NOT ('table', 'sqlite_stat1', 'CREATE TABLE sqlite_stat1(tbl,idx,stat)')
    AND (type, name, sql) IS NOT ('table', 'sqlite_stat4', 'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)')
  ORDER BY name`;

const SHARED_ROOTS = `SELECT group_concat(name, ', ') AS names
  FROM (SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY name) GROUP BY rootpage HAVING count(*) > 1`;

/**
 * SHA-256 of what `OBJECTS` answers for the schema of this version, so that a start need not build it to compare. A test
 * computes it again.
 */
export const SCHEMA_DIGEST = '16057658cf6d17a726eb88284b6304a7945d8893ba0e843ad8358730c7df23ee';

export const schemaDigest = (objects: readonly object[]) => sha256Hex(JSON.stringify(objects));

/**
 * What a planted trigger swallows, or a planted view changes, is answered as if it were there: a database whose schema is
 * not exactly that of this version is not used.
 */
export function assertOwnSchema(driver: SqliteDriver, db: Connection, path: string): void {
  const objects = db.rows<SchemaObject>(OBJECTS);
  const shared = db.rows<SharedRoot>(SHARED_ROOTS);
  if (schemaDigest(objects) === SCHEMA_DIGEST && shared.length === 0) return;
  const found = compareSchema(expectedObjects(driver), objects, shared);
  if (found.length > 0) throw new ForeignSchema(path, found);
}

/** What is in a schema and should not be, is not as it should be, or is missing. Hostile input enters here: any text may be a name. */
function compareSchema(
  expected: ReadonlyMap<string, SchemaObject>,
  objects: readonly SchemaObject[],
  shared: readonly SharedRoot[],
) {
  const problems: StorageProblem[] = [];
  const tell = (record: string, message: string) =>
    problems.push({ kind: 'schema', table: 'sqlite_schema', record, message });
  for (const object of objects) {
    const { name, type } = object;
    const wanted = expected.get(name);
    if (wanted === undefined) tell(name, `The ${shown(type)} ${shown(name)} is not one of Colibri's.`);
    else if (JSON.stringify(wanted) !== JSON.stringify(object))
      tell(name, `The definition of the ${wanted.type} ${name} was changed.`);
  }
  for (const { names } of shared)
    tell(names, `These have the same pages, and each must have its own: ${shown(names)}.`);
  const present = new Set(objects.map(({ name }) => name));
  for (const name of expected.keys())
    if (!present.has(name)) tell(name, `${name} was removed from the schema.`);
  return problems;
}

/** Enough to recognise a name by. */
const NAME_CHARS_MAX = 128;

/** A name by somebody else, which may hold anything. */
function shown(name: unknown): string {
  const text = visibleLine(String(name).slice(0, NAME_CHARS_MAX));
  return /^[\w, ]+$/.test(text) ? text : `"${text}"`;
}

/** Lets SQLite check every table, index and page of a file whose schema is ours. */
export async function findPageProblems(driver: SqliteDriver, tx: Reader): Promise<StorageProblem[]> {
  const problems = await checkPages(tx, expectedObjects(driver).values());
  const inWords = await findWordIndexProblems(tx);
  // By an index that leads astray, the texts of a task cannot be compared with its words.
  if (inWords.length === 0 || problems.some(({ table }) => table === 'texts')) return problems;
  // What names the task or the page says more than SQLite's words about the whole index.
  return [...problems.filter(({ table }) => table !== 'task_words'), ...inWords];
}

/** A connection that has searched before checks against what it remembers of the index, unless it searches again. */
const FRESHEN = "SELECT rowid FROM task_words WHERE task_words MATCH 'fresh' LIMIT 1";

/**
 * Where the first table that SQLite comes upon has no pages of its own, as after VACUUM, it leaves out the list of free
 * pages (3.53.4). Then the pages are counted: each is in a table or an index, or it is free.
 */
const MISCOUNTED = `
  WITH counts (used, free, pages) AS (
    SELECT (SELECT count(*) FROM dbstat), freelist_count, page_count FROM pragma_freelist_count, pragma_page_count
  )
  SELECT used || ' pages are in use and ' || free || ' are free, and there are ' || pages FROM counts
  WHERE used + free <> pages AND 0 = (
    SELECT rootpage FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid DESC LIMIT 1
  )`;

/** The whole file, which alone finds pages that are used twice; where something is wrong, each table, to name it. */
async function checkPages(tx: Reader, ours: Iterable<SchemaObject>): Promise<StorageProblem[]> {
  await tx.get(FRESHEN).catch(() => undefined);
  const ofFile = [...(await linesOf(tx, 'PRAGMA integrity_check')), ...(await linesOf(tx, MISCOUNTED))];
  if (ofFile.length === 0) return [];
  const problems: StorageProblem[] = [];
  const named = new Set<string>();
  for (const { type, name } of ours)
    for (const line of type === 'table' ? await linesOf(tx, `PRAGMA integrity_check("${name}")`) : []) {
      named.add(line);
      problems.push({ kind: 'index', table: name, record: name, message: `SQLite says of ${name}: ${line}` });
    }
  const others = ofFile.filter((line) => !named.has(line)).slice(0, FOREIGN_TOLD_MAX);
  if (others.length === 0) return problems;
  const message = `SQLite says of the file: ${others.join('; ')}`;
  return [...problems, { kind: 'schema', table: 'sqlite_schema', record: 'pages', message }];
}

async function linesOf(tx: Reader, sql: string): Promise<string[]> {
  try {
    const rows = await tx.all(sql);
    return rows
      .flatMap((row) => Object.values(row))
      .flatMap((value) => String(value).split('\n'))
      .filter((line) => line !== 'ok' && !line.startsWith('*** in database'));
  } catch (thrown) {
    return [asError(thrown).message];
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
