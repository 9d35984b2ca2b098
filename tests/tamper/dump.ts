import { createHash } from 'node:crypto';
import { type Database, openDatabase } from '../driver/database.ts';
import { type Table, WORD_PAGES } from './schema.ts';

const FOUND_WORDS = `SELECT CAST(term AS BLOB), doc, cnt,
  (SELECT group_concat(rowid) FROM task_words WHERE task_words MATCH '"' || replace(term, '"', '""') || '"') FROM task_terms`;

/** A digest of every stored value with its type, table by table. Throws where the file cannot be read. */
export function dumpOf(path: string, tables: readonly Table[]): ReadonlyMap<string, string> {
  const db = openDatabase(path, { readOnly: true, readBigInts: true });
  try {
    const digests = new Map([
      ['sqlite_schema', digestOf(db, 'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name')],
    ]);
    // A virtual table holds nothing that its shadow tables do not; of the pages of the word index counts what is found by them.
    for (const table of tables.filter(({ isVirtual, name }) => !isVirtual && !WORD_PAGES.includes(name))) {
      const cells = table.stored.map(({ name }) => `typeof(${name}), CAST(${name} AS BLOB)`).join(', ');
      digests.set(table.name, digestOf(db, `SELECT ${cells} FROM ${table.name} NOT INDEXED`));
    }
    digests.set('task_words', digestOf(db, FOUND_WORDS));
    return digests;
  } finally {
    db.close();
  }
}

function digestOf(db: Database, sql: string): string {
  const hash = createHash('sha256');
  for (const row of db.prepare(sql).raw().iterate() as Iterable<(Uint8Array | string | bigint | null)[]>) {
    for (const cell of row) hash.update(cell instanceof Uint8Array ? cell : String(cell)).update('\0');
    hash.update('\n');
  }
  return hash.digest('hex');
}
