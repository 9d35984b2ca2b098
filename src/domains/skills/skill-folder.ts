import * as fs from 'node:fs';
import { basename, join, sep } from 'node:path';
import { sha256Hex } from '../../integrity/digest.ts';
import { closing, WARILY } from '../../private-files.ts';

// Hostile input enters here: everything in a skills folder is examined, opened and read through this file only.
// The calls are synchronous because that is five to eight times as fast (4,000 lstat: 10 to 15 ms instead of 70 to 90);
// callers let others run between slices.

/** Every bound on what a skills folder may make the server do. Past one, something is left out and named. */
export const SKILL_LIMITS = Object.freeze({
  /** One SKILL.md. The format advises 5,000 tokens, about 20 KB. */
  skillFileBytesMax: 1_048_576,
  /** YAML is read at about 2.5 MB/s, so this is 25 ms at worst. */
  frontMatterBytesMax: 65_536,
  yamlDepthMax: 32,
  /** A skill with all its files: the bounds of the skills extension of MCP. */
  filesMax: 512,
  bytesMax: 16_777_216,
  /** How far below a root a SKILL.md is looked for, and through how many folders. */
  depthMax: 5,
  foldersMax: 2_000,
  /** Names in one folder. Past this the folder is left alone: a part of it would be an arbitrary part. */
  entriesMax: 10_000,
  /** All skills of one root together, so that a hostile one cannot keep the server busy. */
  rootEntriesMax: 50_000,
  rootBytesMax: 268_435_456,
  rootYamlBytesMax: 4_194_304,
  /** Bounds of the format; a longer description is cut, because every word of it costs the reader tokens. */
  nameCharsMax: 64,
  descriptionCharsMax: 1_024,
  versionCharsMax: 64,
  capabilitiesMax: 64,
  capabilityCharsMax: 64,
  /** What the YAML reader quotes of a file in a reason. */
  quoteCharsMax: 120,
  /** Refusals in one answer; the rest is counted. */
  skippedShownMax: 500,
});

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

/** What the SKILL.md of a folder declares, and its bytes. */
export async function readSkillFile(scan: Scan, { path, fileName }: SkillFolder) {
  const max = SKILL_LIMITS.skillFileBytesMax;
  const place = join(path, fileName);
  const found = look(place);
  if (found === undefined) throw new Refusal(VANISHED);
  if (found.isDirectory()) throw new Refusal('a folder, not a file');
  if (found.size > max) throw new Refusal(`larger than ${max / 1024} KiB`);
  spend(scan.budget, 'yamlBytes', 0);
  const file = readFile(place, scan.roots, max);
  // The YAML parser takes 4 ms to load; a server does not need it before it has a skill to read.
  const { cutFrontMatter, readDeclaration } = await import('./front-matter.ts');
  const cut = cutFrontMatter(file);
  // The file that exceeds the budget is still read; the next one is not.
  scan.budget.yamlBytes += cut.yaml.length;
  return { declared: readDeclaration(cut, basename(path)), file };
}

/** The digest over everything in a skill's folder. All sizes are checked before files are read. */
export async function sealSkill(scan: Scan, folder: SkillFolder, file: Buffer): Promise<string> {
  const { filesMax, bytesMax } = SKILL_LIMITS;
  const placeOf = (path: string) => join(folder.path, path);
  /** What the digest says of each path below the folder. */
  const columns = new Map([[folder.fileName, sha256Hex(file)]]);
  /** Files to hash. */
  const files: string[] = [];
  /** Folders to walk; the first is the skill's own. The list grows while it is walked. */
  const folders = [''];
  let bytes = file.length;
  const orUnread = <T>(path: string, act: () => T): T | undefined =>
    attempt(act, (reason) => {
      scan.skip(placeOf(path), reason);
      columns.set(path, 'unread');
    });

  for (const path of folders) {
    for (const name of orUnread(path, () => namesIn(placeOf(path))) ?? []) {
      if (path === '' && name === folder.fileName) continue;
      spend(scan.budget, 'entries', 1);
      const below = path === '' ? name : `${path}/${name}`;
      const entry = orUnread(below, () => look(placeOf(below)));
      if (entry?.isFile()) bytes += entry.size;
      if (entry !== undefined) (entry.isFile() ? files : folders).push(below);
      const what = files.length + columns.size > filesMax ? 'files' : 'folders';
      if (what === 'files' || folders.length > filesMax)
        throw new Refusal(`its folder holds more than ${filesMax} ${what}`);
    }
    await scan.rest();
  }
  if (bytes > bytesMax)
    throw new Refusal(`the files in its folder are larger than ${bytesMax / 1_048_576} MiB together`);
  spend(scan.budget, 'bytes', bytes);
  for (const path of files) {
    orUnread(path, () => columns.set(path, sha256Hex(readFile(placeOf(path), scan.roots, bytesMax))));
    await scan.rest();
  }
  return skillDigest(columns);
}

