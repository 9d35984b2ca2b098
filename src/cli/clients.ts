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

/** What most clients have in common. */
const USUAL = { of: 'project', format: 'json', key: 'mcpServers', entry: plain } as const;

/**
 * Every client that `colibri init --client` writes for. The names of files and keys are the clients' own;
 * docs/reference/clients.md is generated from here.
 */
export const CLIENTS: readonly Client[] = [
  {
    ...{ ...USUAL, name: 'claude-code', title: 'Claude Code', files: () => ['.mcp.json'] },
    note: 'Claude Code asks once whether the project’s servers may be started.',
  },
  {
    ...{ ...USUAL, name: 'claude-desktop', title: 'Claude Desktop', of: 'user' },
    files: ({ settings }) => [join(settings, 'Claude', 'claude_desktop_config.json')],
    note: `Restart Claude Desktop. ${ownLog('It')}`,
  },
  {
    ...{ ...USUAL, name: 'cursor', title: 'Cursor', files: () => [join('.cursor', 'mcp.json')] },
    // Cursor fills in the folder; where it starts a server is not promised.
    entry: ({ env, ...start }) =>
      plain({ ...start, env: { ...env, COLIBRI_WORKSPACE: `\${workspaceFolder}` } }),
  },
  {
    ...{ ...USUAL, name: 'vscode', title: 'VS Code', files: () => [join('.vscode', 'mcp.json')] },
    ...{ format: 'jsonc', key: 'servers', entry: (start) => ({ type: 'stdio', ...plain(start) }) },
  },
  {
    ...{ ...USUAL, name: 'codex', title: 'Codex', files: () => [join('.codex', 'config.toml')] },
    ...{ format: 'toml', key: 'mcp_servers' },
    note: 'Codex reads the file in projects that you trust.',
  },
  {
    ...{ ...USUAL, name: 'gemini-cli', title: 'Gemini CLI', format: 'jsonc' },
    files: () => [join('.gemini', 'settings.json')],
    note: 'Gemini CLI starts servers in folders that you trust.',
  },
  {
    ...{ ...USUAL, name: 'opencode', title: 'opencode', format: 'jsonc', key: 'mcp' },
    files: () => ['opencode.json', 'opencode.jsonc'],
    entry: ({ command, args, env }) => ({
      ...{ type: 'local', command: [command, ...args], enabled: true, environment: env },
    }),
  },
  {
    ...{ ...USUAL, name: 'windsurf', title: 'Windsurf', of: 'user' },
    files: ({ home }) => [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
    note: ownLog('Windsurf'),
  },
  {
    ...{ ...USUAL, name: 'zed', title: 'Zed', format: 'jsonc', key: 'context_servers' },
    files: () => [join('.zed', 'settings.json')],
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
