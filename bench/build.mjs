import { mkdirSync, renameSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { bundleOptions } from '../scripts/build.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

// Inside the repository, so that what is not bundled is found where npm put it.
const OUT = here('../dist/bench/');

export const SERVER = here('../dist/server.js');

/** The bare server, bundled with the options of the real one. */
export async function buildBareServer() {
  return await bundle('bare-server.mjs', 'bare-server.mjs');
}

/** What TypeScript a benchmark needs of the product, as a script. */
export async function bundleSource(name) {
  return await bundle(`${name}.ts`, `${name}.mjs`);
}

/** The same, as a module. */
export async function importSource(name) {
  return await import(pathToFileURL(await bundleSource(name)).href);
}

/** Put in place whole: another process may be starting the one that is there. */
async function bundle(entry, out) {
  mkdirSync(OUT, { recursive: true });
  const [outfile, made] = [`${OUT}${out}`, `${OUT}${process.pid}-${out}`];
  await build({ ...bundleOptions, entryPoints: [here(entry)], outfile: made });
  renameSync(made, outfile);
  return outfile;
}
