import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Playground } from '../driver/playground.ts';
import { type Row, tier } from '../driver/tier.ts';

export interface BatteryOptions {
  /** Why the test cannot be run here; undefined where it can. Shown in the name of the skipped test. */
  readonly unless?: string | undefined;
  readonly timeoutMs?: number;
  readonly concurrent?: boolean;
}

/** One test of the battery, in a folder of its own, which is kept when the test fails. */
export function battery(
  rows: Row | readonly Row[],
  sentence: string,
  prove: (colibri: Playground) => Promise<void>,
  { unless, timeoutMs = tier(120_000, 1_200_000), concurrent = false }: BatteryOptions = {},
): void {
  const name = `${[rows].flat().join(', ')}: ${sentence}`;
  if (unless !== undefined) {
    test.skip(`${name} — skipped: ${unless}`);
    return;
  }
  test(name, { timeout: timeoutMs, concurrent }, async () => {
    const colibri = new Playground();
    let complaints: string[] = [];
    try {
      await prove(colibri);
    } catch (error) {
      keepFolder(colibri, name);
      throw error;
    } finally {
      complaints = await colibri.dispose();
    }
    expect(complaints).toEqual([]);
  });
}

function keepFolder(colibri: Playground, name: string): void {
  const kept = join(tmpdir(), `colibri-kept-${process.pid}-${Date.now()}`);
  try {
    cpSync(colibri.folder, kept, { recursive: true });
    console.error(`${name}: failed, its folder is kept at ${kept}`);
  } catch (error) {
    console.error(`${name}: failed, and its folder could not be kept: ${String(error)}`);
  }
}

/** Why a program of the machine cannot be used, or undefined. */
function missing(program: string): string | undefined {
  const found = spawnSync('/bin/sh', ['-c', `command -v ${program}`]).status === 0;
  return found ? undefined : `needs ${program}`;
}

export const noPython = missing('python3');

/** Attaching to a process that is not a child takes more than strace: ptrace_scope 0 or root. */
export const noStrace = missing('strace') ?? missing('python3') ?? cannotAttach();

function cannotAttach(): string | undefined {
  const script = 'sleep 5 & s=$!; strace -o /dev/null -p $s & t=$!; sleep 0.3; kill $t $s; wait';
  const { stderr } = spawnSync('/bin/bash', ['-c', script], { encoding: 'utf8' });
  return /attached/.test(stderr) ? undefined : 'needs leave to attach strace (ptrace_scope 0, or root)';
}

/** A file system of its own takes root. Tried once, in a name space that ends with the try. */
export const noMount = missing('mount') ?? cannotMount();

function cannotMount(): string | undefined {
  try {
    run('unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o size=1m none /mnt');
    return undefined;
  } catch {
    return 'needs leave to mount';
  }
}

/** Runs a program of the machine to its end; throws what it complained of. */
export function run(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

const FAKETIME_LIBRARIES = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib64/faketime/libfaketime.so.1',
];
export const faketimeLibrary = FAKETIME_LIBRARIES.find((path) => existsSync(path));

/** Does something to each item, a few at a time: most of the work is waiting for other processes. */
export async function eachOf<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
  atOnce = 3,
): Promise<void> {
  const left = [...items.entries()];
  const hand = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next[1], next[0]);
  };
  const hands = Array.from({ length: atOnce }, () =>
    hand().catch((error: unknown) => {
      left.length = 0;
      throw error;
    }),
  );
  // All of them end before the first failure is passed on: nothing goes on behind the back of a test.
  const failure = (await Promise.allSettled(hands)).find(({ status }) => status === 'rejected');
  if (failure?.status === 'rejected') throw failure.reason;
}
