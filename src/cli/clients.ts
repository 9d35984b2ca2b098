/** How each client is configured to start Colibri. The README shows what `colibri init --client NAME` prints. */
export interface Client {
  readonly name: string;
  readonly title: string;
  /** The file the snippet belongs in, in the project's or the user's folder. */
  readonly file: string;
  snippet(start: Start): string;
}

/** What starts the server. */
export interface Start {
  readonly command: string;
  readonly args: readonly string[];
}

const mcpServers = (start: Start) => JSON.stringify({ mcpServers: { colibri: start } }, null, 2);

export const CLIENTS: readonly Client[] = [
  { name: 'claude-code', title: 'Claude Code', file: '.mcp.json', snippet: mcpServers },
  {
    name: 'claude-desktop',
    title: 'Claude Desktop',
    file: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
    snippet: mcpServers,
  },
  { name: 'cursor', title: 'Cursor', file: '.cursor/mcp.json', snippet: mcpServers },
  {
    name: 'vscode',
    title: 'VS Code',
    file: '.vscode/mcp.json',
    snippet: (start) => JSON.stringify({ servers: { colibri: { type: 'stdio', ...start } } }, null, 2),
  },
  {
    name: 'codex',
    title: 'Codex',
    file: '.codex/config.toml',
    // A JSON string is also a TOML basic string: both escape in the same way.
    snippet: ({ command, args }) =>
      [
        '[mcp_servers.colibri]',
        `command = ${JSON.stringify(command)}`,
        `args = ${JSON.stringify(args)}`,
      ].join('\n'),
  },
];
