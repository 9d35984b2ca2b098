import type { Config } from '../config.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { openSqlite } from '../storage/sqlite/engine.ts';

/** Runs `work` on the configured database, or on the one named. People's commands look and never write. */
export async function withDatabase<T>(
  config: Config,
  path: string | undefined,
  work: (storage: StorageEngine) => Promise<T>,
): Promise<T> {
  const storage = await openSqlite({ path: path ?? config.dbPath, readOnly: true });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}