/**
 * The digest of a skill: SHA-256 over one line for each path below its folder, in the order of the paths' UTF-8 bytes:
 * `<sha256 of its bytes>  <path>` for a regular file; `unread  <path>` for a link, a pipe, a device, a socket or a file
 * that may not be read. Each line ends with a newline. A backslash, newline or carriage return in a path is written `\\`,
 * `\n` or `\r`, and the line then begins with a backslash. Folders have no line. `.git` and `node_modules` are left out
 * with all they hold. Modes and times are not covered. For a folder of plain files this is what coreutils say:
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

/** Thrown when something in a skills folder is not used. The message tells the person who put it there why. */
export class Refusal extends Error {}

const VANISHED = 'it vanished while it was being read; ask again';

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'Colibri may not read it (EACCES)',
  EPERM: 'Colibri may not read it (EPERM)',
  ELOOP: 'it is or became a symbolic link (ELOOP)',
  ENOENT: VANISHED,
};

/** The result of `act`; undefined, and `refused` is told why, where there is none. */
export function attempt<T>(act: () => T, refused: (reason: string) => void): T | undefined {
  try {
    return act();
  } catch (error) {
    refused(reasonOf(error));
    return undefined;
  }
}

/** Why something is not used. A refusal and a file system error are outcomes here; any other error is a bug. */
export function reasonOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error;
  return REASONS[String(error.code)] ?? `it cannot be read (${error.code})`;
}

/** What is known of the file or folder at a path; undefined if nothing is there. A link is never followed. */
export function look(path: string) {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined && path.includes('\ufffd')) throw new Refusal('its name is not UTF-8');
  if (stat === undefined || stat.isFile() || stat.isDirectory()) return stat;
  if (stat.isSymbolicLink()) throw new Refusal('a symbolic link, and links are not followed');
  const special = stat.isFIFO() ? 'a named pipe' : stat.isSocket() ? 'a socket' : 'a device';
  throw new Refusal(`${special}, not a file`);
}

/** The path with every link in it resolved. */
export function realPath(path: string): string {
  return fs.realpathSync.native(path);
}

/** Whether a path is one of these folders or below one. */
export function isInside(path: string, ...folders: readonly string[]): boolean {
  return folders.some((folder) => `${path}${sep}`.startsWith(folder.endsWith(sep) ? folder : folder + sep));
}

/** The names in a folder, sorted, read one by one up to the limit. What git and npm keep is never part of a skill. */
export function namesIn(folder: string): readonly string[] {
  const max = SKILL_LIMITS.entriesMax;
  const names: string[] = [];
  const dir = fs.opendirSync(folder, { bufferSize: 256 });
  try {
    for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) {
      if (names.push(entry.name) > max) throw new Refusal(`a folder with more than ${max} entries`);
    }
  } finally {
    dir.closeSync();
  }
  return names.filter((name) => name !== '.git' && name !== 'node_modules').sort();
}

/** The bytes of a regular file inside one of the roots. */
function readFile(path: string, roots: readonly string[], bytesMax: number): Buffer {
  if (!isInside(realPath(path), ...roots)) throw new Refusal('it is outside the skills folder');
  return closing(fs.openSync(path, fs.constants.O_RDONLY | WARILY), (fd) => {
    const stat = fs.fstatSync(fd);
    const bytes = Buffer.allocUnsafe(stat.isFile() && stat.size <= bytesMax ? stat.size : 0);
    if (stat.isFile() && fs.readSync(fd, bytes) === stat.size) return bytes;
    throw new Refusal('it was replaced while it was being read; ask again');
  });
}
