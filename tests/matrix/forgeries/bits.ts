import { readFileSync, writeFileSync } from 'node:fs';
import { openDatabase } from '../../driver/database.ts';
import type { Forgery } from './forgery.ts';

// V4: bits of the file itself, where a search goes another way than a scan. Only a database has them.

/** Changes a key that a search passes on its way to a row, in the root of a tree. */
function misled(table: string, tree = table): Forgery {
  return {
    id: `V4 a bit of a key of ${table}`,
    holds: 'database',
    onlyInFile: 'a bit of a page',
    forge: () => [],
    damage(dbPath) {
      const [bytes, at] = interiorKey(dbPath, tree);
      // Rows around it are looked for on the wrong page.
      bytes.writeUInt8(bytes.readUInt8(at) ^ 0x01, at);
      writeFileSync(dbPath, bytes);
      return { kind: 'index', record: table };
    },
  };
}

const DIGEST_CHARS = 64;

/** The file, and where in it the last byte of the first key of the root page lies. */
function interiorKey(dbPath: string, tree: string): [bytes: Buffer, at: number] {
  const db = openDatabase(dbPath);
  const sql = 'SELECT rootpage FROM sqlite_schema WHERE name = ?';
  const root = Number(db.prepare(sql).pluck().get(tree));
  const pageSize = Number(db.pragma('page_size', { simple: true }));
  db.close();
  const bytes = readFileSync(dbPath);
  const page = (root - 1) * pageSize;
  const type = bytes.readUInt8(page);
  // Of an index that is one page, any entry is a key that a search passes.
  const isLeaf = type === 0x0a;
  if (type !== 0x05 && type !== 0x02 && !isLeaf) throw new Error(`${tree} is one page`);
  const cell = page + bytes.readUInt16BE(page + (isLeaf ? 8 : 12)) - (isLeaf ? 4 : 0);
  if (type === 0x05) {
    // A table by row number: four bytes of page, then the number in seven bits a byte.
    let at = cell + 4;
    while (bytes.readUInt8(at) >= 0x80) at += 1;
    return [bytes, at];
  }
  // An index holds entries here too: page, length, header, and then the first column, a digest.
  const header = cell + 4 + (bytes.readUInt8(cell + 4) >= 0x80 ? 2 : 1);
  return [bytes, header + bytes.readUInt8(header) + DIGEST_CHARS - 1];
}

export const BIT_FORGERIES: readonly Forgery[] = [
  misled('action_payloads'),
  misled('actions'),
  misled('texts', 'sqlite_autoindex_texts_1'),
];
