import type { NodeReader } from '../integrity/proofs.ts';
import { Frontier, leafHash } from '../integrity/tree.ts';
import type { Reader, Transaction } from '../storage/engine.ts';

/** Rows whose common root is stored. Below it a proof reads rows, above it stored roots. */
const BLOCK_ROWS = 256;

/** Stores the root of the block that `position` completes, if it completes one. */
export async function closeBlock(tx: Transaction, position: number): Promise<void> {
  if (position % BLOCK_ROWS !== 0) return;
  const root = await rootBetween(tx, ROWS, position - BLOCK_ROWS, position);
  await tx.run('INSERT INTO log_blocks (block, hash) VALUES (?, ?)', position / BLOCK_ROWS - 1, root);
}

/** The tree over all audit rows, read from the database as far as a proof needs it. */
export function logNodes(tx: Reader): NodeReader {
  return {
    async node(level, index) {
      const width = 2 ** level;
      if (width < BLOCK_ROWS) return await rootBetween(tx, ROWS, index * width, (index + 1) * width);
      const blocks = width / BLOCK_ROWS;
      return await rootBetween(tx, BLOCKS, index * blocks, (index + 1) * blocks);
    },
  };
}

const ROWS = 'SELECT content_hash FROM actions WHERE position > ? AND position <= ? ORDER BY position';
const BLOCKS = 'SELECT hash FROM log_blocks WHERE block >= ? AND block < ? ORDER BY block';

/** The root over a power of two of rows, or of blocks, from the one with index `from` to the one before `to`. */
async function rootBetween(tx: Reader, sql: string, from: number, to: number): Promise<string> {
  const found = await tx.all<{ content_hash: string; hash?: undefined } | { hash: string }>(sql, from, to);
  if (found.length !== to - from) throw new Error(`the log has gaps between ${from} and ${to}: ${sql}`);
  const tree = new Frontier();
  for (const row of found) tree.addLeaf(row.hash ?? leafHash(row.content_hash));
  return tree.root();
}
