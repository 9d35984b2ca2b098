import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Playground } from '../driver/playground.ts';
import { sleepMs, until } from '../driver/server-process.ts';

/** What strace is told to do to the n-th of a system call: counted from the moment it is attached, in each thread. */
export type Fault =
  | { readonly syscall: string; readonly when: string; readonly signal: 'KILL' | 'STOP' }
  | { readonly syscall: string; readonly when: string; readonly error: 'EIO' | 'ENOSPC' };

/** Everything that changes a file or makes a change last. */
export const STORAGE_SYSCALLS = [
  'pwrite64',
  'pwritev',
  'pwritev2',
  'write',
  'writev',
  'fsync',
  'fdatasync',
  'ftruncate',
  'unlink',
  'unlinkat',
  'rename',
  'renameat',
  'renameat2',
  'openat',
] as const;

export function injection(fault: Fault): string[] {
  const effect = 'signal' in fault ? `signal=${fault.signal}` : `error=${fault.error}`;
  return ['-e', `trace=${fault.syscall}`, '-e', `inject=${fault.syscall}:${effect}:when=${fault.when}`];
}

const STRACE = 'strace';

/** strace on a server that runs already, so that its start costs nothing and counting begins at the next call. */
export class Tracer {
  readonly logPath: string;
  readonly #pid: number;
  readonly #ended: Promise<void>;
  #over = false;

  constructor(pid: number, ended: Promise<void>, logPath: string) {
    this.#pid = pid;
    this.logPath = logPath;
    this.#ended = ended.then(() => {
      this.#over = true;
    });
  }

  static async attach(
    colibri: Playground,
    server: { readonly pid: number },
    args: readonly string[],
    others: readonly { readonly pid: number }[] = [],
  ): Promise<Tracer> {
    const pids = [server, ...others].flatMap(({ pid }) => ['-p', String(pid)]);
    const logPath = colibri.path(`strace-${server.pid}.log`);
    const child = spawn(STRACE, ['-f', '-o', logPath, ...pids, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const tracer = new Tracer(child.pid as number, ended, logPath);
    colibri.onDispose(() => tracer.detach());
    await until(
      () => [...said.matchAll(/attached/g)].length > others.length,
      10_000,
      () => `strace did not attach: ${said}`,
    );
    return tracer;
  }

  /** Lets the server go on unobserved. */
  async detach(): Promise<void> {
    try {
      if (!this.#over) process.kill(this.#pid, 'SIGTERM');
    } catch {
      // It ended with the server, a moment ago.
    }
    await Promise.race([this.#ended, sleepMs(5_000)]);
  }

  get log(): string {
    return readFileSync(this.logPath, 'utf8');
  }
}

/** How often each system call was made, by any thread. */
export function countSyscalls(log: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, name = ''] of log.matchAll(/^\d+ +([a-z_0-9]+)\(/gm))
    counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
