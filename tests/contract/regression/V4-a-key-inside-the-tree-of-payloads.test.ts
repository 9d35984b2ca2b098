import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { withDatabase } from '../../driver/audit-file.ts';
import { Copies, findingsAt } from '../../tamper/copies.ts';
import { proves } from '../log-desk.ts';

const PAGE_BYTES = 4_096;
const INTERIOR = 5;

// A search goes by the keys inside the tree, a scan does not: with another key there, a payload is hidden from one of them.

proves(
  'detect.bits',
  'V4: any flipped bit of any key inside the trees of actions and their payloads is found',
  async (desk) => {
    await desk.work();
    const server = await desk.colibri.start();
    for (let i = 0; i < 40; i += 1) await desk.think(server, `thought ${i}`);
    await server.closeInput();
    const bytes = readFileSync(desk.dbPath);
    const copies = new Copies(bytes, desk.colibri.folder);
    const places = ['action_payloads', 'actions'].flatMap((table) =>
      keysInside(bytes, rootOf(desk.dbPath, table)),
    );

    const missed: string[] = [];
    for (const place of places) {
      for (let bit = 0; bit < 7; bit += 1) {
        const flipped = Buffer.from(bytes);
        flipped[place] = (flipped[place] ?? 0) ^ (1 << bit);
        if ((await copies.ofBytes(flipped, findingsAt)).length === 0)
          missed.push(`bit ${bit} of byte ${place}`);
      }
    }

    expect(places.length).toBeGreaterThan(4);
    expect(missed).toEqual([]);
  },
);

function rootOf(path: string, table: string): number {
  return withDatabase(path, (db) =>
    db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(table),
  ) as number;
}

/** Where the keys of an interior page lie: the last byte of each, behind the number of the page it leads to. */
function keysInside(bytes: Buffer, page: number): number[] {
  const start = (page - 1) * PAGE_BYTES;
  if (bytes[start] !== INTERIOR) throw new Error('the tree has only one page');
  return Array.from({ length: bytes.readUInt16BE(start + 3) }, (_, i) => {
    let at = start + bytes.readUInt16BE(start + 12 + 2 * i) + 4;
    while ((bytes[at] ?? 0) >= 0x80) at += 1;
    return at;
  });
}
