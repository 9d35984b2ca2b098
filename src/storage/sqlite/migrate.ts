import type { Connection } from './connection.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';

/**
 * Brings the schema up to date. The version is read again under the write lock: of eight processes that start at once on
 * no file one creates everything and seven find it done. A kill in the middle leaves the old version, whole.
 */
export async function migrate(db: Connection): Promise<void> {
  if (db.pragma('user_version') === MIGRATIONS.length) return;
  await db.begin('BEGIN IMMEDIATE');
  try {
    const from = db.pragma('user_version');
    if (from > MIGRATIONS.length) throw new Error('a newer Colibri has just migrated it; update Colibri');
    for (const step of MIGRATIONS.slice(from)) db.script(step);
    if (from === 0) db.script(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.script(`PRAGMA user_version = ${MIGRATIONS.length}`);
    db.commit();
  } catch (error) {
    db.rollback();
    throw error;
  }
  db.checkpoint();
}
