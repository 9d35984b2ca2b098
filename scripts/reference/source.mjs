import { rmSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

/** What the pages are made of. One line per module, so that a moved export is found at once. */
const ENTRY = `
export { catalogue } from './src/catalogue.ts';
export { CLIENTS, startFor } from './src/cli/clients.ts';
export { snippetFor } from './src/cli/init.ts';
export { COMMANDS } from './src/cli/commands.ts';
export { commandHelp, COMMON } from './src/cli/commands.ts';
export { VARIABLES } from './src/config.ts';
export { ARROWS, INITIAL } from './src/domains/tasks/workflows.ts';
export { ERRORS } from './src/errors.ts';
export { createAuditLog } from './src/log/audit-log.ts';
export { UNSIGNED } from './src/log/append.ts';
export { composeCall } from './src/middleware/compose.ts';
export { capabilitiesFor, MODES } from './src/modes.ts';
export { openSqlite } from './src/storage/sqlite/engine.ts';
export { EXIT } from './src/transport/lifecycle.ts';
export { verifyChain } from './src/verify/chain.ts';
export * as z from 'zod';
`;

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The TypeScript sources as one module: Node 20 cannot import them, so they are bundled, to where packages are found from. */
export async function loadSource() {
  const outfile = `${root}dist/source-${process.pid}.mjs`;
  await build({
    stdin: { contents: ENTRY, resolveDir: root, loader: 'ts' },
    absWorkingDir: root,
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
    external: ['@photostructure/sqlite', 'pg'],
  });
  try {
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(outfile);
  }
}
