import { spawnSync } from 'node:child_process';

/** The versions of Node that must give the same answers. */
const MAJORS = [20, 22, 24];

/** Each Node that can be had, this one included; the npm package `node` provides the others. */
export function everyNode(): { readonly nodes: ReadonlyMap<number, string>; readonly missing: string } {
  const nodes = new Map<number, string>();
  const absent: number[] = [];
  for (const major of MAJORS) {
    const path = pathOf(major);
    if (path === undefined) absent.push(major);
    else nodes.set(major, path);
  }
  return { nodes, missing: absent.length === 0 ? '' : ` (without Node ${absent.join(', ')}: not to be had)` };
}

function pathOf(major: number): string | undefined {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const args = ['--yes', '--package', `node@${major}`, 'node', '-p', 'process.execPath'];
  const { status, stdout } = spawnSync('npx', args, { encoding: 'utf8', timeout: 120_000 });
  return status === 0 ? stdout.trim() : undefined;
}
