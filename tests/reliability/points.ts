import { startColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import type { Random } from '../driver/random.ts';
import { FULL } from '../driver/tier.ts';
import { Recorder } from './recorder.ts';
import { countSyscalls, Tracer } from './strace.ts';
import { TARGETS, type Target } from './targets.ts';

/** A place in a call: the k-th of one system call since the call began. */
export interface Point {
  readonly target: Target;
  readonly syscall: string;
  readonly when: number;
}

const CALL_SYSCALLS = ['pwrite64', 'fdatasync', 'write'] as const;

/** One traced run of each tool tells how many there are. */
export async function pointsOf(targets: readonly Target[]): Promise<Point[]> {
  const points: Point[] = [];
  for (const target of targets) {
    const counts = await inPlayground(async (colibri) => {
      const { recorder, server, args } = await prepared(colibri, target);
      const tracer = await Tracer.attach(colibri, server, ['-e', `trace=${CALL_SYSCALLS.join()}`]);
      await recorder.data(target.tool, args);
      await tracer.detach();
      return countSyscalls(tracer.log);
    });
    for (const syscall of CALL_SYSCALLS) {
      // Of `write` the first is enough: the answer on its way out. The others wake the event loop.
      const count = syscall === 'write' ? 1 : (counts.get(syscall) ?? 0);
      for (let when = 1; when <= count; when += 1) points.push({ target, syscall, when });
    }
  }
  return points;
}

export async function inPlayground<T>(play: (colibri: Playground) => Promise<T>): Promise<T> {
  const colibri = new Playground();
  try {
    return await play(colibri);
  } finally {
    await colibri.dispose();
  }
}

export async function prepared(colibri: Playground, target: Target, env: Record<string, string> = {}) {
  const server = await colibri.start({ env });
  const recorder = new Recorder(server);
  const args = await target.prepare(recorder);
  return { server, recorder, args };
}

/** Some of each tool, at least the first and the last of each system call, or all. */
export function sample(points: readonly Point[], count: number, random: Random): Point[] {
  if (FULL) return [...points];
  const chosen = new Set<Point>();
  for (const target of TARGETS) {
    const own = points.filter((point) => point.target === target);
    for (const point of own.filter(({ syscall }) => syscall !== 'pwrite64').slice(0, 2)) chosen.add(point);
  }
  while (chosen.size < Math.min(count, points.length)) chosen.add(random.pick(points));
  return [...chosen];
}

/** What `colibri verify` says, as data. */
export async function verify(colibri: Playground): Promise<unknown> {
  const { stdout, stderr } = await startColibri(colibri, ['verify', '--json']);
  try {
    return JSON.parse(stdout);
  } catch {
    return stderr;
  }
}
