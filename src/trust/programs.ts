import { spawnSync } from 'node:child_process';
import { childEnvironment } from '../config.ts';

const OUTPUT_BYTES_MAX = 64 * 1_048_576;
const RUN_MS_MAX = 60_000;

/** Git neither asks anybody nor waits for a lock that it can do without. */
const UNATTENDED = { GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0' };

/** What to do without a program. */
const WITHOUT = {
  git: 'Install it, or keep the checkpoint with --file.',
  openssl: 'Install it to work with time stamps.',
};

/** A program said no, or is not there. The message is for the user. */
export class ProgramError extends Error {}

/** Runs a program that needs no network. That it refuses is an answer; that it cannot be run is an error. */
export function run(program: keyof typeof WITHOUT, args: readonly string[], input = '') {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    input,
    maxBuffer: OUTPUT_BYTES_MAX,
    timeout: RUN_MS_MAX,
    env: childEnvironment(UNATTENDED),
  });
  const textOf = (bytes: Buffer) => bytes.toString('utf8').trim();
  if (error === undefined)
    return { isRefused: status !== 0, stdout, text: textOf(stdout), stderr: textOf(stderr) };
  const isMissing = 'code' in error && error.code === 'ENOENT';
  throw new ProgramError(
    isMissing ? `${program} was not found. ${WITHOUT[program]}` : `${program} failed: ${error.message}`,
  );
}
