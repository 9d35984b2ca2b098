import { expect, test } from 'vitest';
import { systemClock } from '../../clock.ts';
import { treeRoot } from '../../integrity/tree.ts';
import { appendRow, type NewRow, readHead } from '../../log/append.ts';
import type { Finding } from '../../log/verify/finding.ts';
import { LogWalk } from '../../log/verify/rows.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openScratch } from '../storage/scratch.ts';
import { ENTER_ROW } from './log-rows.ts';

const BLOCK_ROWS = 256;
const ROWS = 4 * BLOCK_ROWS + 38;
/** A size inside of each block: where a root is wanted, rows are read one by one. */
const INSIDE = Array.from({ length: 5 }, (_, i) => i * BLOCK_ROWS + 9);

async function filled(): Promise<StorageEngine> {
  const storage = await openScratch();
  await storage.write(async (tx) => {
    let head = await readHead(tx);
    for (let i = 0; i < ROWS; i += 2) {
      head = await appendRow(tx, head, ENTER_ROW, systemClock);
      const exit: NewRow = {
        ...ENTER_ROW,
        stage: 'exit',
        sequence_no: head.position,
        outcome: 'ok',
        duration_ms: 3,
      };
      head = await appendRow(tx, head, exit, systemClock);
    }
  });
  return storage;
}

/** What a walk answers, and how many rows it had to look at one by one. */
async function walked(storage: StorageEngine, sizes: readonly number[]) {
  const findings: Finding[] = [];
  const walk = new LogWalk((finding) => findings.push(finding), sizes);
  const read: unknown[] = [];
  let single = 0;
  await storage.read(async (tx) => {
    const counting: typeof tx = {
      get: tx.get.bind(tx),
      all: async (sql, ...params) => {
        const rows = await tx.all(sql, ...params);
        single += rows.length;
        return rows as never;
      },
    };
    for (let rows = await walk.next(counting); rows !== undefined; rows = await walk.next(counting))
      read.push(...rows);
  });
  return { findings, read, head: walk.head, roots: walk.roots, single };
}

test('a log read in blocks is the log read row by row', async () => {
  const storage = await filled();
  const hashes = await storage.read((tx) =>
    tx.all<{ content_hash: string }>('SELECT content_hash FROM actions ORDER BY position'),
  );
  const rootAt = (size: number) => treeRoot(hashes.slice(0, size).map((row) => row.content_hash));

  const inBlocks = await walked(storage, [BLOCK_ROWS, 3 * BLOCK_ROWS]);
  const rowByRow = await walked(storage, INSIDE);

  expect([inBlocks.single, rowByRow.single]).toEqual([38, ROWS]);
  expect(inBlocks.findings).toEqual([]);
  expect(inBlocks.read).toHaveLength(ROWS);
  expect(inBlocks.read).toEqual(rowByRow.read);
  expect(inBlocks.head).toEqual(rowByRow.head);
  expect(inBlocks.head).toEqual({ size: ROWS, root: rootAt(ROWS) });
  expect([...inBlocks.roots]).toEqual([BLOCK_ROWS, 3 * BLOCK_ROWS].map((size) => [size, [rootAt(size)]]));
  expect([...rowByRow.roots]).toEqual(INSIDE.map((size) => [size, [rootAt(size)]]));
});
