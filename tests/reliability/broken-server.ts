import { copyFileSync, cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Playground } from '../driver/playground.ts';
import { SERVER_FILE } from '../driver/server-process.ts';

const ROOT = new URL('../../', import.meta.url);

/** A copy of the built server with one text of it replaced, to see whether a test would notice. */
export function breakServer(colibri: Playground, from: string, to: string): string {
  const built = readFileSync(SERVER_FILE, 'utf8');
  if (!built.includes(from)) throw new Error(`the built server does not say ${from}`);
  const file = colibri.path('broken', 'dist', 'server.js');
  // With the files beside it that it loads when they are needed.
  cpSync(dirname(SERVER_FILE), dirname(file), {
    recursive: true,
    filter: (path) => !/\.(html|mjs)$|bench$|mcpb$/.test(path),
  });
  writeFileSync(file, built.replaceAll(from, to));
  copyFileSync(fileURLToPath(new URL('package.json', ROOT)), colibri.path('broken', 'package.json'));
  symlinkSync(fileURLToPath(new URL('node_modules', ROOT)), colibri.path('broken', 'node_modules'));
  return file;
}
