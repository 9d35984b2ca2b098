import { join } from 'node:path';
import { followLink, isRefusal, look, type Seen } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';
import { type Budget, isIgnored, listFolder, type Scan } from './scan.ts';

/** A folder that holds a SKILL.md. What lies below it belongs to it and is not searched for more. */
export interface SkillFolder {
  readonly path: string;
  readonly names: readonly string[];
  /** `SKILL.md`, or how it was spelt. */
  readonly fileName: string;
}

interface Place {
  readonly path: string;
  readonly seen: Seen;
  readonly depth: number;
}

/**
 * The skill folders below a root, nearest first, then by name. A link that stays inside the roots counts as the folder
 * it leads to, after all the others; `visited` makes each folder count once, however many ways lead to it.
 */
export async function findSkillFolders(
  scan: Scan,
  root: string,
  visited: Set<string>,
  budget: Budget,
): Promise<SkillFolder[]> {
  const found: SkillFolder[] = [];
  const linked: Place[] = [];
  const deep: string[] = [];
  const start = look(root);
  const queue: Place[] =
    start !== undefined && 'stamp' in start ? [{ path: root, seen: start, depth: 0 }] : [];

  for (let searched = 0; ; searched += 1) {
    const place = queue[searched] ?? linked[searched - queue.length];
    if (place === undefined) break;
    await scan.rest();
  }
  return found;
}
