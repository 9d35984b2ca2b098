import { openConnection } from './connection.ts';
import { loadDriver } from './driver.ts';
import { preparePrivateFile } from './file.ts';

/**
 * Runs `work` while no other process holds the same lock file. The lock is SQLite's own on an empty database: the
 * kernel releases it when its holder dies, however it dies, which no lock made of a file's mere existence does.
 */
export async function exclusively<T>(lockPath: string, work: () => Promise<T>): Promise<T> {
  preparePrivateFile(lockPath);
  const connection = await openConnection(await loadDriver(), lockPath, { writable: true });
  try {
    await connection.begin('BEGIN IMMEDIATE');
    return await work();
  } finally {
    connection.rollback();
    connection.close();
  }
}
