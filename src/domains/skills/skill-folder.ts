import { createHash } from 'node:crypto';
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
  /** YAML is read at about 2.5 MB/s, and what is not YAML a few times: 25 ms, 0.2 s at worst. */
  frontMatterBytesMax: 65_536,
  yamlDepthMax: 32,
  /** How often parts of one front matter are read on their own, where the whole of it is not YAML. */
  yamlAttemptsMax: 256,
  /** A skill with all its files. Published ones have up to 702; MCP's extension for skills allows 512 and 16 MiB. */
  filesMax: 4_096,
  bytesMax: 67_108_864,
  /** What is read of a file at once. SHA-256 takes about 1 ms for it, and others run in between. */
  chunkBytes: 1_048_576,
  /** How far below a root a SKILL.md is looked for, and through how many folders. */
  depthMax: 5,
  foldersMax: 2_000,
  /** Names in one folder. Past this the folder is left alone: a part of it would be an arbitrary part. */
  entriesMax: 10_000,
  /** All skills of one root together, so that a hostile one cannot keep the server busy. */
  rootEntriesMax: 50_000,
  rootBytesMax: 268_435_456,
  rootYamlBytesMax: 4_194_304,
  /** Four times what the format allows. What is longer is cut, and named, so that a page stays small. */
  nameCharsMax: 256,
  descriptionCharsMax: 4_096,
  versionCharsMax: 64,
  capabilitiesMax: 64,
  capabilityCharsMax: 64,
  /** What the YAML reader quotes of a file in a reason. */
  quoteCharsMax: 120,
  /**
   * One page of `skill_list`, which an answer holds twice, and what of it may name skipped files. Clients stop at
   * 25,000 tokens, and a token of such a page is more than 2.4 bytes in all but the rarest scripts.
   */
  pageMax: 200,
  pageBytesMax: 30_000,
  skippedBytesMax: 10_000,
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
  throw new Refusal(`its skills folder contains more than ${max} ${unit}; the rest is not read`);
}

/** A folder that holds a SKILL.md. Everything below belongs to it and is not searched for more skills. */
export interface SkillFolder {
  readonly path: string;
  /** `SKILL.md`, in whatever case it is written. */
  readonly fileName: string;
}

/** What the SKILL.md of a folder declares, what of it could not be read, and its bytes. */
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
  return { ...readDeclaration(cut, basename(path)), file };
}

/** Everything in a skill's folder, before any of it is read: its files, and for each path that is none, what the digest says. */
export async function walkSkill(scan: Scan, folder: SkillFolder) {
  const { filesMax, bytesMax } = SKILL_LIMITS;
  const unread = new Map<string, string>();
  const files: string[] = [];
  /** Folders to walk; the first is the skill's own. The list grows while it is walked. */
  const folders = [''];
  let bytes = 0;
  const orUnread = <T>(path: string, act: () => T): T | undefined =>
    attempt(act, (reason) => void unread.set(path, reason));

  for (const path of folders) {
    for (const name of orUnread(path, () => namesIn(join(folder.path, path))) ?? []) {
      spend(scan.budget, 'entries', 1);
      const below = path === '' ? name : `${path}/${name}`;
      const entry = orUnread(below, () => look(join(folder.path, below)));
      if (entry?.isFile()) bytes += entry.size;
      if (entry !== undefined) (entry.isFile() ? files : folders).push(below);
      const what = files.length + unread.size > filesMax ? 'files' : 'folders';
      if (what === 'files' || folders.length > filesMax)
        throw new Refusal(`its folder contains more than ${filesMax} ${what}`);
    }
    await scan.rest();
  }
  if (bytes > bytesMax)
    throw new Refusal(`the files in its folder take more than ${bytesMax / 1_048_576} MiB`);
  spend(scan.budget, 'bytes', bytes);
  /** Files that would be skills of their own elsewhere. */
  const hidden = files.filter((path) => path !== folder.fileName && isSkillFile(basename(path)));
  return { files, unread, hidden };
}

/** The digest over everything that was found. What turns out to be unreadable now is added to what is unread. */
export async function sealSkill(scan: Scan, folder: SkillFolder, file: Buffer, found: FoundFiles) {
  const columns = new Map([[folder.fileName, sha256Hex(file)]]);
  for (const path of found.files.filter((path) => path !== folder.fileName)) {
    try {
      columns.set(path, await hashFile(join(folder.path, path), scan));
    } catch (error) {
      found.unread.set(path, reasonOf(error));
    }
    await scan.rest();
  }
  for (const path of found.unread.keys()) columns.set(path, 'unread');
  return skillDigest(columns);
}

type FoundFiles = Awaited<ReturnType<typeof walkSkill>>;

/** Some people write `skill.md`. */
export function isSkillFile(name: string): boolean {
  return name.toLowerCase() === 'skill.md';
}

/** The digest of a skill, from what is said of each path below its folder. The formula is in docs/reference/skills.md. */
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

const VANISHED = 'it disappeared while it was being read; call again';

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'Colibri has no permission to read it (EACCES)',
  EPERM: 'Colibri has no permission to read it (EPERM)',
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
  return closing(openInside(path, roots), (fd) => {
    const size = sizeOf(fd, bytesMax);
    const bytes = Buffer.allocUnsafe(size);
    if (fs.readSync(fd, bytes) === size) return bytes;
    throw new Refusal(REPLACED);
  });
}

/** The digest of such a file, read piece by piece. */
async function hashFile(path: string, { roots, rest }: Scan): Promise<string> {
  const fd = openInside(path, roots);
  try {
    const size = sizeOf(fd, SKILL_LIMITS.bytesMax);
    const piece = Buffer.allocUnsafe(Math.min(size, SKILL_LIMITS.chunkBytes));
    const hash = createHash('sha256');
    for (let read = 0; read < size; await rest()) {
      const length = fs.readSync(fd, piece, 0, Math.min(piece.length, size - read), read);
      if (length === 0) throw new Refusal(REPLACED);
      hash.update(piece.subarray(0, length));
      read += length;
    }
    return hash.digest('hex');
  } finally {
    fs.closeSync(fd);
  }
}

const REPLACED = 'it was replaced while it was being read; call again';

function openInside(path: string, roots: readonly string[]): number {
  if (!isInside(realPath(path), ...roots)) throw new Refusal('it is outside the skills folder');
  return fs.openSync(path, fs.constants.O_RDONLY | WARILY);
}

function sizeOf(fd: number, bytesMax: number): number {
  const stat = fs.fstatSync(fd);
  if (stat.isFile() && stat.size <= bytesMax) return stat.size;
  throw new Refusal(REPLACED);
}
