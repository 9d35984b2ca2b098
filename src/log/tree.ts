import { isHash } from '../integrity/digest.ts';
import type { NodeReader } from '../integrity/proofs.ts';
import { BLOCK_LEVEL, Frontier, leafHash } from '../integrity/tree.ts';
import { changeOne, type Reader, type Transaction } from '../storage/engine.ts';

/** Rows whose common root is stored. Below it a proof reads rows, above it stored roots. */
export const BLOCK_ROWS = 2 ** BLOCK_LEVEL;

/**
 * Stores the root of each block that the rows behind `before` up to `last` complete, if every row of it is there. Whoever
 * signed the rows has grown the tree over them, and knows its `roots` by the number of the block.
 */
export async function closeBlocks(
  tx: Transaction,
  before: number,
  last: number,
  roots: ReadonlyMap<number, string> = new Map(),
): Promise<void> {
  for (let block = Math.floor(before / BLOCK_ROWS); (block + 1) * BLOCK_ROWS <= last; block += 1) {
    const root =
      roots.get(block) ?? (await rootBetween(tx, ROWS, block * BLOCK_ROWS, (block + 1) * BLOCK_ROWS));
    // Rows that are damaged are for the verifier to find. They must not stop the calls.
    if (root !== undefined) changeOne(tx, 'INSERT INTO log_blocks (block, hash) VALUES (?, ?)', block, root);
  }
}

/** The tree over all audit rows, read from the database as far as a proof needs it. */
export function logNodes(tx: Reader): NodeReader {
  return {
    async node(level, index) {
      const width = 2 ** level;
      const [sql, step] = width < BLOCK_ROWS ? [ROWS, width] : [BLOCKS, width / BLOCK_ROWS];
      const root = await rootBetween(tx, sql, index * step, (index + 1) * step);
      if (root === undefined)
        throw new Error(`the log has gaps between ${index * width} and ${(index + 1) * width}`);
      return root;
    },
  };
}

const ROWS =
  'SELECT content_hash AS hash FROM audit_rows WHERE position > ? AND position <= ? ORDER BY position';
const BLOCKS = 'SELECT hash FROM log_blocks WHERE block >= ? AND block < ? ORDER BY block';

/** The root over a power of two of rows, or of blocks, from the one with index `from` to the one before `to`; undefined where some are missing or damaged. */
async function rootBetween(tx: Reader, sql: string, from: number, to: number): Promise<string | undefined> {
  const found = await tx.all<{ hash: string }>(sql, from, to);
  if (found.length !== to - from || !found.every(({ hash }) => isHash(hash))) return undefined;
  const tree = new Frontier();
  for (const { hash } of found) tree.addLeaf(sql === ROWS ? leafHash(hash) : hash);
  return tree.root();
}
