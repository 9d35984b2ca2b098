import { join } from 'node:path';
import { followLink, isRefusal, look, lookFor, type Refusal, type Seen } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';
import { type Budget, isIgnored, listFolder, type Scan } from './scan.ts';

/** A folder that holds a SKILL.md. What lies below it belongs to it and is not searched for more. */
export interface SkillFolder {
  readonly path: string;
  readonly names: readonly string[];
  /** `SKILL.md`, or however it was spelt. */
  readonly fileName: string;
}

interface Place {
  readonly path: string;
  readonly seen: Seen;
  readonly depth: number;
}

interface Search {
  readonly scan: Scan;
  readonly budget: Budget;
  readonly found: SkillFolder[];
  readonly linked: Place[];
  readonly tooDeep: string[];
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
): Promise<readonly SkillFolder[]> {
  const search: Search = { scan, budget, found: [], linked: [], tooDeep: [] };
  const end = await searchAll(search, root, visited);
  if (end !== undefined) scan.skip(root, end.reason);
  const [deep] = search.tooDeep;
  if (deep !== undefined) {
    const others = search.tooDeep.length - 1;
    const more = others === 0 ? '' : `, like ${others} more`;
    scan.skip(deep, `deeper than ${SKILL_LIMITS.depthMax} folders and not searched${more}`);
  }
  return search.found;
}

async function searchAll(search: Search, root: string, visited: Set<string>): Promise<Refusal | undefined> {
  const start = lookFor('folder', root);
  if (start === undefined) return undefined;
  let searched = 0;
  // Both lists grow while they are walked: that makes it breadth first.
  for (const places of [[{ path: root, seen: start, depth: 0 }], search.linked]) {
    for (const place of places) {
      if (visited.has(place.path)) continue;
      visited.add(place.path);
      searched += 1;
      if (searched > SKILL_LIMITS.foldersMax) {
        return { reason: `more than ${SKILL_LIMITS.foldersMax} folders; the rest is not searched` };
      }
      const end = searchFolder(search, place, places);
      if (end !== undefined) return end;
      await search.scan.rest();
    }
  }
  return undefined;
}

function searchFolder(search: Search, place: Place, places: Place[]): Refusal | undefined {
  const names = listFolder(search.scan, place.path, place.seen);
  if (isRefusal(names)) {
    search.scan.skip(place.path, names.reason);
    return undefined;
  }
  const fileName = skillFileName(names);
  if (fileName !== undefined && place.depth > 0) {
    search.found.push({ path: place.path, names, fileName });
    return undefined;
  }
  if (fileName !== undefined) {
    search.scan.skip(join(place.path, fileName), 'not in a folder of its own below the skills folder');
  }
  for (const name of names) {
    if (isIgnored(name) || name === fileName) continue;
    const end = search.budget.spend('entries', 1);
    if (end !== undefined) return end;
    searchEntry(search, join(place.path, name), place.depth + 1, places);
  }
  return undefined;
}

function searchEntry(search: Search, path: string, depth: number, places: Place[]): void {
  const seen = look(path);
  if (seen === undefined) return;
  if (isRefusal(seen)) search.scan.skip(path, seen.reason);
  else if (seen.kind === 'link') searchLink(search, path, depth);
  else if (seen.kind === 'folder') {
    if (depth > SKILL_LIMITS.depthMax) search.tooDeep.push(path);
    else places.push({ path, seen, depth });
  }
}

function searchLink(search: Search, path: string, depth: number): void {
  const real = followLink(path, search.scan.fences);
  if (typeof real !== 'string') {
    search.scan.skip(path, real.reason);
    return;
  }
  const seen = lookFor('folder', real);
  if (seen !== undefined) search.linked.push({ path: real, seen, depth });
}

/** Some write `skill.md`; a folder with both spellings means the exact one. */
function skillFileName(names: readonly string[]): string | undefined {
  return names.includes('SKILL.md') ? 'SKILL.md' : names.find((name) => name.toLowerCase() === 'skill.md');
}
