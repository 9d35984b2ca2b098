import { execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { basename, delimiter, isAbsolute, join, parse } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnvironment, type Environment, sameEnvironment } from '../config.ts';

// The only place that starts programs. Hostile input enters here: git works in a folder that somebody else may have made,
// and does what the configuration there says unless it is told otherwise.

const OUTPUT_BYTES_MAX = 64 * 1_048_576;
/** Git and openssl answer in milliseconds; a pipe in the place of a file would keep them for ever. */
const RUN_MS_MAX = 10_000;
/** A command of this installation verifies a whole log. */
const OWN_MS_MAX = 120_000;

/** Nothing is fetched, asked, locked without need, or replaced by what the repository says is to be shown instead. */
const UNATTENDED = {
  // In one piece. Without it, an endless file in the place of a list takes all the memory there is.
  GIT_ALLOC_LIMIT: '256m',
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_GRAFT_FILE: '/dev/null/none',
  GIT_NO_LAZY_FETCH: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_TERMINAL_PROMPT: '0',
  // No files are read or written, so it does not matter where they are; a repository could say that they are elsewhere.
  GIT_WORK_TREE: '.',
  // Messages are compared with texts.
  LC_ALL: 'C',
};

/**
 * What a repository may name a program for, each set to nothing. Those under a name of the repository's choice (remotes,
 * filters, diff drivers) need a transport or the files of a commit, and nothing here uses either.
 */
const POWERLESS = [
  ...['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.pager=cat', 'protocol.allow=never'],
  ...['core.editor=false', 'sequence.editor=false', 'core.sshCommand=false', 'core.gitProxy=none'],
  ...['core.askPass=', 'core.alternateRefsCommand=', 'credential.helper=', 'diff.external='],
  ...['gpg.program=false', 'interactive.diffFilter=cat', 'i18n.commitEncoding=UTF-8'],
  // Since 2.54, hooks also come from the configuration. This is the only event of what runs here; 2.54 itself has no such switch.
  'hook.reference-transaction.enabled=false',
].flatMap((setting) => ['-c', setting]);

/** What each program is told first, and what to do without it. */
const PROGRAMS = {
  git: { first: POWERLESS, without: 'Install it, or keep the checkpoint with --file.' },
  openssl: { first: [], without: 'Install it to work with time stamps.' },
};

/** A program said no, or is not there. The message is for the user. */
export class ProgramError extends Error {}
export class MissingProgramError extends ProgramError {}

/** Runs a program that needs no network. That it refuses is an answer; that it cannot be run is an error. */
export function run(program: keyof typeof PROGRAMS, args: readonly string[], input = '') {
  const file = locate(program);
  if (file === undefined)
    throw new MissingProgramError(`${program} was not found. ${PROGRAMS[program].without}`);
  return start(file, [...PROGRAMS[program].first, ...args], UNATTENDED, RUN_MS_MAX, input);
}

/** Runs a program of this installation, which is next to this file. */
export function runOwn(name: string, args: readonly string[], env: Environment, input: string) {
  const file = fileURLToPath(new URL(name, import.meta.url));
  return start(process.execPath, [file, ...args], env, OWN_MS_MAX, input);
}

/**
 * Runs a command of this installation beside this process, where the user is and with all of the user's settings. It ends
 * with `signal`. A code other than 0 is an answer; that it cannot be run, or says nothing, is an error.
 */
export async function runOwnAside(
  name: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const file = fileURLToPath(new URL(name, import.meta.url));
  const options = {
    env: sameEnvironment(),
    maxBuffer: OUTPUT_BYTES_MAX,
    signal,
    killSignal: 'SIGKILL',
  } as const;
  return await new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [file, ...args], options, (error, stdout, stderr) => {
      const isAnswer = error === null || typeof error.code === 'number';
      if (isAnswer && stdout !== '') resolve(stdout);
      else reject(new ProgramError(stderr.trim() || error?.message || 'it printed nothing'));
    });
    try {
      // Whoever waits for an answer goes first.
      if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    } catch {
      // It runs as it is.
    }
  });
}

const OPENERS: Readonly<Record<string, readonly string[]>> = {
  darwin: ['open'],
  win32: ['explorer.exe'],
  linux: ['xdg-open'],
};

/** Asks the desktop to show a file, and does not wait for it. Answers whether there is somebody to ask. */
export function openOnDesktop(file: string): boolean {
  const [program = '', ...args] = OPENERS[process.platform] ?? [];
  const found = program === '' ? undefined : locate(program.replace('.exe', ''));
  if (found === undefined) return false;
  const child = spawn(found, [...args, file], { detached: true, stdio: 'ignore', env: sameEnvironment() });
  child.on('error', () => undefined);
  child.unref();
  return true;
}

/**
 * Starts the program with which a person leafs through long output; undefined where it cannot be found. Its name is the
 * user's own choice. `ended` resolves when the person has left it.
 */
export function startPager(command: string, env: Environment) {
  const [program = '', ...args] = command.split(/\s+/);
  const file = isAbsolute(program) ? program : locate(program);
  if (file === undefined || !existsSync(file)) return undefined;
  // It is the user's own, as its settings are: language, colours, keys.
  const child = spawn(file, args, {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...sameEnvironment(), ...env },
  });
  const ended = new Promise<void>((resolve) => {
    for (const event of ['close', 'error']) child.once(event, () => resolve());
  });
  // A person who leaves early is not an error.
  child.stdin.on('error', () => undefined);
  return { input: child.stdin, ended };
}

function start(file: string, args: readonly string[], env: Environment, timeout: number, input: string) {
  const { status, stdout, stderr, error } = spawnSync(file, args, {
    input,
    timeout,
    killSignal: 'SIGKILL',
    maxBuffer: OUTPUT_BYTES_MAX,
    // Not where the user happens to be: what is in that folder is not ours.
    cwd: parse(file).root,
    env: childEnvironment(env),
  });
  const textOf = (bytes: Buffer) => bytes.toString('utf8').trim();
  if (error === undefined)
    return { status, isRefused: status !== 0, stdout, text: textOf(stdout), stderr: textOf(stderr) };
  const isLate = 'code' in error && error.code === 'ETIMEDOUT';
  const why = isLate ? `did not answer within ${timeout / 1_000} s` : `failed: ${error.message}`;
  throw new ProgramError(`${basename(file)} ${why}.`);
}

/** The program in the folders of PATH that can be meant for it. */
function locate(program: string): string | undefined {
  const name = process.platform === 'win32' ? `${program}.exe` : program;
  const { PATH = '' } = childEnvironment();
  const files = PATH.split(delimiter).map((folder) => join(folder, name));
  return files.find((file) => existsSync(file));
}
