// npm run test:clients: do the clients of other hosts see a refused call as an error, in both patterns of the envelope?
// Their packages are installed into a temporary folder; without a network the check is skipped, and says so.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const PACKAGES = [
  '@langchain/mcp-adapters@1.1.4',
  '@langchain/core@1.2.12',
  '@mastra/mcp@2.0.0',
  'mcporter@0.12.3',
];
const SERVER = fileURLToPath(new URL('../dist/server.js', import.meta.url));

/** A success, a refusal in pattern B, and one in pattern A. */
const CALLS = [
  ['task_create', { title: 'A task', project: 'demo' }, 'success'],
  ['task_get', { task_id: 'T-9999' }, 'error'],
  ['thought_record', { task_id: 'T-9999', type: 'plan', content: 'A thought.' }, 'error'],
];

const folder = mkdtempSync(join(tmpdir(), 'colibri-clients-'));
try {
  const reason = install();
  if (reason === undefined) await checkAll();
  else console.log(`skipped: npm cannot install the clients (${reason})`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function install() {
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--force', ...PACKAGES];
  const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8', timeout: 300_000 });
  return status === 0 ? undefined : (/npm error (.*)/.exec(stderr)?.[1] ?? 'npm did not answer');
}

async function checkAll() {
  for (const [name, connect] of Object.entries({ langchain, mastra, mcporter })) {
    const { call, close } = await connect(startOf(name));
    for (const [tool, args, expected] of CALLS) {
      const seen = await call(tool, args).then(
        () => 'success',
        () => 'error',
      );
      console.log(`${seen === expected ? 'ok    ' : 'WRONG '} ${name} sees ${tool} as ${seen}`);
      if (seen !== expected) process.exitCode = 1;
    }
    await close();
  }
}

/** How a client starts the server, in a workspace of its own. */
function startOf(name) {
  const home = join(folder, 'home', name);
  mkdirSync(home, { recursive: true });
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    CLAUDE_PROJECT_DIR: home,
    COLIBRI_LOG_LEVEL: 'error',
  };
  return { command: process.execPath, args: [SERVER], env };
}

async function load(name) {
  return await import(pathToFileURL(createRequire(join(folder, 'x.js')).resolve(name)));
}

/** LangChain throws a ToolException. */
async function langchain(start) {
  const { MultiServerMCPClient } = await load('@langchain/mcp-adapters');
  const client = new MultiServerMCPClient({ mcpServers: { colibri: { ...start, transport: 'stdio' } } });
  const tools = new Map((await client.getTools()).map((tool) => [tool.name, tool]));
  return { call: (tool, args) => tools.get(tool).invoke(args), close: () => client.close() };
}

/** Mastra throws, unless it is told to return errors. */
async function mastra(start) {
  const { MCPClient } = await load('@mastra/mcp');
  const client = new MCPClient({ servers: { colibri: { ...start, enableServerLogs: false } } });
  const tools = await client.listTools();
  return { call: (tool, args) => tools[`colibri_${tool}`].execute(args), close: () => client.disconnect() };
}

/** mcporter ends with exit code 1. */
async function mcporter(start) {
  const config = join(folder, 'mcporter.json');
  writeFileSync(config, JSON.stringify({ mcpServers: { colibri: start } }));
  const cli = join(folder, 'node_modules', 'mcporter', 'dist', 'cli.js');
  const call = async (tool, args) => {
    const given = ['--config', config, 'call', `colibri.${tool}`, '--args', JSON.stringify(args)];
    execFileSync(process.execPath, [cli, ...given], { stdio: 'pipe', timeout: 60_000 });
  };
  return { call, close: async () => undefined };
}
