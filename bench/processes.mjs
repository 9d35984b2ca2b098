import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Whether this system says how much memory another process uses. */
export const canReadMemory = existsSync('/proc/self/status');

/** Resident memory in MB (10^6 bytes) of a process and everything it started; undefined where nobody can tell. */
export function residentMb(pid) {
  if (!canReadMemory) return undefined;
  return [pid, ...descendants(pid)].reduce((sum, one) => sum + statusKb(one, 'VmRSS'), 0) / 976.5625;
}

/** The most it ever had, of the process alone. */
export function peakMb(pid) {
  return canReadMemory ? statusKb(pid, 'VmHWM') / 976.5625 : undefined;
}

function statusKb(pid, field) {
  try {
    const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(
      readFileSync(`/proc/${pid}/status`, 'utf8'),
    );
    return Number(found?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function descendants(pid) {
  const children = new Map();
  for (const name of readdirSync('/proc')) {
    const parent = /^\d+$/.test(name) ? parentOf(name) : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = [];
  for (let next = [pid]; next.length > 0; ) {
    next = next.flatMap((one) => children.get(one) ?? []);
    found.push(...next);
  }
  return found;
}

function parentOf(pid) {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}
