import type { Command } from './command.ts';

/** The help of the whole program, from the command table. */
export function generalHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    'colibri: a governed place for AI agents to work. Tasks, a decision trail, and proofs anyone can check.',
    '',
    'An MCP client starts it without arguments and speaks to it over standard input. People use:',
    '',
    ...lines,
    '',
    '"colibri COMMAND --help" tells more. --json prints data for programs. Exit: 0 fine, 1 found something wrong, 2 used wrongly.',
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

/** Narrower than this, a column of names leaves no room for words beside it. */
const HANG_MAX = 20;

/** Where a line of help goes on when the terminal is narrow: below the words, beside the name. */
export function helpHang(line: string): number {
  return Math.min(/^ {2}\S.*? {2,}/.exec(line)?.[0].length ?? 0, HANG_MAX);
}

/** Options every command takes. */
export const COMMON: Command['options'] = {
  json: { type: 'boolean', help: 'print data for programs' },
  help: { type: 'boolean', short: 'h', help: 'print this' },
};
