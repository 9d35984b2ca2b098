import type { ParseArgsConfig } from 'node:util';
import type { Config } from '../config.ts';
import type { Output } from './output.ts';

/** One option as `parseArgs` takes it, with the words `--help` prints. */
export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** What stands for the value in the help: `FILE`. */
  readonly value?: string;
  readonly help: string;
}

export interface Invocation {
  readonly values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
  readonly positionals: readonly string[];
  readonly out: Output;
  readonly config: () => Config;
}

/** One word of the command line. The table of these also prints the help. */
export interface Command {
  readonly name: string;
  /** After the name in the usage line: `[DB|bundle|proof]`. */
  readonly usage: string;
  readonly summary: string;
  /** Further paragraphs of the help. */
  readonly details?: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** How many words may follow. */
  readonly positionals: readonly [min: number, max: number];
  /** The exit code: 0 fine, 1 found something wrong, 2 used wrongly. */
  run(invocation: Invocation): Promise<number>;
}

export const EXIT = { fine: 0, found: 1, usage: 2 } as const;

/** A mistake of whoever typed: one sentence on stderr, exit code 2. */
export class UsageError extends Error {}

export function optionsForParser(options: Command['options']): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short !== undefined && { short }), ...(multiple !== undefined && { multiple }) },
    ]),
  );
}
