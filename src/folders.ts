import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it, for their owner only. Not with the recursive option: where the nearest existing
 * folder refuses with "no such file" (as /proc does), Node goes round in circles for ever.
 */
export function makePrivateFolder(path: string): void {
  const missing: string[] = [];
  for (let folder = path; !existsSync(folder); folder = dirname(folder)) missing.push(folder);
  for (const folder of missing.reverse()) makeOne(folder);
}

/** Another process may be making the same one. */
function makeOne(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}
