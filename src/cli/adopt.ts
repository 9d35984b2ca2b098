import { existsSync, renameSync } from 'node:fs';
import type { Config } from '../config.ts';
import { AnchorFiles } from '../log/anchors.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import { LogFolder, originOf, PathMemory } from '../log/log-folder.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { whyRefused } from './signing.ts';

/** What the owner gave up so that the log can go on, in sentences. Empty where nothing stood in the way. */
export interface Adoption {
  readonly reason: string | undefined;
  readonly givenUp: readonly string[];
}

/**
 * Accepts the database as it is. Gives up as little as it can: first what is remembered of the path, and only where that
 * is not enough the key and what it signed. Nothing is deleted; everything is put aside under the time.
 */
export async function adopt(config: Config, storage: StorageEngine, now: Date): Promise<Adoption> {
  const reason = await whyRefused(config, storage);
  if (reason === undefined) return { reason, givenUp: [] };
  const suffix = now.toISOString().replaceAll(':', '-');
  const head = await readEnds(storage);
  const folder = head.first === undefined ? undefined : new LogFolder(config.configDir, originOf(head.first));
  const givenUp = forgetPath(config, folder, suffix);
  if ((await whyRefused(config, storage)) !== undefined)
    givenUp.push(...retireKey(config, folder, suffix, head.size));
  // The next check makes the new key; what was adopted is written beside it.
  await whyRefused(config, storage);
  if (folder?.exists) folder.noteAdoption({ at: now.toISOString(), reason, size: head.size });
  return { reason, givenUp };
}

/** Another log was at this path. Its own key and memory stay: it may live on elsewhere. */
function forgetPath(config: Config, folder: LogFolder | undefined, suffix: string): string[] {
  const memory = new PathMemory(config.configDir, config.dbPath);
  const seen = memory.read();
  if (typeof seen !== 'string' || seen === folder?.origin) return [];
  memory.retire(suffix);
  memory.write(folder?.exists ? folder.origin : null);
  return [
    `It is no longer remembered that ${config.dbPath} was the log ${seen}: that its rows are gone from here will not be reported again.`,
    ...putAside(config, suffix),
  ];
}

function retireKey(config: Config, folder: LogFolder | undefined, suffix: string, size: number): string[] {
  const hadKey = folder?.exists === true;
  folder?.retire(suffix);
  const memory = new PathMemory(config.configDir, config.dbPath);
  memory.retire(suffix);
  memory.write(null);
  return [
    `Nothing vouches any more for audit rows 1 to ${size}: whatever was changed, cut off or put back before now is accepted as it is.`,
    hadKey
      ? `The old key and what it last signed were put aside in ${folder?.path}.retired-${suffix}; a new key signs from now on, and whoever checks with the old one must be given the new one.`
      : 'A new key signs from now on. Whoever checks with an older one must be given the new one.',
    ...putAside(config, suffix),
  ];
}

/** Checkpoints and tokens beside the database were about the log as it was. */
function putAside(config: Config, suffix: string): string[] {
  const { newestPath, folder } = new CheckpointFiles(config.dbPath);
  const present = [newestPath, folder, new AnchorFiles(config.dbPath).folder].filter((path) =>
    existsSync(path),
  );
  for (const path of present) renameSync(path, `${path}.retired-${suffix}`);
  return present.map((path) => `${path} was put aside as ${path}.retired-${suffix}.`);
}

async function readEnds(storage: StorageEngine): Promise<{ first: string | undefined; size: number }> {
  return await storage.read(async (tx) => {
    const first = await tx.get<{ content_hash: string }>(
      'SELECT content_hash FROM actions WHERE position = 1',
    );
    const last = await tx.get<{ size: number | null }>('SELECT max(position) AS size FROM actions');
    return { first: first?.content_hash, size: last?.size ?? 0 };
  });
}
