import type { Config } from '../config.ts';
import type { Diagnostics } from '../diagnostics.ts';
import { createSigner, type LogSigner } from '../log/signer.ts';
import { capabilitiesFor } from '../modes.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { openSqlite } from '../storage/sqlite/engine.ts';
import { exclusively } from '../storage/sqlite/exclusive.ts';
import { assertPresent } from '../storage/sqlite/file.ts';
import { UsageError } from './command.ts';

/** The head of the log, signed: or why it was not. */
export type Signed =
  | { readonly note: string; readonly refused?: undefined }
  | { readonly note?: undefined; readonly refused: string };

/** Opens the configured database as the server does, so that signing follows the same rules and the same lock. */
export async function withWritable<T>(
  config: Config,
  work: (storage: StorageEngine) => Promise<T>,
): Promise<T> {
  if (capabilitiesFor(config.mode).database !== 'file')
    throw new UsageError(`Nothing is signed in mode ${config.mode}. Unset COLIBRI_MODE for this command.`);
  assertPresent(config.dbPath);
  const storage = await openSqlite({ path: config.dbPath });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

/** Signs the head as it is now. A refusal is an answer; a failure is thrown. */
export async function signNow(config: Config, storage: StorageEngine): Promise<Signed> {
  const failures: string[] = [];
  const signer = signerFor(config, storage, failures);
  await signer.check();
  const note = await signer.sign(true);
  const { refused } = signer.state();
  if (refused !== undefined) return { refused };
  if (note !== undefined) return { note };
  if (failures.length > 0) throw new Error(failures.join('\n'));
  return { refused: `${config.dbPath} has no audit rows yet, so there is nothing to sign.` };
}

/** Why the signer refuses this database, if it does. Signs nothing. */
export async function whyRefused(config: Config, storage: StorageEngine): Promise<string | undefined> {
  const signer = signerFor(config, storage, []);
  await signer.check();
  return signer.state().refused;
}

function signerFor(config: Config, storage: StorageEngine, failures: string[]): LogSigner {
  const quiet = () => undefined;
  const diagnostics: Diagnostics = {
    error: (...parts) => void failures.push(parts.join(' ')),
    warn: quiet,
    info: quiet,
    debug: quiet,
  };
  const { dbPath, configDir } = config;
  return createSigner({ storage, dbPath, configDir, diagnostics, exclusively });
}
