import { code, GENERATED, page, table } from './markdown.mjs';

const USER = { home: '~', settings: '~/.config' };

/** docs/reference/clients.md */
export function clientsPage({ CLIENTS, snippetFor }) {
  const fileOf = (client) => client.files(USER).map(code).join(' or ');
  return page(
    '# Clients',
    GENERATED,
    '`colibri init --client NAME` writes the entry, and `--remove` takes it out again. It keeps other entries, comments and order, changes nothing the second time, and keeps a copy of the file it changes in `.colibri/backup`, or in the configuration folder for a file outside the project. The paths below are those of Linux; Claude Desktop keeps its file in `~/Library/Application Support/Claude` on macOS and in `%APPDATA%\\Claude` on Windows.',
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
    'On Windows the command is `cmd` with `/c npx -y colibri-mcp`. From a checkout it is `node` with the path of `dist/server.js`, which holds on that machine only. `COLIBRI_AGENT_ID` is the actor in the records; further [settings](environment.md) go beside it.',
    CLIENTS.flatMap((client) => [
      `## ${client.title}`,
      `${fileOf(client)}${client.note === undefined ? '' : `. ${client.note}`}`,
      `\`\`\`${client.format === 'toml' ? 'toml' : 'json'}\n${snippetFor(client)}\n\`\`\``,
    ]),
  );
}
