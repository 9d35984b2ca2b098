import { GENERATED, page, table } from './markdown.mjs';

/** docs/reference/commands.md */
export function commandsPage({ COMMANDS, commandHelp }) {
  return page(
    '# Commands',
    GENERATED,
    'An MCP client starts `node dist/server.js`, or `colibri` without arguments, and speaks to it over standard input. These are the commands for people. They read the database, or go through the same stages as every call; nothing writes around them.',
    table(
      ['Command', 'Does'],
      COMMANDS.map(({ name, usage, summary }) => [
        `[\`${`colibri ${name} ${usage}`.trim()}\`](#${name})`,
        summary,
      ]),
    ),
    'Exit codes: 0 fine, 1 found something wrong, 2 used wrongly. In a checkout without an installed package, write `node dist/cli.js` for `colibri`.',
    COMMANDS.flatMap((command) => [`## ${command.name}`, `\`\`\`text\n${commandHelp(command)}\n\`\`\``]),
  );
}
