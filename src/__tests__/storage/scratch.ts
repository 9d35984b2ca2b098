import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { StorageEngine, Transaction } from '../../storage/engine.ts';
import { openSqlite, type SqliteOptions } from '../../storage/sqlite/engine.ts';

/** An empty folder of the running test's own, gone when it ends. */
export function scratchFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'colibri-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Where a database could be, in a folder that does not exist yet. */
export function scratchPath(): string {
  return join(scratchFolder(), '.colibri', 'colibri.db');
}

/** A real engine on a real file, closed when the test ends. */
export async function openScratch(
  path: string = scratchPath(),
  options: Omit<SqliteOptions, 'path'> = {},
): Promise<StorageEngine> {
  const engine = await openSqlite({ path, ...options });
  onTestFinished(() => engine.close());
  return engine;
}

/** SHA-256 of the bytes of every file in a folder, by name: two equal ones mean that nothing was touched. */
export function fingerprint(folder: string): Record<string, string> {
  const names = readdirSync(folder).sort();
  return Object.fromEntries(
    names.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  );
}

/** Runs `work` without the triggers of the schema, and puts them back: a file without them is not used. */
export async function pastTriggers(tx: Transaction, work: () => Promise<unknown>): Promise<void> {
  const triggers = await tx.all<{ name: string; sql: string }>(
    "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'",
  );
  for (const { name } of triggers) await tx.run(`DROP TRIGGER ${name}`);
  await work();
  for (const { sql } of triggers) await tx.run(sql);
}
