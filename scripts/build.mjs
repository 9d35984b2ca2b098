// Bundles the server into one file that starts with plain `node`: half the cold start of loose modules.
import { readFileSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** @type {import('esbuild').BuildOptions} */
export const bundleOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: `node${engines.node.replace(/\D/g, '')}`,
  minify: true,
  legalComments: 'none',
  // Native, optional, and absent where Node brings its own SQLite.
  external: ['better-sqlite3'],
  logLevel: 'warning',
};

if (realpathSync(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) {
  await build({
    ...bundleOptions,
    // The SDK brings a JSON Schema validator of 150 KB for requests this server never makes.
    alias: { '@modelcontextprotocol/server/_shims': './scripts/sdk-shims.mjs' },
    entryPoints: ['src/server.ts'],
    outfile: 'dist/server.js',
  });
  await build({ ...bundleOptions, entryPoints: ['src/cli/main.ts'], outfile: 'dist/cli.js' });
}
