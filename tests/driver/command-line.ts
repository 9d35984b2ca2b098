import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Playground } from './playground.ts';
import { NODE } from './server-process.ts';

const CLI_FILE = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built `colibri` in the playground, with its private folders, as a person without a terminal would. */
export function runColibri(
  colibri: Playground,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly input?: string;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<CommandResult> {
  const child = spawn(NODE, [CLI_FILE, ...args], {
    cwd: options.cwd ?? colibri.folder,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: colibri.path('home'),
      XDG_CONFIG_HOME: colibri.path('config'),
      XDG_DATA_HOME: colibri.path('share'),
      COLIBRI_DB_PATH: colibri.dbPath,
      ...options.env,
    },
  });
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
