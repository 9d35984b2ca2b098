import { closeSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { openPrivate, syncFolder } from '../../private-files.ts';
import { whileBusy } from './connection.ts';
import { loadDriver } from './driver.ts';
import { assertPresent, assertUnderstood } from './file.ts';

/**
 * Copies a database into a file that is not there yet, as of one moment and whole, while others go on writing. Fails with
 * EEXIST where anything is at the path; after a failure nothing is left there.
 */
export async function copySqlite(from: string, to: string): Promise<void> {
  const driver = await loadDriver();
  assertPresent(from);
  assertUnderstood(driver, from);
  // Made first, for its owner only: SQLite would make it for everybody. It fills an empty file and no other.
  closeSync(openPrivate(to, 'wx'));
  try {
    // Another process may be merging its log at this very moment.
    await whileBusy(() => {
      const db = driver.open(from, { readOnly: true });
      try {
        db.prepare('VACUUM INTO ?').run(to);
      } finally {
        db.close();
      }
    });
    const copy = openSync(to, 'r');
    fsyncSync(copy);
    closeSync(copy);
    syncFolder(dirname(to));
  } catch (error) {
    rmSync(to, { force: true });
    throw error;
  }
}
