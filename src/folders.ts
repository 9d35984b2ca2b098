import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it, for their owner only. Not with the recursive option: where the nearest existing
 * folder refuses with "no such file" (as /proc does), Node goes round in circles for ever.
 */
export function makePrivateFolder(path: string): void {
  if (existsSync(path)) return;
  makePrivateFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it.
    if (!existsSync(path)) throw error;
  }
}
