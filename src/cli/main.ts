#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { asError, ColibriError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { type Command, EXIT, optionsForParser, UsageError } from './command.ts';
import { COMMANDS } from './commands.ts';
import { COMMON, commandHelp, generalHelp } from './help.ts';
import { createOutput } from './output.ts';

process.exitCode = await main(process.argv.slice(2));

/** The server for a client, words for a person, a command for whoever names one. */
async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined) return await withoutArguments();
  if (name === '--help' || name === '-h' || name === 'help') return print(generalHelp(COMMANDS));
  if (name === '--version' || name === '-v') return print(version());
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command !== undefined) return await runCommand(command, rest);
  const meant = nearest(
    name,
    COMMANDS.map((candidate) => candidate.name),
  );
  return complain(
    `colibri has no command "${name}".${meant === undefined ? '' : ` Did you mean ${meant}?`} "colibri --help" lists them.`,
  );
}

async function runCommand(command: Command, argv: readonly string[]): Promise<number> {
  const json = argv.includes('--json');
  const out = createOutput({
    json,
    stdout: process.stdout,
    stderr: process.stderr,
    colour: process.env.NO_COLOR === undefined,
  });
  try {
    const options = optionsForParser({ ...command.options, ...COMMON });
    const { values, positionals } = parse(() =>
      parseArgs({ args: [...argv], options, allowPositionals: true }),
    );
    if (values.help === true) return print(commandHelp(command));
    const [min, max] = command.positionals;
    if (positionals.length < min || positionals.length > max)
      throw new UsageError(`usage: colibri ${command.name} ${command.usage}`.trim());
    return await command.run({ values, positionals, out, config: () => readConfig() });
  } catch (thrown) {
    const error = asError(thrown);
    out.error(`colibri ${command.name}: ${error.message}`);
    return error instanceof UsageError ||
      (error instanceof ColibriError && error.code === 'ERR_CONFIG_INVALID')
      ? EXIT.usage
      : EXIT.found;
  }
}

function parse<T>(read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    throw new UsageError(`${asError(thrown).message.split('. ')[0]}. --help lists what it takes.`);
  }
}

async function withoutArguments(): Promise<number> {
  if (process.stdin.isTTY === true) return print(generalHelp(COMMANDS));
  // A module of its own beside this one: importing it must not start it for the other commands.
  const server = (await import(new URL('server.js', import.meta.url).href)) as { main(): Promise<void> };
  await server.main();
  return EXIT.fine;
}

function version(): string {
  return (
    JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  ).version;
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return EXIT.fine;
}

function complain(text: string): number {
  process.stderr.write(`${text}\n`);
  return EXIT.usage;
}
