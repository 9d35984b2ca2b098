// What a benchmark leaves on the machine while it runs, and nothing of it afterwards, also when it is broken off.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set();
const groups = new Set();

export function makeScratch() {
  const folder = mkdtempSync(join(tmpdir(), 'colibri-bench-'));
  folders.add(folder);
  return folder;
}

/** A server that was killed a moment ago may still be writing. */
export function removeScratch(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  folders.delete(folder);
}

/** Remembers a process that leads a group of its own, until it has ended. */
export function watchGroup(child) {
  if (child.pid === undefined) return;
  groups.add(child.pid);
  child.once('exit', () => groups.delete(child.pid));
}

export function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}

process.on('exit', () => {
  for (const pid of groups) killGroup(pid);
  for (const folder of folders) removeScratch(folder);
});
