import { anchor } from './anchor.ts';
import { backup } from './backup.ts';
import { board } from './board.ts';
import { call } from './call.ts';
import { checkpoint } from './checkpoint.ts';
import type { Command, Options } from './command.ts';
import { completionFor } from './completion.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { erase } from './erase.ts';
import { exportBundle } from './export.ts';
import { init } from './init.ts';
import { list, search } from './list.ts';
import { log } from './log.ts';
import { obsidian } from './obsidian.ts';
import { prove } from './prove.ts';
import { remind } from './remind.ts';
import { report } from './report.ts';
import { serve } from './serve.ts';
import { serveMcp } from './serve-mcp.ts';
import { sessions } from './sessions.ts';
import { show } from './show.ts';
import { stats } from './stats.ts';
import { transfer } from './transfer.ts';
import { trust } from './trust.ts';
import { verify } from './verify.ts';
import { add, assign, done, move, think } from './work.ts';

/** Options every command takes. */
export const COMMON: Options = {
  json: { help: 'print data for programs' },
  help: { short: 'h', help: 'print this help' },
};

/** Every command, in the order the help lists them. */
export const COMMANDS: readonly Command[] = [
  init,
  serveMcp,
  demo,
  add,
  list,
  search,
  move,
  assign,
  think,
  done,
  board,
  log,
  show,
  sessions,
  stats,
  verify,
  checkpoint,
  trust,
  transfer,
  anchor,
  backup,
  exportBundle,
  prove,
  report,
  serve,
  obsidian,
  erase,
  doctor,
  call,
  completionFor(() => COMMANDS, COMMON),
  remind,
];

/** The help of the whole program, from the command table. */
export function generalHelp(): string {
  return [
    'colibri: a task board for AI agents that records every call and the reasons behind it, so that anyone can check the record.',
    '',
    'MCP clients start it without arguments and talk to it over standard input. Commands for people:',
    '',
    ...inColumns(COMMANDS.map(({ name, summary }) => [name, summary])),
    '',
    '"colibri COMMAND --help" shows details. --json prints data for programs. Exit codes: 0 success, 1 problems found, 2 usage error.',
  ].join('\n');
}

export function commandHelp({ name, usage, summary, details, options }: Command): string {
  const entries = Object.entries({ ...options, ...COMMON }).map(([option, { short, value, help }]) => {
    const names = `${short === undefined ? '' : `-${short}, `}--${option}${value === undefined ? '' : ` ${value}`}`;
    return [names, help] as const;
  });
  return [
    `usage: colibri ${name} ${usage}`.trim(),
    '',
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    ...(details === undefined ? [] : ['', details]),
    '',
    ...inColumns(entries),
  ].join('\n');
}

function inColumns(entries: readonly (readonly [name: string, text: string])[]): string[] {
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}

/** The widest column of names that still leaves room for the help text. */
const HANG_MAX = 20;

/** How far a wrapped line of help is indented: below its text, to the right of the name. */
export function helpHang(line: string): number {
  return Math.min(/^ {2}\S.*? {2,}/.exec(line)?.[0].length ?? 0, HANG_MAX);
}
