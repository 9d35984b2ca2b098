import type { Declaration } from './declaration.ts';
import { isRefusal, namesIn, type Refusal, type Seen } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';
import { createRecall, type Kept, type Recall } from './recall.ts';

/** A SKILL.md that was read: the digest of its bytes, what they say, and how much of them was YAML. */
export interface SkillFile {
  readonly sha256: string;
  readonly yamlBytes: number;
  readonly declared: Declaration | Refusal;
}

/** What one look at all roots shares. */
export interface Scan extends Recalls {
  /** The real paths of the roots: nothing outside them is opened. */
  readonly fences: readonly string[];
  /** Notes that something was not used. `path` is the real one. */
  skip(path: string, reason: string): void;
  /** Lets others run when this scan has run for a slice. */
  rest(): Promise<void>;
}

interface Recalls {
  readonly folders: Recall<readonly string[]>;
  readonly hashes: Recall<string>;
  readonly skillFiles: Recall<SkillFile>;
}

/** What a scan leaves for the next one. */
export interface Memory {
  readonly folders: Kept<readonly string[]>;
  readonly hashes: Kept<string>;
  readonly skillFiles: Kept<SkillFile>;
}

export const NO_MEMORY: Memory = { folders: new Map(), hashes: new Map(), skillFiles: new Map() };

export function recallFrom(memory: Memory, nowMs: number): Recalls {
  return {
    folders: createRecall(memory.folders, nowMs),
    hashes: createRecall(memory.hashes, nowMs),
    skillFiles: createRecall(memory.skillFiles, nowMs),
  };
}

export function memoryOf({ folders, hashes, skillFiles }: Recalls): Memory {
  return { folders: folders.kept, hashes: hashes.kept, skillFiles: skillFiles.kept };
}

/** A folder's names, read again only when the folder changed. */
export function listFolder(scan: Scan, path: string, seen: Seen): readonly string[] | Refusal {
  const known = scan.folders.find(path, seen);
  if (known !== undefined) return known;
  const names = namesIn(path, seen);
  if (!isRefusal(names)) scan.folders.keep(path, seen, names);
  return names;
}

/** What one root may still cost. The same folders always run out at the same place, remembered or not. */
export interface Budget {
  spend(what: keyof typeof BUDGETS, amount: number): Refusal | undefined;
}

const BUDGETS = {
  entries: [SKILL_LIMITS.rootEntriesMax, 'entries'],
  bytes: [SKILL_LIMITS.rootBytesMax, 'bytes'],
  yamlBytes: [SKILL_LIMITS.rootYamlBytesMax, 'bytes of front matter'],
} as const;

export function createBudget(): Budget {
  const spent = { entries: 0, bytes: 0, yamlBytes: 0 };
  return {
    spend(what, amount) {
      const [max, unit] = BUDGETS[what];
      spent[what] += amount;
      if (spent[what] <= max) return undefined;
      return { reason: `its skills folder holds more than ${max} ${unit}; the rest is not read` };
    },
  };
}

/** Never part of a skill, and never searched for one. */
export function isIgnored(name: string): boolean {
  return name === '.git' || name === 'node_modules';
}
