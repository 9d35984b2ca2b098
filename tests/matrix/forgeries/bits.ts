import { readFileSync, writeFileSync } from 'node:fs';
import { openDatabase } from '../../driver/database.ts';
import type { Forgery } from './forgery.ts';

// V4: bits of the file itself, where a search goes another way than a scan. Only a database has them.

/** Changes a key that a search passes on its way to a row, in the root of a tree. */
function misled(table: string): Forgery {
  return {
    id: `V4 a bit of a key of ${table}`,
    holds: 'database',
    onlyInFile: 'a bit of a page',
    forge: () => [],
    damage(dbPath) {
      const [bytes, at] = interiorKey(dbPath, table);
      // A smaller key: the row of that number is looked for on the wrong page.
      const byte = bytes.readUInt8(at);
      bytes.writeUInt8(byte & (byte - 1), at);
      writeFileSync(dbPath, bytes);
      return { kind: 'index', record: table };
    },
  };
}

/** The file, and where in it the last byte of the first key of the root page lies. */
function interiorKey(dbPath: string, table: string): [bytes: Buffer, at: number] {
  const db = openDatabase(dbPath);
  const sql = 'SELECT rootpage FROM sqlite_schema WHERE name = ?';
  const root = Number(db.prepare(sql).pluck().get(table));
  const pageSize = Number(db.pragma('page_size', { simple: true }));
  db.close();
  const bytes = readFileSync(dbPath);
  const page = (root - 1) * pageSize;
  if (bytes.readUInt8(page) !== 0x05) throw new Error(`${table} is one page`);
  // A table by row number: four bytes of page, then the number in seven bits a byte.
  let at = page + bytes.readUInt16BE(page + 12) + 4;
  while (bytes.readUInt8(at) >= 0x80) at += 1;
  return [bytes, at];
}

export const BIT_FORGERIES: readonly Forgery[] = [
  misled('action_payloads'),
  misled('actions'),
  misled('texts'),
];
