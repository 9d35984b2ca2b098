import { join } from 'node:path';
import { attempt, look, namesIn, Refusal, reasonOf } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';

/** What the scan of one root works with. */
export interface Scan {
  /** The real paths of all roots: nothing outside them is opened. */
  readonly roots: readonly string[];
  readonly budget: Budget;
  /** Records that something was not used. `path` is the real one. */
  skip(path: string, reason: string): void;
  /** Lets others run if this scan has run for a whole slice. */
  rest(): Promise<void>;
}

const BUDGETS = {
  entries: [SKILL_LIMITS.rootEntriesMax, 'entries'],
  bytes: [SKILL_LIMITS.rootBytesMax, 'bytes'],
  yamlBytes: [SKILL_LIMITS.rootYamlBytesMax, 'bytes of front matter'],
} as const;

/** What one root has cost so far. The same folders always run out at the same place. */
export type Budget = Record<keyof typeof BUDGETS, number>;

export function createBudget(): Budget {
  return { entries: 0, bytes: 0, yamlBytes: 0 };
}

/** Refuses to go on once a root costs more than it may. */
export function spend(budget: Budget, what: keyof Budget, amount: number): void {
  const [max, unit] = BUDGETS[what];
  budget[what] += amount;
  if (budget[what] <= max) return;
  throw new Refusal(`its skills folder holds more than ${max} ${unit}; the rest is not read`);
}

/** A folder that holds a SKILL.md. Everything below belongs to it and is not searched for more skills. */
export interface SkillFolder {
  readonly path: string;
  /** `SKILL.md`, in whatever case it is written. */
  readonly fileName: string;
}

interface Place {
  readonly path: string;
  readonly depth: number;
}

interface Search {
  readonly scan: Scan;
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
): Promise<SkillFolder[]> {
  const search: Search = { scan, found: [], linked: [], tooDeep: [] };
  try {
    await searchAll(search, root, visited);
  } catch (error) {
    scan.skip(root, reasonOf(error));
  }
  const [deep, ...others] = search.tooDeep;
  if (deep !== undefined) {
    const more = others.length === 0 ? '' : `, like ${others.length} more`;
    scan.skip(deep, `deeper than ${SKILL_LIMITS.depthMax} folders and not searched${more}`);
  }
  return search.found;
}

async function searchAll(search: Search, root: string, visited: Set<string>): Promise<void> {
  const max = SKILL_LIMITS.foldersMax;
  let searched = 0;
  // Both lists grow while they are walked, so the search is breadth first.
  for (const places of [[{ path: root, depth: 0 }], search.linked]) {
    for (const place of places) {
      if (visited.has(place.path)) continue;
      visited.add(place.path);
      searched += 1;
      if (searched > max) throw new Refusal(`more than ${max} folders; the rest is not searched`);
      searchFolder(search, place, places);
      await search.scan.rest();
    }
  }
}

function searchFolder(search: Search, { path, depth }: Place, places: Place[]): void {
  const { scan, found } = search;
  const names = attempt(
    () => namesIn(path),
    (reason) => void scan.skip(path, reason),
  );
  if (names === undefined) return;
  const fileName = skillFileName(names);
  if (fileName !== undefined) {
    if (depth > 0) return void found.push({ path, fileName });
    scan.skip(join(path, fileName), 'not in a folder of its own below the skills folder');
  }
  for (const name of names) {
    if (isIgnored(name) || name === fileName) continue;
    spend(scan.budget, 'entries', 1);
    searchEntry(search, join(path, name), depth + 1, places);
  }
}

function searchEntry({ scan, linked, tooDeep }: Search, path: string, depth: number, places: Place[]): void {
  const entry = attempt(
    () => look(path, scan.roots),
    (reason) => void scan.skip(path, reason),
  );
  if (entry?.kind !== 'folder') return;
  if (entry.isLink) linked.push({ path: entry.path, depth });
  else if (depth > SKILL_LIMITS.depthMax) tooDeep.push(path);
  else places.push({ path, depth });
}

/** Some people write `skill.md`; in a folder with both spellings, the exact one counts. */
function skillFileName(names: readonly string[]): string | undefined {
  return names.includes('SKILL.md') ? 'SKILL.md' : names.find((name) => name.toLowerCase() === 'skill.md');
}

/** Never part of a skill, and never searched for one. */
export function isIgnored(name: string): boolean {
  return name === '.git' || name === 'node_modules';
}
