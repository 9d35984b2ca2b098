import * as fs from 'node:fs';
import { sep } from 'node:path';
import { SKILL_LIMITS } from './limits.ts';

// Hostile input enters here: everything in a skills folder is examined, opened and read through this file only.
// The calls are synchronous because that is five to eight times as fast (4,000 lstat: 10 to 15 ms instead of 70 to 90);
// callers let others run between slices.

/** Thrown when something in a skills folder is not used. The message tells the person who put it there why. */
export class Refusal extends Error {}

export const LINK_TO_NO_FILE = 'a symbolic link to something that is not a file';
export const VANISHED = 'it vanished while it was being read; ask again';

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'Colibri may not read it (EACCES)',
  EPERM: 'Colibri may not read it (EPERM)',
  ELOOP: 'it is or became a symbolic link (ELOOP)',
  ENOENT: VANISHED,
};

/** The result of `act`, or else of `otherwise` if that is refused. */
export function attempt<T>(act: () => T, otherwise: (reason: string) => T): T {
  try {
    return act();
  } catch (error) {
    return otherwise(reasonOf(error));
  }
}

/** Why something is not used. A refusal and a file system error are outcomes here; any other error is a bug. */
export function reasonOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error;
  return REASONS[String(error.code)] ?? `it cannot be read (${error.code})`;
}

/** A file or folder; for a link, the one it leads to. `path` has no link in it below the root. */
export interface Found {
  readonly kind: 'file' | 'folder';
  readonly isLink: boolean;
  readonly path: string;
  readonly bytes: number;
}

/** What is at a path; undefined if nothing is. A link is followed only if it leads into one of the `roots`. */
export function look(path: string, roots: readonly string[]): Found | undefined {
  const own = fs.lstatSync(path, { throwIfNoEntry: false });
  if (own === undefined && path.includes('\ufffd')) throw new Refusal('its name is not UTF-8');
  if (own === undefined) return undefined;
  const isLink = own.isSymbolicLink();
  const real = isLink ? resolveLink(path, roots) : path;
  const stat = isLink ? fs.lstatSync(real) : own;
  if (stat.isFile() || stat.isDirectory())
    return { kind: stat.isFile() ? 'file' : 'folder', isLink, path: real, bytes: stat.size };
  if (isLink) throw new Refusal(LINK_TO_NO_FILE);
  const special = stat.isFIFO() ? 'a named pipe' : stat.isSocket() ? 'a socket' : 'a device';
  throw new Refusal(`${special}, not a file`);
}

function resolveLink(path: string, roots: readonly string[]): string {
  let real: string;
  try {
    real = realPath(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw new Refusal(`a symbolic link that leads nowhere${code}`);
  }
  if (!isInside(real, ...roots)) throw new Refusal('a symbolic link out of the skills folder');
  return real;
}

/** The path with every link in it resolved. */
export function realPath(path: string): string {
  return fs.realpathSync.native(path);
}

/** The text of a link, whatever it leads to; undefined if there is no link. */
export function linkText(path: string): string | undefined {
  return attempt<string | undefined>(
    () => fs.readlinkSync(path),
    () => undefined,
  );
}

/** Whether a path is one of these folders or below one. */
export function isInside(path: string, ...folders: readonly string[]): boolean {
  return folders.some((folder) => `${path}${sep}`.startsWith(folder.endsWith(sep) ? folder : folder + sep));
}

/**
 * The names in a folder, sorted. They are read one by one, so a huge folder costs no more than the limit. What git and
 * npm keep is never part of a skill, and never searched for one.
 */
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

// Never through a link, and without waiting for a writer if a pipe has taken the file's place.
const OPEN_FLAGS = fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);

/** The bytes of a regular file inside one of the roots. */
export function readFile(path: string, roots: readonly string[], bytesMax: number): Buffer {
  if (!isInside(realPath(path), ...roots)) throw new Refusal('it is outside the skills folder');
  const fd = fs.openSync(path, OPEN_FLAGS);
  try {
    const stat = fs.fstatSync(fd);
    const bytes = Buffer.allocUnsafe(stat.isFile() && stat.size <= bytesMax ? stat.size : 0);
    if (stat.isFile() && fs.readSync(fd, bytes) === stat.size) return bytes;
    throw new Refusal('it was replaced while it was being read; ask again');
  } finally {
    fs.closeSync(fd);
  }
}
