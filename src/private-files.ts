import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { systemClock } from './clock.ts';

// The one place that opens files and makes folders where others may have been first. Hostile input enters here: the
// maker of the folder may have put a link, a pipe or a device where a file of ours should be.

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
/** Never through a link, and without waiting for anyone at the other end of a pipe. */
export const WARILY = O_NOFOLLOW | O_NONBLOCK;
/** More than any file of ours that is read whole; a bundle and a database are not. */
const FILE_BYTES_MAX = 16_777_216;
const HAS_MODES = process.platform !== 'win32';

/**
 * Why the path is not a regular file, as the end of a sentence; undefined where it is one, or where nothing is. To be
 * written, it must not have a second name either: that may be a file of the user's (a hard link).
 */
export function oddity(path: string, isWritten = false): string | undefined {
  const stat = look(path, fs.lstatSync);
  if (stat?.isFile() && isWritten && stat.nlink > 1) return 'a file with a second name';
  if (stat === undefined || stat.isFile()) return undefined;
  if (stat.isSymbolicLink()) return 'a symbolic link';
  return stat.isDirectory() ? 'a folder' : 'not a regular file';
}

/** Whether anything is there, be it a link that leads nowhere. */
export function isThere(path: string): boolean {
  return look(path, fs.lstatSync) !== undefined;
}

/** What a path leads to, through links; undefined where nothing is. */
export function target(path: string): fs.Stats | undefined {
  return look(path, fs.statSync);
}

/** What is at a path. On every Node: below something that is no folder, as below /dev/null, there is nothing. */
function look(path: string, stat: typeof fs.statSync | typeof fs.lstatSync): fs.Stats | undefined {
  return unlessCode(['ENOTDIR'], () => stat(path, { throwIfNoEntry: false }));
}

/** What is in a folder; nothing where there is none, or a link to one. */
export function namesIn(folder: string): string[] {
  return oddity(folder) === 'a folder' ? fs.readdirSync(folder) : [];
}

/** The first bytes of a regular file; undefined where there is none. Links are followed only where the user named the path. */
export function readStart(path: string, bytesMax: number, follow = false): Buffer | undefined {
  return readPart(path, bytesMax, follow ? O_NONBLOCK : WARILY, () => 0);
}

/** The last bytes of a regular file; undefined where there is none. */
export function readEnd(path: string, bytesMax: number): Buffer | undefined {
  return readPart(path, bytesMax, WARILY, (size, length) => size - length);
}

function readPart(
  path: string,
  bytesMax: number,
  flags: number,
  from: (size: number, length: number) => number,
) {
  // Where nothing is, to look first takes a tenth of the time of an error.
  if (!isThere(path)) return undefined;
  return unlessCode(UNREADABLE, () =>
    closing(fs.openSync(path, O_RDONLY | flags), (fd) => {
      const stat = fs.fstatSync(fd);
      if (!stat.isFile()) return undefined;
      const bytes = Buffer.alloc(Math.min(bytesMax, stat.size));
      return bytes.subarray(0, fs.readSync(fd, bytes, 0, bytes.length, from(stat.size, bytes.length)));
    }),
  );
}

/** All of a regular file; undefined where there is none, or where it is larger than the bound. */
export function readWhole(path: string, bytesMax = FILE_BYTES_MAX, follow = false): Buffer | undefined {
  const bytes = readStart(path, bytesMax + 1, follow);
  return bytes !== undefined && bytes.length <= bytesMax ? bytes : undefined;
}

/** The text of such a file. */
export function readText(path: string): string | undefined {
  return readWhole(path)?.toString('utf8');
}

/** What a file of ours holds as JSON. Without members where there is no file or it is damaged. */
export function readJson(path: string): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(readText(path) ?? '{}') };
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** Opens a file for its owner only unless told otherwise, whatever the umask is. To be closed by the caller. */
export function openPrivate(path: string, flags: string | number, mode = 0o600): number {
  const fd = fs.openSync(path, flags, mode);
  if (HAS_MODES && (fs.fstatSync(fd).mode & 0o777) !== mode)
    unlessCode(NOT_OURS, () => fs.fchmodSync(fd, mode));
  return fd;
}

/** What a file is to hold. */
export type Content = string | Uint8Array;

