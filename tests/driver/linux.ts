import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Playground } from './playground.ts';

/** Why a proof that watches or disturbs system calls cannot be given on this machine, or undefined. */
export function straceMissing(): string | undefined {
  return works('strace', ['-f', '-o', '/dev/null', 'true']) ? undefined : 'needs strace';
}

/** Why a proof that needs a small disk of its own cannot be given, or undefined. */
export function mountMissing(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'colibri-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'ignore' });
    execFileSync('umount', [folder], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'needs the right to mount a tmpfs';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface SmallDisk {
  growTo(kilobytes: number): void;
  writeProtect(): void;
}

/** A disk of so many kilobytes. */
export function mountSmallDisk(colibri: Playground, folder: string, kilobytes: number): SmallDisk {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', folder]);
  colibri.onDispose(() => execFileSync('umount', [folder]));
  return {
    growTo: (more) => {
      execFileSync('mount', ['-o', `remount,size=${more}k`, folder]);
    },
    writeProtect: () => {
      execFileSync('mount', ['-o', 'remount,ro', folder]);
    },
  };
}

/** What starts a server whose system calls are written down, each with the path of its file. */
export function tracing(file: string): readonly string[] {
  return [
    'strace',
    '-f',
    '-y',
    '-s',
    '1000',
    '-o',
    file,
    '-e',
    'trace=pwrite64,fdatasync,fsync,write,writev,sendto,sendmsg',
  ];
}

/** What starts a server whose nth such system call fails, counted in each thread or only in the one that serves calls. */
export function failing(
  syscall: string,
  error: string,
  nth: number,
  { inAllThreads = true }: { readonly inAllThreads?: boolean } = {},
): readonly string[] {
  return [
    'strace',
    ...(inAllThreads ? ['-f'] : []),
    '-o',
    '/dev/null',
    '-e',
    `trace=${syscall}`,
    '-e',
    `inject=${syscall}:error=${error}:when=${nth}`,
  ];
}

/** What starts a server on a disk that takes so long to sync the log. */
export function slowDisk(ms: number): readonly string[] {
  const inject = `inject=fdatasync:delay_exit=${1000 * ms}`;
  return ['strace', '-f', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e', inject];
}

/** One event of the trace, at the moment it ended. */
export interface TracedCall {
  readonly name: string;
  readonly text: string;
}

/** The finished calls in the order they ended; a call of a thread that was interrupted in the log is put together again. */
export function readTrace(file: string): TracedCall[] {
  const unfinished = new Map<string, string>();
  const calls: TracedCall[] = [];
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [, thread = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const text = rest.replace(/^<\.\.\. \w+ resumed>/, () => unfinished.get(thread) ?? '');
    if (text.endsWith('<unfinished ...>')) unfinished.set(thread, text.slice(0, -'<unfinished ...>'.length));
    else if (/^\w+\(/.test(text)) calls.push({ name: text.slice(0, text.indexOf('(')), text });
  }
  return calls;
}

function works(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
