import type { Config } from '../config.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { openSqlite } from '../storage/sqlite/engine.ts';
import { MIGRATIONS } from '../storage/sqlite/migrations.ts';

/** Runs `work` on the configured database, or on the one named. People's commands look and never write. */
export async function withDatabase<T>(
  config: Config,
  path: string | undefined,
  work: (storage: StorageEngine) => Promise<T>,
): Promise<T> {
  const storage = await openSqlite({ path: path ?? config.dbPath, readOnly: true });
  try {
    const { schemaVersion } = storage.facts;
    if (schemaVersion < MIGRATIONS.length)
      throw new OlderSchemaError(olderSchema(storage.facts.path, schemaVersion));
    return await work(storage);
  } finally {
    await storage.close();
  }
}

/** Written by an earlier Colibri. Only a server brings it up to date; whoever looks changes nothing. */
export class OlderSchemaError extends Error {}

function olderSchema(path: string, version: number): string {
  return `${path} was written by an earlier Colibri (schema ${version}, this one makes ${MIGRATIONS.length}). Make a backup, then start a client once, or say "colibri call server_ping": that brings it up to date.`;
}
