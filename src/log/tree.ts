import type { NodeReader } from '../integrity/proofs.ts';
import { leafHash, nodeHash } from '../integrity/tree.ts';
import type { Reader, Transaction } from '../storage/engine.ts';

/** Rows whose common root is stored. Below it a proof reads rows, above it stored roots. */
const BLOCK_ROWS = 256;
const BLOCK_LEVEL = Math.log2(BLOCK_ROWS);

/** Stores the root of the block that `position` completes, if it completes one. */
export async function closeBlock(tx: Transaction, position: number): Promise<void> {
  if (position % BLOCK_ROWS !== 0) return;
  const block = position / BLOCK_ROWS - 1;
  const leaves = await leavesBetween(tx, block * BLOCK_ROWS, position);
  await tx.run('INSERT INTO log_blocks (block, hash) VALUES (?, ?)', block, join(leaves));
}

/** The tree over all audit rows, read from the database as far as a proof needs it. */
export function logNodes(tx: Reader): NodeReader {
  return {
    async node(level, index) {
      const width = 2 ** level;
      if (level < BLOCK_LEVEL) return join(await leavesBetween(tx, index * width, (index + 1) * width));
      const blocks = width / BLOCK_ROWS;
      return join(await blocksBetween(tx, index * blocks, (index + 1) * blocks));
    },
  };
}

/** Leaf hashes of the rows at positions from + 1 to to. */
async function leavesBetween(tx: Reader, from: number, to: number): Promise<string[]> {
  const rows = await tx.all<{ content_hash: string }>(
    'SELECT content_hash FROM actions WHERE position > ? AND position <= ? ORDER BY position',
    from,
    to,
  );
  if (rows.length !== to - from) throw new Error(`audit rows between ${from + 1} and ${to} are missing`);
  return rows.map((row) => leafHash(row.content_hash));
}

async function blocksBetween(tx: Reader, from: number, to: number): Promise<string[]> {
  const rows = await tx.all<{ hash: string }>(
    'SELECT hash FROM log_blocks WHERE block >= ? AND block < ? ORDER BY block',
    from,
    to,
  );
  if (rows.length !== to - from) throw new Error(`stored roots of blocks ${from} to ${to - 1} are missing`);
  return rows.map((row) => row.hash);
}

/** The root over a power of two of hashes. */
function join(hashes: readonly string[]): string {
  let level = [...hashes];
  while (level.length > 1) {
    const above: string[] = [];
    for (let i = 0; i + 1 < level.length; i += 2) above.push(nodeHash(level[i] ?? '', level[i + 1] ?? ''));
    level = above;
  }
  const [root] = level;
  if (root === undefined) throw new RangeError('no hashes to join');
  return root;
}
