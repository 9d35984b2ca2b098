import { spawnSync } from 'node:child_process';

/** The versions of Node that must give the same answers. */
export const MAJORS = [20, 22, 24];

/** Where a Node of this version is: this one, or what the npm package `node` provides. Undefined where it cannot be had. */
export function nodeOf(major) {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const args = ['--yes', '--package', `node@${major}`, 'node', '-p', 'process.execPath'];
  const { status, stdout } = spawnSync('npx', args, { encoding: 'utf8', timeout: 120_000 });
  return status === 0 ? stdout.trim() : undefined;
}
