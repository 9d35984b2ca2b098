import { basename, join } from 'node:path';
import { sha256Hex } from '../../integrity/digest.ts';
import * as disk from './disk.ts';
import { attempt, Refusal } from './disk.ts';
import type { Declaration } from './front-matter.ts';
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

/** A SKILL.md that makes its folder a skill. */
export interface SkillFile {
  readonly declared: Declaration;
  readonly sha256: string;
  readonly bytes: number;
}

/** Reads the SKILL.md of a folder. */
export async function readSkillFile(scan: Scan, { path, fileName }: SkillFolder): Promise<SkillFile> {
  const max = SKILL_LIMITS.skillFileBytesMax;
  const found = disk.look(join(path, fileName), scan.roots);
  if (found === undefined) throw new Refusal(disk.VANISHED);
  if (found.kind === 'folder')
    throw new Refusal(found.isLink ? disk.LINK_TO_NO_FILE : 'a folder, not a file');
  if (found.bytes > max) throw new Refusal(`larger than ${max / 1024} KiB`);
  spend(scan.budget, 'yamlBytes', 0);
  const file = disk.readFile(found.path, scan.roots, max);
  // The YAML parser takes 4 ms to load; a server does not need it before it has a skill to read.
  const { cutFrontMatter, readDeclaration } = await import('./front-matter.ts');
  const cut = cutFrontMatter(file);
  // The file that exceeds the budget is still read; the next one is not.
  scan.budget.yamlBytes += cut.yaml.length;
  const declared = readDeclaration(cut, basename(path));
  return { declared, sha256: sha256Hex(file), bytes: file.length };
}

/** The digest over everything in a skill's folder. All sizes are checked before files are read. */
export async function sealSkill(scan: Scan, folder: SkillFolder, skill: SkillFile): Promise<string> {
  const { filesMax, bytesMax } = SKILL_LIMITS;
  const placeOf = (path: string) => join(folder.path, path);
  /** What the digest says of each path below the folder. */
  const columns = new Map([[folder.fileName, skill.sha256]]);
  /** Files to hash, with their real paths. */
  const files: { readonly path: string; readonly real: string }[] = [];
  /** Folders to walk; the first is the skill's own. The list grows while it is walked. */
  const folders = [''];
  let bytes = skill.bytes;

  const leaveUnread = (path: string, reason: string): undefined => {
    scan.skip(placeOf(path), reason);
    columns.set(path, 'unread');
  };
  /** A link that does not lead to a file inside the roots counts as its own text; its target is not read. */
  const addLink = (path: string, reason: string, real = ''): undefined => {
    const target = disk.linkText(placeOf(path));
    if (target === undefined) return leaveUnread(path, reason);
    columns.set(path, `link:${sha256Hex(target)}`);
    // A link to a folder of the same skill hides nothing: that folder is covered where it is.
    if (!disk.isInside(real, folder.path)) scan.skip(placeOf(path), reason);
  };
  const addEntry = (path: string): void => {
    const entry = attempt(
      () => disk.look(placeOf(path), scan.roots),
      (reason) => addLink(path, reason),
    );
    if (entry?.kind === 'file') {
      files.push({ path, real: entry.path });
      bytes += entry.bytes;
    } else if (entry?.isLink) addLink(path, disk.LINK_TO_NO_FILE, entry.path);
    else if (entry !== undefined) folders.push(path);
    if (files.length + columns.size > filesMax)
      throw new Refusal(`its folder holds more than ${filesMax} files`);
    if (folders.length > filesMax) throw new Refusal(`its folder holds more than ${filesMax} folders`);
  };

  for (const path of folders) {
    const names = attempt(
      () => disk.namesIn(placeOf(path)),
      (reason) => leaveUnread(path, reason) ?? [],
    );
    for (const name of names) {
      if (path === '' && name === folder.fileName) continue;
      spend(scan.budget, 'entries', 1);
      addEntry(path === '' ? name : `${path}/${name}`);
    }
    await scan.rest();
  }
  if (bytes > bytesMax)
    throw new Refusal(`the files in its folder are larger than ${bytesMax / 1_048_576} MiB together`);
  spend(scan.budget, 'bytes', bytes);
  for (const { path, real } of files) {
    attempt(
      () => void columns.set(path, sha256Hex(disk.readFile(real, scan.roots, bytesMax))),
      (reason) => leaveUnread(path, reason),
    );
    await scan.rest();
  }
  return skillDigest(columns);
}

/**
 * The digest of a skill: SHA-256 over one line for each path below its folder, in the order of the paths' UTF-8 bytes.
 *
 * - a regular file: `<sha256 of its bytes>  <path>`, and so is a link that leads to a regular file inside the skills
 *   folders, with the bytes behind it;
 * - any other link: `link:<sha256 of its text>  <path>`; what is behind it is not covered;
 * - a pipe, a device, a socket, a file that may not be read: `unread  <path>`.
 *
 * Each line ends with a newline. Two blanks stand between the columns. A backslash, newline or carriage return in a
 * path is written `\\`, `\n` or `\r`, and the line then begins with a backslash. Folders have no line. `.git` and
 * `node_modules` are left out with all they hold. Modes and times are not covered.
 *
 * For a folder of plain files this is what coreutils say:
 * `find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`
 */
export function skillDigest(columns: ReadonlyMap<string, string>): string {
  const sorted = [...columns].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const lines = sorted.map(([path, column]) => {
    const escaped = path.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
    return `${escaped === path ? '' : '\\'}${column}  ${escaped}\n`;
  });
  return sha256Hex(lines.join(''));
}
