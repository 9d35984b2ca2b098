import { code, GENERATED, page, table } from './markdown.mjs';

const USER = { home: '~', settings: '~/.config' };

/** docs/reference/clients.md */
export function clientsPage({ CLIENTS, snippetFor }) {
  const fileOf = (client) => client.files(USER).map(code).join(' or ');
  return page(
    '# Clients',
    GENERATED,
    '`colibri init --client NAME` writes the entry, and `--remove` removes it. Other entries, comments and their order do not change, and running it again changes nothing. Before a file is changed, a copy is saved in `.colibri/backup`, or in the configuration folder if the file is outside the project. The paths below are for Linux; Claude Desktop has its file in `~/Library/Application Support/Claude` on macOS and in `%APPDATA%\\Claude` on Windows.',
    table(
      ['Client', 'Name', 'File', 'Whose'],
      CLIENTS.map((client) => [
        `[${client.title}](#${client.title.toLowerCase().replaceAll(' ', '-')})`,
        code(client.name),
        fileOf(client),
        client.of === 'project'
          ? 'the project’s: a team can commit it'
          : 'the user’s: one log for all projects',
      ]),
    ),
    'On Windows the command is `cmd` with `/c npx -y colibri-mcp`. From a checkout, it is `node` with the path of `dist/server.js`, which works only on that machine. `COLIBRI_AGENT_ID` is the actor in the records; add other [settings](environment.md) next to it.',
    CLIENTS.flatMap((client) => [
      `## ${client.title}`,
      `${fileOf(client)}${client.note === undefined ? '' : `. ${client.note}`}`,
      `\`\`\`${client.format === 'toml' ? 'toml' : 'json'}\n${snippetFor(client)}\n\`\`\``,
    ]),
  );
}
