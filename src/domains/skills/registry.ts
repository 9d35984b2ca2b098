import { join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, systemClock } from '../../clock.ts';
import { LIMITS } from '../../limits.ts';
import type { Declaration } from './declaration.ts';
import { isRefusal } from './disk.ts';
import { type Root, resolveRoots, shownPath } from './roots.ts';
import { createBudget, type Memory, memoryOf, NO_MEMORY, recallFrom, type Scan } from './scan.ts';
import { findSkillFolders } from './search.ts';
import { declareSkill } from './skill-file.ts';
import { sealSkill } from './skill-folder.ts';

/** A skill in force. */
export interface Skill extends Declaration {
  /** Of its SKILL.md, from the workspace where it lies in there. */
  readonly path: string;
  /** Over its SKILL.md and everything beside it; `skillDigest` says exactly what. */
  readonly digest: string;
}

/** Something in a skills folder that is not in force, or not read, and why. */
export interface Skipped {
  readonly path: string;
  readonly reason: string;
}

export interface SkillListing {
  /** By name. */
  readonly skills: readonly Skill[];
  readonly skipped: readonly Skipped[];
}

/** The skills on disk. Every answer is true of the moment it was asked for, and never an error. */
export interface SkillRegistry {
  /** `pause` is awaited between slices of a long scan, for whoever waits. */
  list(pause?: () => Promise<void>): Promise<SkillListing>;
  counts(): Promise<{ readonly loaded: number; readonly skipped: number }>;
  /** What a session records: which instructions were in force, and exactly which text of them. */
  inForce(): Promise<readonly { readonly name: string; readonly digest: string }[]>;
}

export interface SkillRegistryOptions {
  /** Folders with skills, the first one first: of two skills with one name the earlier is in force. */
  readonly roots: readonly string[];
  readonly workspace: string;
  readonly clock?: Pick<Clock, 'now' | 'monotonic'>;
}

/** Touches nothing until it is asked. From the second time on, what did not change costs a stat and no read. */
export function createSkillRegistry(options: SkillRegistryOptions): SkillRegistry {
  let memory: Memory = NO_MEMORY;

  async function list(pause: () => Promise<void> = nextTurn): Promise<SkillListing> {
    const { listing, memory: next } = await scanRoots(options, memory, pause);
    memory = next;
    return listing;
  }

  return {
    list,
    async counts() {
      const { skills, skipped } = await list();
      return { loaded: skills.length, skipped: skipped.length };
    },
    async inForce() {
      const { skills } = await list();
      return skills.map(({ name, digest }) => ({ name, digest }));
    },
  };
}

async function scanRoots(
  { roots: paths, clock = systemClock, ...options }: SkillRegistryOptions,
  past: Memory,
  pause: () => Promise<void>,
): Promise<{ listing: SkillListing; memory: Memory }> {
  const workspace = resolve(options.workspace);
  const skipped: Skipped[] = [];
  const roots = resolveRoots(paths, workspace, (path, reason) => {
    skipped.push({ path: shownPath(path, [], workspace), reason });
  });
  const show = (path: string): string => shownPath(path, roots, workspace);
  const recalls = recallFrom(past, clock.now());
  const scan: Scan = {
    ...recalls,
    fences: roots.map(({ real }) => real),
    skip: (path, reason) => void skipped.push({ path: show(path), reason }),
    rest: createRest(clock, pause),
  };

  const byName = new Map<string, Skill>();
  const visited = new Set<string>();
  for (const root of roots) await loadRoot(scan, root, visited, byName, show);
  const skills = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { listing: { skills, skipped }, memory: memoryOf(recalls) };
}

async function loadRoot(
  scan: Scan,
  root: Root,
  visited: Set<string>,
  byName: Map<string, Skill>,
  show: (path: string) => string,
): Promise<void> {
  const budget = createBudget();
  for (const folder of await findSkillFolders(scan, root.real, visited, budget)) {
    const file = join(folder.path, folder.fileName);
    const read = await declareSkill(scan, folder, budget);
    if (isRefusal(read)) {
      scan.skip(file, read.reason);
      continue;
    }
    const { name } = read.declared;
    const taken = byName.get(name);
    if (taken !== undefined) {
      scan.skip(file, `shadowed: ${taken.path} has the same name, ${name}`);
      continue;
    }
    const digest = await sealSkill(scan, folder, read, budget);
    if (typeof digest === 'string') byName.set(name, { ...read.declared, path: show(file), digest });
    else scan.skip(file, digest.reason);
  }
}

function createRest(clock: Pick<Clock, 'monotonic'>, pause: () => Promise<void>): () => Promise<void> {
  let since = clock.monotonic();
  return async () => {
    if (clock.monotonic() - since < LIMITS.sliceMsMax) return;
    await pause();
    since = clock.monotonic();
  };
}
