import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { sha256Hex } from '../integrity/digest.ts';

/** How long after its enter row a call of a process we cannot look at counts as dead. No call runs this long. */
const UNSEEN_MS_MAX = 60_000;

/** Names this process: machine, boot, number and start time. A later one with the same number is not taken for it. */
export function processIdentity(pid: number = process.pid): string {
  const { machine, boot } = here();
  return [machine, boot, pid, startOf(pid) ?? 'x'].join('.');
}

/** Whether the process that wrote `identity` can no longer end the call it began `ageMs` ago. */
export function isGone(identity: string, ageMs: number): boolean {
  return isOnThisMachine(identity) ? !isPresent(identity) : ageMs > UNSEEN_MS_MAX;
}

/** Whether a process is still there. One that cannot be seen from here, in a container or on another machine, counts as present. */
export function isPresent(identity: string): boolean {
  if (!isOnThisMachine(identity)) return true;
  const [, theirBoot, pid, start] = identity.split('.');
  if (theirBoot !== here().boot || !isRunning(Number(pid))) return false;
  const current = startOf(Number(pid));
  return current === undefined || current === start;
}

/** Whether the process of this name is, or was, where this one can look: process numbers mean something only within one container of one machine. */
export function isOnThisMachine(identity: string): boolean {
  return identity.startsWith(`${here().machine}.`);
}

let known: { readonly machine: string; readonly boot: string } | undefined;

/** Read once: this process keeps the name it has, also when the machine is renamed. */
function here() {
  const namespace = () => readQuietly(() => readlinkSync('/proc/self/ns/pid'));
  const bootId = () => readQuietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
  known ??= {
    machine: sha256Hex(`${hostname()}\n${namespace()}`).slice(0, 6),
    boot: sha256Hex(bootId()).slice(0, 6),
  };
  return known;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Start time in clock ticks since boot, where the platform tells (Linux). The name before it may hold any character. */
function startOf(pid: number): string | undefined {
  const stat = readQuietly(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // Dead, and only not yet waited for by its parent: it will end nothing any more.
  if (fields[0] === 'Z' || fields[0] === 'X') return 'ended';
  const ticks = fields[19];
  return ticks === undefined ? undefined : Number(ticks).toString(36);
}

function readQuietly(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
