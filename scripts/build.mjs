// Bundles the server into one file that starts with plain `node`: half the cold start of loose modules.
import { readFileSync } from 'node:fs';
import { build } from 'esbuild';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** @type {import('esbuild').BuildOptions} */
const shared = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: `node${engines.node.replace(/\D/g, '')}`,
  minify: true,
  sourcemap: false,
  legalComments: 'none',
  // Native, optional, and absent where Node brings its own SQLite.
  external: ['better-sqlite3'],
  logLevel: 'warning',
};

await build({ ...shared, entryPoints: ['src/server.ts'], outfile: 'dist/server.js' });
