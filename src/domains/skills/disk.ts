import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
} from 'node:fs';
import { sep } from 'node:path';
import { SKILL_LIMITS } from './limits.ts';

// Hostile input enters here: whatever lies in a skills folder is seen, opened and read through this file only.
// The calls are synchronous because they are five to eight times as fast so (4,000 lstat: 10 to 15 ms against
// 70 to 90); callers rest between slices.

/** Why something was not read, in words for the person who put it there. */
export interface Refusal {
  readonly reason: string;
}

export function isRefusal(value: object): value is Refusal {
  return 'reason' in value;
}

/** A file or folder as it looked at one moment. Two equal stamps mean: nothing was changed between. */
export interface Seen {
  readonly kind: 'file' | 'folder';
  readonly stamp: string;
  readonly bytes: number;
  /** When the content or anything about it last changed. */
  readonly changedMs: number;
}

/** What a path is, without following it; undefined where nothing is. */
export function look(path: string): Seen | { readonly kind: 'link' } | Refusal | undefined {
  const stat = attempt(() => lstatSync(path, { bigint: true, throwIfNoEntry: false }));
  if (stat === undefined) return path.includes('\ufffd') ? { reason: 'its name is not UTF-8' } : undefined;
  if (isRefusal(stat)) return stat;
  if (stat.isSymbolicLink()) return { kind: 'link' };
  if (stat.isFile()) return seenAs('file', stat);
  if (stat.isDirectory()) return seenAs('folder', stat);
  return { reason: `${specialKind(stat)}, not a file` };
}

/** The file or the folder at a path, if that is what is there. */
export function lookFor(kind: Seen['kind'], path: string): Seen | undefined {
  const there = look(path);
  return there !== undefined && 'stamp' in there && there.kind === kind ? there : undefined;
}

/** The names in a folder, sorted. */
export function namesIn(folder: string, seen: Seen): readonly string[] | Refusal {
  const names = attempt(() =>
    seen.bytes > LARGE_FOLDER_BYTES ? firstNames(folder, SKILL_LIMITS.entriesMax + 1) : readdirSync(folder),
  );
  if (isRefusal(names)) return names;
  if (names.length > SKILL_LIMITS.entriesMax) {
    return { reason: `a folder with more than ${SKILL_LIMITS.entriesMax} entries` };
  }
  return names.sort();
}

/** Reading name by name costs three times as much, so only folders pay for it that are large by their own account. */
const LARGE_FOLDER_BYTES = 65_536;

function firstNames(folder: string, count: number): string[] {
  const names: string[] = [];
  const dir = opendirSync(folder, { bufferSize: 256 });
  try {
    while (names.length < count) {
      const entry = dir.readSync();
      if (entry === null) break;
      names.push(entry.name);
    }
  } finally {
    dir.closeSync();
  }
  return names;
}

/** The real place of a link that stays inside one of the given folders. */
export function followLink(path: string, folders: readonly string[]): string | Refusal {
  const real = attempt(() => realpathSync.native(path));
  if (typeof real === 'object') return { reason: `a symbolic link that leads nowhere (${real.code})` };
  return folders.some((folder) => isInside(real, folder))
    ? real
    : { reason: 'a symbolic link out of the skills folder' };
}

/** A regular file, and where it really is. */
export interface RegularFile {
  readonly real: string;
  readonly seen: Seen;
}

/** The regular file at a path, or behind a link there that stays inside one of the folders. */
export function regularFile(path: string, folders: readonly string[]): RegularFile | Refusal {
  const seen = look(path);
  if (seen === undefined) return { reason: 'it vanished while it was being read; ask again' };
  if (isRefusal(seen)) return seen;
  if (seen.kind === 'file') return { real: path, seen };
  if (seen.kind === 'folder') return { reason: 'a folder, not a file' };
  const real = followLink(path, folders);
  if (typeof real !== 'string') return real;
  const target = lookFor('file', real);
  return target === undefined
    ? { reason: 'a symbolic link to something that is not a file' }
    : { real, seen: target };
}

/** What a link says, whatever may be behind it. */
export function linkText(path: string): string | Refusal {
  return attempt(() => readlinkSync(path));
}

/** The path without any link in it. */
export function realPath(path: string): string | Refusal | undefined {
  const real = attempt(() => realpathSync.native(path));
  return typeof real === 'object' && real.code === 'ENOENT' ? undefined : real;
}

/**
 * Opens a regular file that really lies inside one of the folders: never through a link, and without waiting for a
 * writer should a pipe have taken its place. What it answers was seen after opening and is true of the open file.
 */
export function openFile(
  path: string,
  folders: readonly string[],
): { readonly fd: number; readonly seen: Seen } | Refusal {
  const real = attempt(() => realpathSync.native(path));
  if (typeof real === 'object') return real;
  if (!folders.some((folder) => isInside(real, folder)))
    return { reason: 'it lies outside the skills folder' };
  return attempt(() => {
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const stat = fstatSync(fd, { bigint: true });
    if (stat.isFile() && stat.size <= SKILL_LIMITS.bytesMax) return { fd, seen: seenAs('file', stat) };
    closeSync(fd);
    return { reason: 'it was replaced while it was being read; ask again' };
  });
}

/** Reads the next bytes into `buffer`, as many as there are and fit; none at the end of the file. */
export function readNext(fd: number, buffer: Uint8Array): number | Refusal {
  return attempt(() => readSync(fd, buffer, 0, buffer.length, null));
}

export function close(fd: number): void {
  closeSync(fd);
}

export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function seenAs(kind: 'file' | 'folder', stat: BigIntStats): Seen {
  return {
    kind,
    stamp: stampOf(stat),
    bytes: Number(stat.size),
    changedMs: Number(stat.ctimeNs > stat.mtimeNs ? stat.ctimeNs : stat.mtimeNs) / 1e6,
  };
}

// The time of modification can be set back by hand, the time of change cannot.
function stampOf(stat: BigIntStats): string {
  return `${stat.dev}.${stat.ino}.${stat.size}.${stat.mtimeNs}.${stat.ctimeNs}`;
}

function specialKind(stat: BigIntStats): string {
  if (stat.isFIFO()) return 'a named pipe';
  if (stat.isSocket()) return 'a socket';
  return 'a device';
}

/** An error of the file system is an outcome here: the folder belongs to somebody else. Any other is a bug. */
function attempt<T>(act: () => T): T | (Refusal & { readonly code: string }) {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error;
    return { code: error.code, reason: SAYINGS[error.code] ?? `it cannot be read (${error.code})` };
  }
}

const SAYINGS: Readonly<Record<string, string>> = {
  EACCES: 'Colibri may not read it (EACCES)',
  EPERM: 'Colibri may not read it (EPERM)',
  ELOOP: 'it is or became a symbolic link (ELOOP)',
  ENOENT: 'it vanished while it was being read; ask again',
};
