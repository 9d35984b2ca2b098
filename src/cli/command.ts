import type { Config } from '../config.ts';
import { asError } from '../errors.ts';
import type { Output } from './output.ts';

/** One option with its help text. */
export interface OptionSpec {
  readonly short?: string;
  /** The placeholder for its value in the help: `FILE`. An option without one takes no value. */
  readonly value?: string;
  /** It may be given several times; its value is then a list. */
  readonly multiple?: true;
  /** Words that its value can be, for the shell to complete. */
  readonly choices?: readonly string[];
  readonly help: string;
}

export type Options = Readonly<Record<string, OptionSpec>>;

/** The options as they were given; of an option that is not known, either. */
export type Values<O extends Options> = { readonly [name in keyof O]?: ValueOf<O[name]> | undefined };
type ValueOf<S> = S extends { multiple: true }
  ? readonly string[]
  : S extends { value: string }
    ? string
    : OptionSpec extends S
      ? string | boolean | readonly (string | boolean)[]
      : boolean;

export interface Invocation<O extends Options = Options> {
  readonly values: Values<O>;
  readonly positionals: readonly string[];
  readonly out: Output;
  /** Read when it is asked for: some commands work without valid settings. */
  readonly config: Config;
}

/** One command. The table of commands also prints the help. */
export interface Command<O extends Options = Options> {
  readonly name: string;
  /** After the name in the usage line: `[DB|bundle|proof]`. */
  readonly usage: string;
  readonly summary: string;
  /** Further paragraphs of the help. */
  readonly details?: string;
  readonly options?: O;
  /** How many positional arguments it takes; none by default. */
  readonly positionals?: readonly [min: number, max: number];
  /** Words that a positional argument can be, for the shell to complete. */
  readonly words?: readonly string[];
  /** Answers the exit code: 0 success, 1 problems found, 2 usage error, 74 as for a server. */
  run(invocation: Invocation<O>): Promise<number>;
}

/** Declares a command: `run` sees exactly the options that it declares. */
export function command<const O extends Options>(declaration: Command<O>): Command {
  return declaration;
}

export const EXIT = { fine: 0, found: 1, usage: 2, uncertain: 74 } as const;

/** A usage error: one sentence on stderr, exit code 2. */
export class UsageError extends Error {}

/** What `read` gives. Where it throws, the user gave something that cannot be read. */
export function orUsage<T>(complaint: string, read: () => T, hint = ''): T {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`${complaint} (${asError(error).message}). ${hint}`.trimEnd());
  }
}
