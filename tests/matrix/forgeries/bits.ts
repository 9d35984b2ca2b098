import { readFileSync, writeFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import type { ForgedLog } from '../forge.ts';
import type { Found } from '../sources.ts';
import { type Forgery, row } from './forgery.ts';

// V4: bits of the file itself, where a search goes another way than a scan. Only a database has them.

/** Changes a key that a search passes on its way to a row, in the root of a table's tree. */
function misled(id: string, table: string, finds: (log: ForgedLog, digest: string) => Found): Forgery {
  return {
    id,
    holds: 'database',
    forge: () => [],
    damage(dbPath, log) {
      const [bytes, at] = interiorKey(dbPath, table);
      const found = finds(log, bytes.toString('latin1', at - DIGEST_CHARS + 1, at + 1));
      // Rows around it are looked for on the wrong page.
      bytes.writeUInt8(bytes.readUInt8(at) ^ 0x01, at);
      writeFileSync(dbPath, bytes);
      return found;
    },
  };
}

const DIGEST_CHARS = 64;

/** The file, and where in it the last byte of the first key of the root page lies. */
function interiorKey(dbPath: string, table: string): [bytes: Buffer, at: number] {
  const db = new Sqlite(dbPath);
  const sql = "SELECT rootpage FROM sqlite_schema WHERE name = ? AND type = 'table'";
  const root = Number(db.prepare(sql).pluck().get(table));
  const pageSize = Number(db.pragma('page_size', { simple: true }));
  db.close();
  const bytes = readFileSync(dbPath);
  const page = (root - 1) * pageSize;
  const type = bytes.readUInt8(page);
  if (type !== 0x05 && type !== 0x02) throw new Error(`the tree of ${table} is one page`);
  const cell = page + bytes.readUInt16BE(page + 12);
  if (type === 0x05) {
    // A table by row number: four bytes of page, then the number in seven bits a byte.
    let at = cell + 4;
    while (bytes.readUInt8(at) >= 0x80) at += 1;
    return [bytes, at];
  }
  // A table without row numbers holds rows here too: page, length, header, and then the first column, a digest.
  const header = cell + 4 + (bytes.readUInt8(cell + 4) >= 0x80 ? 2 : 1);
  return [bytes, header + bytes.readUInt8(header) + DIGEST_CHARS - 1];
}

export const BIT_FORGERIES: readonly Forgery[] = [
  misled('V4 a bit of a key of action_payloads', 'action_payloads', () => ({
    kind: 'index',
    record: 'action_payloads',
  })),
  misled('V4 a bit of a key of actions', 'actions', () => ({ kind: 'index', record: 'actions' })),
  misled('V4 a bit of a key of texts', 'texts', missingText),
];

/** The call whose text cannot be found any more. */
function missingText(log: ForgedLog, digest: string): Found {
  for (const { fields, payload } of log.rows) {
    if (fields.stage !== 'enter' || typeof payload?.body !== 'object') continue;
    const [field] = Object.entries(payload.body).find(([, value]) => value === digest) ?? [];
    if (field !== undefined) return row('missing', fields.position, field);
  }
  throw new Error('no call speaks of this text');
}
