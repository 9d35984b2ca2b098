import type { ParseArgsConfig } from 'node:util';
import type { Config } from '../config.ts';
import type { Output } from './output.ts';

/** One option as `parseArgs` takes it, with its help text. */
export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** The placeholder for its value in the help: `FILE`. */
  readonly value?: string;
  readonly help: string;
}

export interface Invocation {
  readonly values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
  readonly positionals: readonly string[];
  readonly out: Output;
  readonly config: () => Config;
}

/** One command. The table of commands also prints the help. */
export interface Command {
  readonly name: string;
  /** After the name in the usage line: `[DB|bundle|proof]`. */
  readonly usage: string;
  readonly summary: string;
  /** Further paragraphs of the help. */
  readonly details?: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** How many positional arguments it takes. */
  readonly positionals: readonly [min: number, max: number];
  /** Answers the exit code: 0 success, 1 problems found, 2 usage error. */
  run(invocation: Invocation): Promise<number>;
}

export const EXIT = { fine: 0, found: 1, usage: 2 } as const;

/** A usage error: one sentence on stderr, exit code 2. */
export class UsageError extends Error {}

export function optionsForParser(options: Command['options']): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short !== undefined && { short }), ...(multiple !== undefined && { multiple }) },
    ]),
  );
}