/** Makes a file that is not there yet. Fails with EEXIST where anything is, be it a link that leads nowhere. */
export function createFile(path: string, content: Content, isDurable = false, mode?: number): void {
  closing(openPrivate(path, 'wx', mode), (fd) => {
    fs.writeFileSync(fd, content);
    if (isDurable) fs.fsyncSync(fd);
  });
}

/** Replaces a file whole or not at all, even in a power cut unless told that this does not matter. A link is replaced, not followed. */
export function replaceFile(path: string, content: Content, isDurable = true, mode?: number): void {
  const temporary = `${path}.${systemClock.salt()}.tmp`;
  try {
    createFile(temporary, content, isDurable, mode);
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  if (isDurable) syncFolder(dirname(path));
}

/** A rename is durable only when the folder is. Windows has no such thing and needs none. */
export function syncFolder(path: string): void {
  if (HAS_MODES) closing(fs.openSync(path, 'r'), fs.fsyncSync);
}

/**
 * Makes a folder and those above it, for their owner only, whatever the umask is. One of Colibri's own is closed where it is
 * open to others, and must not be a link: what is behind it may be any folder of the user's. Not with Node's recursive
 * option: where the nearest existing folder refuses with "no such file" (as /proc does), Node goes round in circles for ever.
 */
export function makePrivateFolder(path: string, isOurs = true): void {
  const isNew = !isThere(path);
  if (isNew) {
    makePrivateFolder(dirname(path), false);
    try {
      fs.mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      // Another process may have made it.
      if (!fs.existsSync(path)) throw error;
    }
  }
  const odd = oddity(path);
  if (isOurs && odd !== 'a folder')
    throw new Error(`${path} is ${odd ?? 'a file'}, so nothing is written there. Replace it with a folder.`);
  if (isNew || (isOurs && isOpen(path, 0o077))) unlessCode(NOT_OURS, () => fs.chmodSync(path, 0o700));
}

/** A new folder for what is needed for a while, for its owner only, whatever the umask is. */
export function makeTemporaryFolder(what: string): string {
  const path = fs.mkdtempSync(join(resolve(tmpdir()), `colibri-${what}-`));
  fs.chmodSync(path, 0o700);
  return path;
}

/** Makes the folder of a database. One named `.colibri` is Colibri's own, and keeps itself out of git. */
export function makeDataFolder(path: string): void {
  const isOurs = basename(path) === DATA_FOLDER;
  makePrivateFolder(path, isOurs);
  if (isOurs) unlessCode(['EEXIST'], () => createFile(join(path, '.gitignore'), '*\n'));
}

const DATA_FOLDER = '.colibri';

/** The folders of a log that others can enter or, where it is the user's own folder, write to; each with whether it is ours. */
export function openFolders(dbPath: string, configDir: string) {
  const data = dirname(dbPath);
  const ours = [...(basename(data) === DATA_FOLDER ? [data] : []), `${dbPath}.anchors`, configDir];
  return [...new Set([data, ...ours])].flatMap((folder) => {
    const isOurs = ours.includes(folder) && oddity(folder) === 'a folder';
    return isOpen(folder, isOurs ? 0o077 : 0o022) ? [{ folder, isOurs }] : [];
  });
}

/** In a folder like /tmp, nobody can remove or replace what is another user's. */
function isOpen(path: string, others: number): boolean {
  const { mode = 0 } = target(path) ?? {};
  const isSticky = others === 0o022 && (mode & 0o1000) !== 0;
  return HAS_MODES && (mode & others) !== 0 && !isSticky;
}

/** What cannot be read is as good as not there: its owner took it away, or never put it there. */
const UNREADABLE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EACCES', 'EPERM', 'EIO', 'ENAMETOOLONG'];
/** Files of another user, and file systems without modes. */
const NOT_OURS = ['EPERM', 'EROFS', 'ENOTSUP', 'ENOSYS'];

/** Does something with an open file and closes it, however that ends. */
export function closing<T>(fd: number, work: (fd: number) => T): T {
  try {
    return work(fd);
  } finally {
    fs.closeSync(fd);
  }
}

function unlessCode<T>(codes: readonly string[], act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error && 'code' in error && codes.includes(String(error.code))) return undefined;
    throw error;
  }
}
