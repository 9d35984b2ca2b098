import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it, for their owner only. Not with the recursive option: where the nearest existing
 * folder refuses with "no such file" (as /proc does), Node goes round in circles for ever.
 */
export function makePrivateFolder(path: string): void {
  const missing: string[] = [];
  for (let folder = path; !existsSync(folder); folder = dirname(folder)) missing.push(folder);
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another process may have made it.
      if (!existsSync(folder)) throw error;
    }
  }
}
