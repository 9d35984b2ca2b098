import { createHash } from 'node:crypto';
import Sqlite from 'better-sqlite3';
import type { Table } from './schema.ts';

/** A digest of every stored value with its type, table by table. Throws where the file cannot be read. */
export function dumpOf(path: string, tables: readonly Table[]): ReadonlyMap<string, string> {
  const db = new Sqlite(path, { readonly: true });
  try {
    db.defaultSafeIntegers(true);
    const digests = new Map([
      ['sqlite_schema', digestOf(db, 'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name')],
    ]);
    // A virtual table holds nothing that its shadow tables do not.
    for (const table of tables.filter(({ isVirtual }) => !isVirtual)) {
      const cells = table.stored.map(({ name }) => `typeof(${name}), CAST(${name} AS BLOB)`).join(', ');
      digests.set(table.name, digestOf(db, `SELECT ${cells} FROM ${table.name} NOT INDEXED`, table.name));
    }
    return digests;
  } finally {
    db.close();
  }
}

function digestOf(db: Sqlite.Database, sql: string, table = ''): string {
  const hash = createHash('sha256');
  for (const row of db.prepare(sql).raw().iterate() as Iterable<(Buffer | string | null)[]>) {
    for (const cell of table === 'task_words_data' ? withoutBookkeeping(row) : row)
      hash.update(cell === null ? 'null' : cell).update('\0');
    hash.update('\n');
  }
  return hash.digest('hex');
}

/**
 * The word index counts in its structure record how much it has ever written, to time its merges. Nothing else in the
 * file says that number and no answer depends on it; a change of it cannot be told and does not matter.
 */
function withoutBookkeeping(row: readonly (Buffer | string | null)[]): (Buffer | string | null)[] {
  const [idType = null, id = null, blockType = null, block = null] = row;
  if (String(id) !== '10' || !Buffer.isBuffer(block)) return [...row];
  let start = 4;
  for (let i = 0; i < 2; i += 1) start = afterVarint(block, start);
  const end = afterVarint(block, start);
  return [idType, id, blockType, Buffer.concat([block.subarray(0, start), block.subarray(end)])];
}

function afterVarint(bytes: Buffer, start: number): number {
  let at = start;
  while (at < start + 8 && (bytes[at] ?? 0) >= 0x80) at += 1;
  return at + 1;
}
