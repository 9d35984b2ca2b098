import { existsSync, lstatSync, statSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { type Clock, pauseEvery, systemClock } from '../../clock.ts';
import { pick } from '../records.ts';
import type { Declaration } from './front-matter.ts';
import * as disk from './skill-folder.ts';

/** A skill in force. Its path is relative to the workspace if it is in there; for its digest see `skillDigest`. */
type Skill = Declaration & { readonly path: string; readonly digest: string };

type Skipped = { readonly [K in 'path' | 'reason']: string };

/** Skills sorted by name; what is not in force, or not read, and why. */
export type SkillListing = Awaited<ReturnType<typeof scanRoots>>;

export interface SkillRegistryOptions {
  /** Folders with skills. If two skills have the same name, the one in the earlier folder is in force. */
  readonly roots: readonly string[];
  readonly workspace: string;
  readonly clock?: Pick<Clock, 'monotonic'>;
}

export type SkillRegistry = ReturnType<typeof createSkillRegistry>;

/** The skills on disk; an answer is never an error. Nothing is cached: 200 skills with 1,000 files take 0.2 s of CPU time. */
export function createSkillRegistry(options: SkillRegistryOptions) {
  const { clock = systemClock } = options;
  const list = (pause?: () => Promise<void>) => scanRoots(options, pauseEvery(clock, pause));
  /** What a session records: which skills were in force, and their exact content. */
  const inForce = async () => (await list()).skills.map((skill) => pick(skill, 'name', 'digest'));
  return { list, inForce };
}

async function scanRoots(options: SkillRegistryOptions, rest: disk.Scan['rest']) {
  const workspace = resolve(options.workspace);
  const skipped: Skipped[] = [];
  const roots = resolveRoots(options.roots, workspace, skipped);
  const show = (path: string): string => shownPath(path, roots, workspace);
  const skip = (path: string, reason: string): void => void skipped.push({ path: show(path), reason });

  const skills = new Map<string, Skill>();
  const visited = new Set<string>();
  for (const root of roots.keys()) {
    const scan = { roots: [...roots.keys()], skip, rest, budget: { entries: 0, bytes: 0, yamlBytes: 0 } };
    await searchRoot(scan, root, visited, async (folder) => {
      const place = join(folder.path, folder.fileName);
      try {
        const { declared, leftOut, file } = await disk.readSkillFile(scan, folder);
        const found = await disk.walkSkill(scan, folder);
        const taken = skills.get(declared.name)?.path;
        if (taken === undefined) {
          const digest = await disk.sealSkill(scan, folder, file, found);
          skills.set(declared.name, { ...declared, path: show(place), digest });
          if (leftOut !== undefined) skip(place, leftOut);
          for (const [path, reason] of found.unread) skip(join(folder.path, path), reason);
        } else skip(place, `shadowed: ${taken} has the same name, ${declared.name}`);
        const reason = `part of the skill in ${show(folder.path)}; move it out to make it a separate skill`;
        for (const path of found.hidden) skip(join(folder.path, path), reason);
        return true;
      } catch (error) {
        skip(place, disk.reasonOf(error));
        return false;
      }
    });
  }
  return { skills: [...skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), skipped };
}

/**
 * Looks for skills below a root, nearest first, then by name. What is below a skill is part of it; what is below a file
 * that was refused is searched. `visited`: a folder counts once, even if one root is inside another.
 */
async function searchRoot(
  scan: disk.Scan,
  root: string,
  visited: Set<string>,
  load: (folder: disk.SkillFolder) => Promise<boolean>,
) {
  const { foldersMax, depthMax } = disk.SKILL_LIMITS;
  const orSkip = <T>(place: string, act: () => T) => disk.attempt(act, (reason) => scan.skip(place, reason));
  const places = [{ path: root, depth: 0 }];
  try {
    // The list grows while it is walked, so the search is breadth first.
    for (const [searched, { path, depth }] of places.entries()) {
      if (searched === foldersMax)
        throw new disk.Refusal(`more than ${foldersMax} folders; the rest is not searched`);
      if (visited.has(path)) continue;
      visited.add(path);
      await scan.rest();
      const names = orSkip(path, () => disk.namesIn(path)) ?? [];
      // In a folder with several spellings, the exact one counts.
      const spelled = names.filter(disk.isSkillFile);
      const fileName = spelled.includes('SKILL.md') ? 'SKILL.md' : spelled[0];
      if (fileName !== undefined && depth > 0 && (await load({ path, fileName }))) continue;
      if (fileName !== undefined && depth === 0)
        scan.skip(join(path, fileName), 'not in its own folder below the skills folder');
      for (const name of names.filter((other) => !spelled.includes(other))) {
        disk.spend(scan.budget, 'entries', 1);
        const place = join(path, name);
        if (!orSkip(place, () => disk.look(place))?.isDirectory()) continue;
        if (depth === depthMax) scan.skip(place, `deeper than ${depthMax} folders and not searched`);
        else places.push({ path: place, depth: depth + 1 });
      }
    }
  } catch (error) {
    scan.skip(root, disk.reasonOf(error));
  }
}

/** The folders that are searched for skills: for each real path, the path as configured. */
type Roots = ReadonlyMap<string, string>;

/** The roots that exist, each real folder once. A root that does not exist is not worth a message. */
function resolveRoots(paths: readonly string[], workspace: string, skipped: Skipped[]): Roots {
  const roots = new Map<string, string>();
  for (const path of paths.map((configured) => resolve(workspace, configured))) {
    const real = disk.attempt(
      () => resolveRoot(path, workspace),
      (reason) => skipped.push({ path: shownPath(path, new Map(), workspace), reason }),
    );
    if (real !== undefined && !roots.has(real)) roots.set(real, path);
  }
  return roots;
}

/** A repository is hostile input too: a link in it must not open some other folder of the person who cloned it. */
function resolveRoot(path: string, workspace: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  if (!existsSync(path)) throw new disk.Refusal('a symbolic link that leads nowhere');
  const real = disk.realPath(path);
  if (disk.isInside(path, workspace) && !disk.isInside(real, disk.realPath(workspace))) {
    throw new disk.Refusal(
      'a symbolic link out of the workspace; name its target in COLIBRI_SKILLS_DIR to use it',
    );
  }
  if (!statSync(real).isDirectory()) throw new disk.Refusal('not a folder');
  return real;
}

/** A real path below a root as people know it: relative to the workspace if it is in there, absolute otherwise. */
function shownPath(path: string, roots: Roots, workspace: string): string {
  const root = [...roots].find(([real]) => disk.isInside(path, real));
  const configured = root === undefined ? path : join(root[1], relative(root[0], path));
  const inside = disk.isInside(configured, workspace) ? relative(workspace, configured) : '';
  const shown = inside === '' ? configured : inside;
  return (sep === '/' ? shown : shown.replaceAll(sep, '/')).toWellFormed();
}
