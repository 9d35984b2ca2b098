import type { Config } from '../config.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { openSqlite } from '../storage/sqlite/engine.ts';

/** Runs `work` on the configured database. Commands that go through here read and never write. */
export async function withDatabase<T>(
  config: Config,
  work: (storage: StorageEngine) => Promise<T>,
): Promise<T> {
  const storage = await openSqlite({ path: config.dbPath, readOnly: true });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}
