import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { hostedColibri } from './hosted-command.ts';
import type { Playground } from './playground.ts';
import { NODE, until } from './server-process.ts';

const CLI_FILE = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Another Node than the usual. */
  readonly node?: string;
  /** Another build than the one in `dist`. */
  readonly cliFile?: string;
  /** Of one that stays: its input stays open until `closeInput`. */
  readonly holdsInput?: boolean;
  /** A program that starts it, with its arguments. */
  readonly wrapper?: readonly string[];
}

/**
 * Runs a command of `colibri` in the playground, with its private folders, as a person without a terminal would: in a process
 * that has loaded the command line already, unless the command or an option asks for one of its own.
 */
export function runColibri(
  colibri: Playground,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const { node, cliFile, wrapper, env } = options;
  const isPlain = [node, cliFile, wrapper, env?.NODE_OPTIONS].every((option) => option === undefined);
  const stays = args[0] === undefined || args[0].startsWith('serve');
  return isPlain && !stays ? hostedColibri(colibri, args, options) : startColibri(colibri, args, options);
}

/** The same in a process of its own, from the built file: where starting, memory, signals or the end are the point. */
export function startColibri(
  colibri: Playground,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const child = spawnColibri(colibri, args, options);
  // One that hangs, or reads what never ends, must not outlive the test that found it.
  colibri.onDispose(() => child.kill('SIGKILL'));
  const chunks = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    chunks.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    chunks.stderr += text;
  });
  child.stdin.end(options.input ?? '');
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...chunks })));
}

/** A command that stays until it is told to go. */
export class StayingCommand {
  stdout = '';
  stderr = '';
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined;
  readonly #child: ChildProcessWithoutNullStreams;

  constructor(colibri: Playground, args: readonly string[], options: CommandOptions = {}) {
    this.#child = spawnColibri(colibri, args, options);
    if (options.holdsInput !== true) this.#child.stdin.end();
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#child.once('exit', (code, signal) => {
      this.exit = { code, signal };
    });
    colibri.onDispose(() => this.#child.kill('SIGKILL'));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get lines(): string[] {
    return this.stdout.split('\n').slice(0, -1);
  }

  /** Resolves when it has printed this. */
  async printed(text: string): Promise<void> {
    await until(
      () => this.stdout.includes(text),
      WAIT_MS_MAX,
      () => `never printed ${text}; stdout: ${this.stdout}; stderr: ${this.stderr}`,
    );
  }

  closeInput(): void {
    this.#child.stdin.end();
  }

  /** The reader of its output goes away. */
  closeOutput(): void {
    this.#child.stdout.destroy();
  }

  async ended(signal?: NodeJS.Signals): Promise<NonNullable<StayingCommand['exit']>> {
    if (signal !== undefined) this.#child.kill(signal);
    await until(
      () => this.exit !== undefined,
      WAIT_MS_MAX,
      () => `did not end; stderr: ${this.stderr}`,
    );
    return this.exit as NonNullable<StayingCommand['exit']>;
  }
}

const WAIT_MS_MAX = 60_000;

function spawnColibri(
  colibri: Playground,
  args: readonly string[],
  options: CommandOptions,
): ChildProcessWithoutNullStreams {
  const command = [...(options.wrapper ?? []), options.node ?? NODE, options.cliFile ?? CLI_FILE, ...args];
  return spawn(command[0] ?? NODE, command.slice(1), {
    cwd: options.cwd ?? colibri.folder,
    env: { ...colibri.environment, ...options.env },
  });
}
