import { Frontier } from '../integrity/tree.ts';
import type { StorageEngine } from '../storage/engine.ts';
import type { KeyFolder } from './key-folder.ts';
import type { SignedHead } from './log-view.ts';
import type { OwnLog } from './own-log.ts';
import { REFUSALS, RefusalError } from './refusal.ts';
import { regrow } from './regrow.ts';

/** How long after a start the whole log is read again, so that starts stay cheap. */
export const FULL_CHECK_DELAY_MS = 60_000;
/** At most this often for each log, whichever process does it. */
export const FULL_CHECK_EVERY_MS = 3_600_000;

/**
 * Reads the whole log again in slices and compares its root with the signed one: the checks at start and before each
 * commit look at the last row only. Answers why the log must not be signed over, or undefined. The result is kept beside
 * the key, so that the next start knows of it.
 */
export async function checkWholeLog(
  storage: StorageEngine,
  { folder, stamp }: OwnLog,
  head: SignedHead,
  path: string,
  now: number,
): Promise<string | undefined> {
  // Noted before it begins, so that of many processes one does it.
  folder.noteCheck({ ...folder.lastCheck(), at: now });
  const finding = await findingIn(storage, head, path);
  // The owner accepted the log meanwhile: what it was compared with no longer counts.
  if (folder.adoptionStamp() !== stamp) return undefined;
  folder.noteCheck(finding === undefined ? { at: now } : { at: now, finding });
  return finding;
}

async function findingIn(
  storage: StorageEngine,
  head: SignedHead,
  path: string,
): Promise<string | undefined> {
  const tree = new Frontier();
  try {
    // The rows are append-only: a short snapshot for each slice sees the same ones and keeps no writer waiting.
    await regrow((work) => storage.read(work), tree, head.row.size, path);
    return tree.root() === head.tree.root() ? undefined : REFUSALS.rewritten(path, head.row.size).message;
  } catch (error) {
    if (error instanceof RefusalError) return error.message;
    throw error;
  }
}

/** Whether it is time again. A finding is looked at again by every process: the owner may have put a good copy back. */
export function isCheckDue(folder: KeyFolder, now: number): boolean {
  const last = folder.lastCheck();
  return last === undefined || last.finding !== undefined || Math.abs(now - last.at) >= FULL_CHECK_EVERY_MS;
}
