import type { Command } from './command.ts';

/** The help of the whole program, from the command table. */
export function generalHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    'colibri: a governed place for AI agents to work. Tasks, a decision trail, and proofs anyone can check.',
    '',
    'An MCP client starts it without arguments and talks to it over standard input. Commands for people:',
    '',
    ...lines,
    '',
    '"colibri COMMAND --help" shows details. --json prints data for programs. Exit codes: 0 success, 1 problems found, 2 usage error.',
  ].join('\n');
}

export function commandHelp({ name, usage, summary, details, options }: Command): string {
  const entries = Object.entries({ ...options, ...COMMON }).map(([option, spec]) => {
    const names = `${spec.short === undefined ? '' : `-${spec.short}, `}--${option}${spec.value === undefined ? '' : ` ${spec.value}`}`;
    return [names, spec.help] as const;
  });
  const width = Math.max(...entries.map(([names]) => names.length));
  return [
    `usage: colibri ${name} ${usage}`.trim(),
    '',
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    ...(details === undefined ? [] : ['', details]),
    '',
    ...entries.map(([names, help]) => `  ${names.padEnd(width)}  ${help}`),
  ].join('\n');
}

/** The widest column of names that still leaves room for the help text. */
const HANG_MAX = 20;

/** How far a wrapped line of help is indented: below its text, beside the name. */
export function helpHang(line: string): number {
  return Math.min(/^ {2}\S.*? {2,}/.exec(line)?.[0].length ?? 0, HANG_MAX);
}

/** Options every command takes. */
export const COMMON: Command['options'] = {
  json: { type: 'boolean', help: 'print data for programs' },
  help: { type: 'boolean', short: 'h', help: 'print this help' },
};
