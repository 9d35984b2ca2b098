import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { asError } from '../errors.ts';
import { CLIENTS, type Client, type Start } from './clients.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';

/** Connects the project's clients to Colibri. */
export const init: Command = {
  name: 'init',
  usage: '[--client NAME]',
  summary: 'write or merge .mcp.json, keep .colibri/ out of git, print the other clients’ snippets',
  details: `Clients: ${CLIENTS.map((client) => client.name).join(', ')}. The project is the nearest folder at or above this one that holds .git or .colibri, or this one by default. With --client, only that client’s snippet is printed and nothing is written.`,
  options: { client: { type: 'string', value: 'NAME', help: 'print the snippet for one client' } },
  positionals: [0, 0],
  async run(invocation) {
    const start = startOf();
    const { client } = invocation.values;
    return typeof client === 'string' ? printOne(client, start, invocation) : setUp(start, invocation);
  },
};

/** This installation, so that it works without a network and without a package name. */
function startOf(): Start {
  return { command: 'node', args: [fileURLToPath(new URL('server.js', import.meta.url))] };
}

function printOne(name: string, start: Start, { out }: Invocation): number {
  const client = CLIENTS.find((candidate) => candidate.name === name);
  if (client === undefined)
    throw new UsageError(
      `There is no client "${name}". Clients: ${CLIENTS.map((known) => known.name).join(', ')}.`,
    );
  out.data({ client: client.name, file: client.file, snippet: client.snippet(start) }, () =>
    out.verbatim(client.snippet(start)),
  );
  return EXIT.fine;
}

function setUp(start: Start, { out, config }: Invocation): number {
  const { workspace: found, isProject } = config();
  // A folder that is not in a project becomes one now.
  const workspace = isProject ? found : process.cwd();
  const done = [mergeMcpJson(join(workspace, '.mcp.json'), start), ignoreFolder(join(workspace, '.colibri'))];
  out.data({ workspace, done }, () => {
    for (const line of done) out.line(`${out.paint('green', '✓')} ${line}`, 2);
    out.line();
    out.line('Start Claude Code here, or configure another client:');
    for (const client of CLIENTS.slice(1)) printFor(client, start, out);
  });
  return EXIT.fine;
}

function printFor(client: Client, start: Start, out: Invocation['out']): void {
  out.line();
  out.line(`${out.paint('bold', client.title)}: ${client.file}`);
  out.verbatim(client.snippet(start));
}

/** Adds one entry and keeps all others; a file that cannot be parsed is not touched. */
function mergeMcpJson(path: string, start: Start): string {
  const existing: unknown = existsSync(path) ? readJson(path) : {};
  if (!isObject(existing) || (existing.mcpServers !== undefined && !isObject(existing.mcpServers))) {
    throw new UsageError(
      `${path} has no object "mcpServers". Fix it, or add the snippet from "colibri init --client claude-code" by hand.`,
    );
  }
  const servers = isObject(existing.mcpServers) ? existing.mcpServers : {};
  const text = `${JSON.stringify({ ...existing, mcpServers: { ...servers, colibri: start } }, null, 2)}\n`;
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return `${path} already starts Colibri`;
  writeFileSync(path, text);
  return `${path} starts Colibri for Claude Code and every client that reads it`;
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new UsageError(
      `${path} is not JSON (${asError(error).message}). Fix it, then run this again; nothing was changed.`,
    );
  }
}

function ignoreFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const ignore = join(folder, '.gitignore');
  if (!existsSync(ignore)) writeFileSync(ignore, '*\n', { mode: 0o600 });
  return `${folder} is ready and kept out of git`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
