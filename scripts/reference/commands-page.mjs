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
    'Whatever a command prints may quote a database, bundle or folder that somebody else made. Characters that would act on the terminal, reorder the text around them or hide are spelled out, for example `\\u{1b}`; with `--json` they are JSON escapes (`\\u001b`), so that the value stays the same. Joiners and right-to-left letters are shown as they are.',
    'Exit codes: 0 fine, 1 found something wrong, 2 used wrongly, or there is no usable SQLite, 74 the disk failed or the file was taken away, so that nobody knows whether a call was stored. In a checkout without an installed package, write `node dist/cli.js` for `colibri`.',
    COMMANDS.flatMap((command) => [`## ${command.name}`, `\`\`\`text\n${commandHelp(command)}\n\`\`\``]),
  );
}
