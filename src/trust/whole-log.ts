import { isHash } from '../integrity/digest.ts';
import { Frontier } from '../integrity/tree.ts';
import type { StorageEngine } from '../storage/engine.ts';
import type { OwnLog, SignedHead } from './own-log.ts';
import { REFUSALS, RefusalError } from './refusal.ts';

/** Rows read at once: about 3 ms, so that calls are not held up for longer. */
const PAGE = 1_000;
/** The whole log is read at most this often, whichever process does it. */
export const FULL_CHECK_EVERY_MS = 3_600_000;

/**
 * Grows a tree from the rows themselves up to `size`, each page on a view of its own. Refuses a gap at the first position that is missing, so that a row
 * far beyond the others costs nothing (V9). Sets the root at each size that `rootsAt` has as a key.
 */
export async function regrow(
  storage: Pick<StorageEngine, 'read'>,
  tree: Frontier,
  size: number,
  path: string,
  rootsAt: Map<number, string> = new Map(),
): Promise<void> {
  while (tree.size < size) {
    const rows = await storage.read((tx) =>
      tx.all<{ position: number; content_hash: string }>(
        'SELECT position, content_hash FROM actions WHERE position > ? AND position <= ? ORDER BY position LIMIT ?',
        tree.size,
        size,
        PAGE,
      ),
    );
    if (rows.length === 0) throw new RefusalError(REFUSALS.gap(path, tree.size + 1));
    for (const { position, content_hash } of rows) {
      if (position !== tree.size + 1 || !isHash(content_hash))
        throw new RefusalError(REFUSALS.gap(path, tree.size + 1));
      tree.addDigest(content_hash);
      if (rootsAt.has(tree.size)) rootsAt.set(tree.size, tree.root());
    }
    if (tree.size < size) await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Where it is time again, reads the whole log in slices and compares its root with the signed one: the checks at start
 * and before each commit look at the last row only. Answers why the log must not be signed over, or undefined. The
 * result is kept with the key, so that the next start knows of it.
 */
export async function checkWholeLog(
  storage: StorageEngine,
  { folder, stamp }: OwnLog,
  head: SignedHead,
  path: string,
  now: number,
): Promise<string | undefined> {
  const last = folder.lastCheck();
  // A finding is looked at again by every process: the owner may have put a good copy back.
  const isDue = last?.finding !== undefined || Math.abs(now - (last?.at ?? 0)) >= FULL_CHECK_EVERY_MS;
  if (!isDue) return undefined;
  // Noted before it begins, so that of many processes one does it.
  folder.noteCheck(now, last?.finding);
  const tree = new Frontier();
  let finding: string | undefined;
  try {
    // The rows are append-only: a short snapshot for each slice sees the same ones and keeps no writer waiting.
    await regrow(storage, tree, head.row.size, path);
    if (tree.root() !== head.tree.root()) finding = REFUSALS.rewritten(path, head.row.size);
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    finding = error.message;
  }
  // The owner accepted the log meanwhile: what it was compared with no longer counts.
  if (folder.adoptionStamp() !== stamp) return undefined;
  folder.noteCheck(now, finding);
  return finding;
}
