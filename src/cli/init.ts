import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeDataFolder, oddity, readText, replaceFile } from '../private-files.ts';
import { storageRuntime } from '../storage/open.ts';
import { PathMemory } from '../trust/key-folder.ts';
import { isObject } from '../verify/rules/payloads.ts';
import { command, orUsage, UsageError } from './command.ts';

/** What starts the server. */
type Start = { readonly command: string; readonly args: readonly string[] };

const toJson = (value: object) => JSON.stringify(value, null, 2);
const mcpServers = (start: Start) => toJson({ mcpServers: { colibri: start } });
const servers = (start: Start) => toJson({ servers: { colibri: { type: 'stdio', ...start } } });
// A JSON string is also a TOML basic string: both escape in the same way.
const toml = ({ command, args }: Start) =>
  `[mcp_servers.colibri]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}`;
const DESKTOP_FILE = 'claude_desktop_config.json (Settings, Developer, Edit Config)';

/**
 * How a client is configured to start Colibri; `file` is where the snippet belongs, in the project's or the user's folder.
 * The README shows what `colibri init --client NAME` prints.
 */
export const CLIENTS = [
  { name: 'claude-code', title: 'Claude Code', file: '.mcp.json', snippet: mcpServers },
  { name: 'claude-desktop', title: 'Claude Desktop', file: DESKTOP_FILE, snippet: mcpServers },
  { name: 'cursor', title: 'Cursor', file: '.cursor/mcp.json', snippet: mcpServers },
  { name: 'vscode', title: 'VS Code', file: '.vscode/mcp.json', snippet: servers },
  { name: 'codex', title: 'Codex', file: '.codex/config.toml', snippet: toml },
];
const NAMES = CLIENTS.map(({ name }) => name).join(', ');

/** Connects the project's clients to Colibri. */
export const init = command({
  name: 'init',
  usage: '[--client NAME]',
  summary: 'write or merge .mcp.json, keep .colibri/ out of git, print the other clients’ snippets',
  details: `Clients: ${NAMES}. The project is the nearest folder at or above this one that holds .git or .colibri, or this one by default. With --client, only that client’s snippet is printed and nothing is written.`,
  options: { client: { value: 'NAME', help: 'print the snippet for one client' } },
  async run(given) {
    const { values, out } = given;
    // A client must not be set up for a server that cannot run here.
    await storageRuntime();
    // This installation, so that it works without a network and without a package name.
    const start = { command: 'node', args: [fileURLToPath(new URL('server.js', import.meta.url))] };
    if (values.client !== undefined) {
      const client = CLIENTS.find(({ name }) => name === values.client);
      if (client === undefined)
        throw new UsageError(`There is no client "${values.client}". Clients: ${NAMES}.`);
      const [{ name, file }, snippet] = [client, client.snippet(start)];
      return out.data({ client: name, file, snippet }, () => out.verbatim(snippet));
    }
    const { workspace: found, isProject } = given.config;
    // A folder that is not in a project becomes one now.
    const workspace = isProject ? found : process.cwd();
    const folder = join(workspace, '.colibri');
    const path = join(workspace, '.mcp.json');
    const { before, after, mode } = mergeMcpJson(path, start);
    // Whatever is refused is refused before anything is written.
    makeDataFolder(folder);
    if (before !== after) replaceFile(path, after, true, mode);
    const starts = 'starts Colibri for Claude Code and every client that reads it';
    const now = before === after ? 'already starts Colibri' : starts;
    const done = [`${path} ${now}`, `${folder} is ready and kept out of git`];
    const lost = tellLost(
      given.config.configDir,
      isProject ? given.config.dbPath : join(folder, 'colibri.db'),
    );
    return out.data({ workspace, done, ...(lost && { lost }) }, () => {
      for (const line of done) out.line(`${out.paint('green', '✓')} ${line}`, 2);
      if (lost !== undefined) out.line(`${out.paint('yellow', '!')} ${lost}`, 2);
      out.line();
      out.line('Start Claude Code here, or configure another client:');
      for (const { title, file, snippet } of CLIENTS.slice(1)) {
        out.line();
        out.line(`${out.paint('bold', title)}: ${file}`);
        out.verbatim(snippet(start));
      }
    });
  },
});

/** What it means that a database which was signed here is gone; undefined where none is. */
function tellLost(configDir: string, dbPath: string): string | undefined {
  const [before] = new PathMemory(configDir, dbPath).seen();
  if (before === undefined || existsSync(dbPath)) return undefined;
  return `The database ${dbPath} was the log ${before} and is gone. If that was a mistake, put it back from a backup before anything is called. Otherwise the first call starts a new log, and nothing of it is signed until you accept the loss: colibri checkpoint --adopt.`;
}

/** The file with one entry added and all others kept. One that cannot be understood is not touched. */
function mergeMcpJson(path: string, start: Start) {
  const odd = oddity(path, true);
  if (odd !== undefined)
    throw new UsageError(
      `${path} is ${odd} and was left as it is. "colibri init --client claude-code" prints the snippet.`,
    );
  const stat = lstatSync(path, { throwIfNoEntry: false });
  const before = stat && readText(path);
  const hint = 'Fix it, then run this again; nothing was changed.';
  if (stat !== undefined && before === undefined)
    throw new UsageError(`${path} cannot be read, or is larger than any such file. ${hint}`);
  const existing = orUsage(`${path} is not JSON`, (): object => JSON.parse(before ?? '{}'), hint);
  const { mcpServers = {} } = isObject(existing) ? existing : { mcpServers: null };
  if (!isObject(mcpServers))
    throw new UsageError(
      `${path} has no object "mcpServers". Fix it, or add the snippet from "colibri init --client claude-code" by hand.`,
    );
  const merged = { ...existing, mcpServers: { ...mcpServers, colibri: start } };
  const after = orUsage(`${path} is nested too deeply`, () => `${toJson(merged)}\n`, hint);
  return { before, after, mode: stat && stat.mode & 0o777 };
}
