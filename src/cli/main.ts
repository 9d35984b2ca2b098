#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { asError, ColibriError, type ErrorCode } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { type Command, EXIT, optionsForParser, UsageError } from './command.ts';
import { COMMANDS } from './commands.ts';
import { COMMON, commandHelp, generalHelp, helpHang } from './help.ts';
import { createOutput, type Output } from './output.ts';
import { version } from './version.ts';

/** Codes for errors in the command or the settings, not in the data. */
const MISTAKES: readonly ErrorCode[] = [
  'ERR_CONFIG_INVALID',
  'ERR_INVALID_MODE',
  'ERR_TASK_NOT_FOUND',
  'ERR_SESSION_NOT_FOUND',
  'ERR_NOT_FOUND',
];

process.exitCode = await main(process.argv.slice(2));

/** Without arguments the server for a client, or help on a terminal; otherwise the named command. */
async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined) return await withoutArguments();
  if (name === 'help' && rest[0] !== undefined) return await main([rest[0], '--help']);
  if (name === '--help' || name === '-h' || name === 'help') return help(generalHelp(COMMANDS));
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
  const out = openOutput(argv.includes('--json'));
  try {
    const options = optionsForParser({ ...command.options, ...COMMON });
    const { values, positionals } = parse(Object.keys(options), () =>
      parseArgs({ args: [...argv], options, allowPositionals: true }),
    );
    if (values.help === true) return help(commandHelp(command));
    const [min, max] = command.positionals;
    if (positionals.length < min || positionals.length > max)
      throw new UsageError(`usage: colibri ${`${command.name} ${command.usage}`.trim()}  (see --help)`);
    return await command.run({ values, positionals, out, config: () => readConfig() });
  } catch (thrown) {
    const error = asError(thrown);
    out.error(`colibri ${command.name}: ${error.message}`);
    return error instanceof UsageError || (error instanceof ColibriError && MISTAKES.includes(error.code))
      ? EXIT.usage
      : EXIT.found;
  }
}

function openOutput(json: boolean): Output {
  const { stdout, stderr } = process;
  // The reader may close the pipe early (`| head -1`). That is not an error and changes no verdict; the rest is dropped.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const { NO_COLOR, TERM, COLUMNS } = process.env;
  return createOutput({
    json,
    stdout,
    stderr,
    colour: (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb',
    columns: COLUMNS,
  });
}

function parse<T>(options: readonly string[], read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    const [complaint = ''] = asError(thrown).message.split('. ');
    const meant = nearest(/'--([^']+)'/.exec(complaint)?.[1] ?? '', options);
    const hint =
      complaint.startsWith('Unknown option') && meant !== undefined ? ` Did you mean --${meant}?` : '';
    throw new UsageError(`${complaint}.${hint} --help lists what it takes.`);
  }
}

async function withoutArguments(): Promise<number> {
  if (process.stdin.isTTY === true) return help(generalHelp(COMMANDS));
  // A module of its own beside this one: importing it must not start it for the other commands.
  const server = (await import(new URL('server.js', import.meta.url).href)) as { main(): Promise<void> };
  await server.main();
  return EXIT.fine;
}

function help(text: string): number {
  const out = openOutput(false);
  for (const line of text.split('\n')) out.line(line, helpHang(line));
  return EXIT.fine;
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return EXIT.fine;
}

function complain(text: string): number {
  process.stderr.write(`${text}\n`);
  return EXIT.usage;
}
