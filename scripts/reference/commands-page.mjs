import { GENERATED, page, table } from './markdown.mjs';

/** docs/reference/commands.md */
export function commandsPage({ COMMANDS, commandHelp }) {
  return page(
    '# Commands',
    GENERATED,
    'MCP clients start `node dist/server.js`, or `colibri` without arguments, and talk to it over standard input. These are the commands for people. Commands that write go through the same stages as an agent’s call.',
    table(
      ['Command', 'Does'],
      COMMANDS.map(({ name, usage, summary }) => [
        `[\`${`colibri ${name} ${usage}`.trim()}\`](#${name})`,
        summary,
      ]),
    ),
    'Output may quote a database, bundle or folder that someone else made. Characters that would control the terminal, reorder text or hide are escaped, for example `\\u{1b}`; with `--json` they are JSON escapes (`\\u001b`), so that the value stays the same. Joiners and right-to-left letters are shown as they are.',
    'Exit codes: 0 success, 1 problems found, 2 usage error or no usable SQLite, 74 the disk failed or the database was replaced, so that it is not known whether a call was stored. In a checkout, use `node dist/cli.js` instead of `colibri`.',
    COMMANDS.flatMap((command) => [`## ${command.name}`, `\`\`\`text\n${commandHelp(command)}\n\`\`\``]),
  );
}
