// Photographs the real output of the demo for the README: node scripts/demo-picture.mjs
import { fileURLToPath } from 'node:url';
import { photograph, runOnTerminal } from './terminal-picture.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const printed = runOnTerminal('node dist/cli.js demo', { columns: 92, cwd: ROOT });
await photograph('npx -y colibri-mcp demo', printed, `${ROOT}docs/images/demo.png`);
