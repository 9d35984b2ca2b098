import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { systemClock } from '../clock.ts';

/**
 * Replaces a file so that after a crash or a power cut it holds the old text or the new, never a part. For its owner
 * only, whatever the umask; the temporary name is new, so that a link planted under it is not followed.
 */
export function replaceFile(path: string, text: string): void {
  const temporary = `${path}.${systemClock.salt()}.tmp`;
  const fd = openSync(temporary, 'wx', 0o600);
  try {
    try {
      fchmodSync(fd, 0o600);
      writeSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** The text of a file, or undefined where there is none. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

/**
 * The first bytes of a regular file, or undefined where there is none. For places that others can write to: a link is
 * not followed, a pipe does not hang, and a device is not read for ever.
 */
export function readRegular(path: string, bytesMax: number): Buffer | undefined {
  const fd = openQuietly(path);
  if (fd === undefined) return undefined;
  try {
    if (!fstatSync(fd).isFile()) return undefined;
    const bytes = Buffer.alloc(Math.min(bytesMax, fstatSync(fd).size));
    let length = 0;
    for (let got = -1; got !== 0 && length < bytes.length; length += got)
      got = readSync(fd, bytes, length, bytes.length - length, length);
    return bytes.subarray(0, length);
  } finally {
    closeSync(fd);
  }
}

function openQuietly(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (isAbsence(error) || hasCode(error, 'ELOOP')) return undefined;
    throw error;
  }
}

function isAbsence(error: unknown): boolean {
  return hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR');
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** A rename is durable only when the folder is. Windows has no such thing and needs none. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
