import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { UserFolders } from '../config.ts';

/** What starts the server, and in which environment. */
export interface Start {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A value that JSON and TOML can hold. */
export type Entry = Readonly<Record<string, unknown>>;

/** An MCP client and how it is configured. */
export interface Client {
  readonly name: string;
  readonly title: string;
  /** Whose file it is: a project's is shared by a team, a user's serves all projects. */
  readonly of: 'project' | 'user';
  /** The file, below the project's folder or, for a user's, a full path. The first that exists is meant, or the first. */
  files(user: UserFolders): readonly string[];
  /** `jsonc` is JSON with comments and trailing commas, as the client itself allows. */
  readonly format: 'json' | 'jsonc' | 'toml';
  /** Under which key the servers are. */
  readonly key: string;
  entry(start: Start): Entry;
  /** What a person has to do or know beyond that, if anything. */
  readonly note?: string;
}

const plain = ({ command, args, env }: Start): Entry => ({ command, args, env });
const ownLog = (title: string) =>
  `${title} does not start servers in a project, so its log is in your data folder. To use a project, set COLIBRI_WORKSPACE in the entry.`;

/**
 * Every client that `colibri init --client` writes for. The names of files and keys are the clients' own;
 * docs/reference/clients.md is generated from here.
 */
export const CLIENTS: readonly Client[] = [
  {
    name: 'claude-code',
    title: 'Claude Code',
    of: 'project',
    files: () => ['.mcp.json'],
    format: 'json',
    key: 'mcpServers',
    entry: plain,
    note: 'Claude Code asks once whether the project’s servers may be started.',
  },
  {
    name: 'claude-desktop',
    title: 'Claude Desktop',
    of: 'user',
    files: ({ settings }) => [join(settings, 'Claude', 'claude_desktop_config.json')],
    format: 'json',
    key: 'mcpServers',
    entry: plain,
    note: `Restart Claude Desktop. ${ownLog('It')}`,
  },
  {
    name: 'cursor',
    title: 'Cursor',
    of: 'project',
    files: () => [join('.cursor', 'mcp.json')],
    format: 'json',
    key: 'mcpServers',
    // Cursor fills in the folder; where it starts a server is not promised.
    entry: ({ command, args, env }) => ({
      command,
      args,
      env: { ...env, COLIBRI_WORKSPACE: `\${workspaceFolder}` },
    }),
  },
  {
    name: 'vscode',
    title: 'VS Code',
    of: 'project',
    files: () => [join('.vscode', 'mcp.json')],
    format: 'jsonc',
    key: 'servers',
    entry: (start) => ({ type: 'stdio', ...plain(start) }),
  },
  {
    name: 'codex',
    title: 'Codex',
    of: 'project',
    files: () => [join('.codex', 'config.toml')],
    format: 'toml',
    key: 'mcp_servers',
    entry: plain,
    note: 'Codex reads the file in projects that you trust.',
  },
  {
    name: 'gemini-cli',
    title: 'Gemini CLI',
    of: 'project',
    files: () => [join('.gemini', 'settings.json')],
    format: 'jsonc',
    key: 'mcpServers',
    entry: plain,
    note: 'Gemini CLI starts servers in folders that you trust.',
  },
  {
    name: 'opencode',
    title: 'opencode',
    of: 'project',
    files: () => ['opencode.json', 'opencode.jsonc'],
    format: 'jsonc',
    key: 'mcp',
    entry: ({ command, args, env }) => ({
      type: 'local',
      command: [command, ...args],
      enabled: true,
      environment: env,
    }),
  },
  {
    name: 'windsurf',
    title: 'Windsurf',
    of: 'user',
    files: ({ home }) => [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
    format: 'json',
    key: 'mcpServers',
    entry: plain,
    note: ownLog('Windsurf'),
  },
  {
    name: 'zed',
    title: 'Zed',
    of: 'project',
    files: () => [join('.zed', 'settings.json')],
    format: 'jsonc',
    key: 'context_servers',
    entry: plain,
    note: 'Zed starts the project’s servers once you trust the project.',
  },
];

/** The name of the entry in every file. */
export const ENTRY_NAME = 'colibri';

const PACKAGE = 'colibri-mcp';

/** The server's path, if this is a checkout. What npm installed is below a folder node_modules. */
export function checkoutPath(): string | undefined {
  const path = fileURLToPath(new URL('server.js', import.meta.url));
  return path.split(/[\\/]/).includes('node_modules') ? undefined : path;
}

/**
 * How a client starts Colibri. From the registry, by its name, which is the same on every machine and outlasts the cache of
 * npx; from a checkout there is nothing but its path. The actor is the client's name, so that a record says who wrote it
 * whatever a client calls itself.
 */
export function startFor({ name }: Client, checkout?: string, platform: string = process.platform): Start {
  const env = { COLIBRI_AGENT_ID: name };
  if (checkout !== undefined) return { command: 'node', args: [checkout], env };
  const npx = ['npx', '-y', PACKAGE];
  // On Windows npx is a script, which only a shell can start.
  const [command = '', ...args] = platform === 'win32' ? ['cmd', '/c', ...npx] : npx;
  return { command, args, env };
}

/** The places where a client's file may be, in the order in which they are looked at. */
export function pathsOf(client: Client, workspace: string, user: UserFolders): string[] {
  return client.files(user).map((file) => (isAbsolute(file) ? file : join(workspace, file)));
}
