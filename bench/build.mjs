import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundleOptions } from '../scripts/build.mjs';

/** The bare server, bundled with the options of the real one. */
export async function buildBareServer() {
  const outfile = join(mkdtempSync(join(tmpdir(), 'colibri-bare-')), 'bare.mjs');
  await build({ ...bundleOptions, entryPoints: [fileURLToPath(new URL('bare-server.mjs', import.meta.url))], outfile });
  return outfile;
}

export const SERVER = fileURLToPath(new URL('../dist/server.js', import.meta.url));
