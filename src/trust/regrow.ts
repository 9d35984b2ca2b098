import { isHash } from '../integrity/digest.ts';
import type { Frontier } from '../integrity/tree.ts';
import type { Reader } from '../storage/engine.ts';
import { REFUSALS } from './refusal.ts';

/** Rows read at once: about 3 ms, so that calls are not held up for longer. */
const PAGE = 1_000;

/** Runs `work` on one view of the database: a snapshot of its own for each page, or the transaction that is open. */
type Read = <T>(work: (tx: Reader) => Promise<T>) => Promise<T>;

/**
 * Grows a tree from the rows themselves up to `size`. Refuses a gap at the first position that is missing, so that a row
 * far beyond the others costs nothing (V9). Sets the root at each size that `rootsAt` has as a key.
 */
export async function regrow(
  read: Read,
  tree: Frontier,
  size: number,
  path: string,
  rootsAt: Map<number, string> = new Map(),
): Promise<void> {
  while (tree.size < size) {
    const rows = await read((tx) => pageAfter(tx, tree.size, size));
    if (rows.length === 0) throw REFUSALS.gap(path, tree.size + 1);
    for (const { position, content_hash } of rows) {
      if (position !== tree.size + 1 || !isHash(content_hash)) throw REFUSALS.gap(path, tree.size + 1);
      tree.addDigest(content_hash);
      if (rootsAt.has(tree.size)) rootsAt.set(tree.size, tree.root());
    }
    if (tree.size < size) await new Promise((resolve) => setImmediate(resolve));
  }
}

async function pageAfter(tx: Reader, from: number, to: number) {
  return await tx.all<{ position: number; content_hash: string }>(
    'SELECT position, content_hash FROM actions WHERE position > ? AND position <= ? ORDER BY position LIMIT ?',
    from,
    to,
    PAGE,
  );
}
