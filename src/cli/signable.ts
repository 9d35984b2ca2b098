import type { Config } from '../config.ts';
import type { StorageEngine } from '../storage/engine.ts';
import type { KeyFolder } from '../trust/key-folder.ts';
import { readView } from '../trust/log-view.ts';
import { loadOwnLog, requireExtends, requireHead, requireRemembered } from '../trust/own-log.ts';
import { PathMemory } from '../trust/path-memory.ts';
import { REFUSALS } from '../trust/refusal.ts';

/**
 * The key folder of a log that a server would go on signing; undefined for one without rows. Throws a `RefusalError`
 * where it would not. Takes the same time for every log; `colibri verify` checks everything.
 */
export async function requireSignable(
  storage: StorageEngine,
  { configDir, dbPath }: Config,
): Promise<KeyFolder | undefined> {
  const { origin, last } = await storage.read(readView);
  const before = new PathMemory(configDir, dbPath).otherThan(origin);
  if (before !== undefined) throw REFUSALS.replaced(before, origin ?? 'an unsigned one');
  if (origin === undefined && last.position > 0) throw REFUSALS.neverSigned(dbPath, last.position);
  if (origin === undefined) return undefined;
  const own = loadOwnLog(configDir, origin, dbPath);
  // Read before the log: a server may sign further rows at any moment.
  const remembered = requireRemembered(own);
  await storage.read(async (tx) => {
    const view = await readView(tx);
    await requireHead(tx, view, own, dbPath);
    await requireExtends(tx, view, remembered, dbPath);
  });
  return own.folder;
}
