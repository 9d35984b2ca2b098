import { parseArgs } from 'node:util';
import { packageVersion, readConfig } from '../config.ts';
import { asError, ColibriError, didYouMean } from '../errors.ts';
import { UnknownToolError } from '../middleware/compose.ts';
import { NoEngineError } from '../storage/engine.ts';
import { startPager } from '../trust/programs.ts';
import { type Command, EXIT, type Invocation, type OptionSpec, UsageError } from './command.ts';
import { COMMANDS, COMMON, commandHelp, generalHelp, helpHang } from './commands.ts';
import { createOutput, type Output } from './output.ts';
import { serveUntilEnd } from './serve-mcp.ts';

/** Without arguments the server for a client, or help on a terminal; otherwise the named command. Answers the exit code. */
export async function main([name, ...rest]: readonly string[]): Promise<number> {
  if (name === undefined && process.stdin.isTTY !== true) return await serveUntilEnd();
  const out = openOutput(rest.includes('--json'));
  if (name === 'help' && rest[0] !== undefined) return await main([rest[0], '--help']);
  if (name === undefined || ['help', '--help', '-h'].includes(name)) return help(generalHelp(), out);
  if (name === '--version' || name === '-v') return help(packageVersion(), out);
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command !== undefined) return await runCommand(command, rest, out);
  const names = COMMANDS.map((candidate) => candidate.name);
  out.error(`colibri has no command "${name}".${didYouMean(name, names)} "colibri --help" lists them.`);
  return EXIT.usage;
}

async function runCommand(command: Command, args: readonly string[], out: Output): Promise<number> {
  try {
    const { values, positionals } = parse(command, args);
    if (values.help === true) return help(commandHelp(command), out);
    const [min, max] = command.positionals ?? [0, 0];
    if (positionals.length < min || positionals.length > max)
      throw new UsageError(`usage: colibri ${`${command.name} ${command.usage}`.trim()}  (see --help)`);
    return await command.run({
      ...{ values, positionals, out },
      get config() {
        return readConfig();
      },
    });
  } catch (thrown) {
    const error = asError(thrown);
    // Only what is nested in a file, which may be anybody's, can be as deep as that.
    const isDeep = error instanceof RangeError && error.message.includes('call stack');
    out.error(
      `colibri ${command.name}: ${isDeep ? 'a file contains JSON that is nested too deeply' : error.message}`,
    );
    // An error in the command or the settings, not in the data. Without SQLite nothing was looked at.
    const isMistake =
      (error instanceof ColibriError && /INVALID|NOT_FOUND$/.test(error.code)) ||
      [UsageError, UnknownToolError, NoEngineError].some((mistake) => error instanceof mistake);
    return isMistake ? EXIT.usage : EXIT.found;
  }
}

function parse(command: Command, args: readonly string[]): Pick<Invocation, 'values' | 'positionals'> {
  const type = ({ value }: OptionSpec) => (value === undefined ? ('boolean' as const) : ('string' as const));
  const declared = Object.entries({ ...command.options, ...COMMON });
  const options = Object.fromEntries(
    declared.map(([name, { short, multiple = false, ...spec }]) => [
      name,
      { ...(short !== undefined && { short }), multiple, type: type(spec) },
    ]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (thrown) {
    const [complaint = ''] = asError(thrown).message.split('. ');
    const unknown = /^Unknown option '--([^']+)'/.exec(complaint)?.[1];
    const hint = unknown === undefined ? '' : didYouMean(unknown, Object.keys(options), '--');
    throw new UsageError(`${complaint}.${hint} See --help.`);
  }
}

function openOutput(json: boolean): Output {
  // The reader may close the pipe early (`| head -1`). That is not an error and changes no verdict; the rest is dropped.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const { stdin, stdout, stderr } = process;
  const { NO_COLOR, TERM, COLUMNS, PAGER = 'less', LESS = 'FRX', LESSCHARSET = 'utf-8' } = process.env;
  const colour = !NO_COLOR && TERM !== 'dumb';
  const pager = () =>
    PAGER === '' || TERM === 'dumb' ? undefined : startPager(PAGER, { LESS, LESSCHARSET });
  return createOutput({ json, stdin, stdout, stderr, colour, columns: COLUMNS, pager });
}

function help(text: string, out: Output): number {
  for (const line of text.split('\n')) out.line(line, helpHang(line));
  return EXIT.fine;
}
