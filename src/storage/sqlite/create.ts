import type { Connection } from './connection.ts';
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from './schema.ts';

/**
 * Makes the tables of a new file. The version is read again under the write lock: of eight processes that start at once
 * on no file one creates everything and seven find it done. A kill in the middle leaves an empty file.
 */
export async function createSchema(db: Connection): Promise<void> {
  if (db.pragma('user_version') === SCHEMA_VERSION) return;
  await db.begin('BEGIN IMMEDIATE');
  try {
    const made = db.pragma('user_version');
    if (made === 0) {
      db.script(SCHEMA);
      db.script(`PRAGMA application_id = ${APPLICATION_ID}`);
      db.script(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    } else if (made !== SCHEMA_VERSION) {
      throw new Error(
        `another version of Colibri has just made it (schema ${made}); use that version for it`,
      );
    }
    db.commit();
  } catch (error) {
    db.rollback();
    throw error;
  }
  db.checkpoint();
}
