import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { systemClock } from '../clock.ts';

/** Replaces a file whole or not at all, even in a power cut. Its temporary name is new: no planted link is followed. */
export function replaceFile(path: string, text: string): void {
  const temporary = `${path}.${systemClock.salt()}.tmp`;
  try {
    withFile(temporary, 'wx', (fd) => {
      fs.writeFileSync(fd, text);
      fs.fsyncSync(fd);
    });
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** A rename is durable only when the folder is. Windows has no such thing and needs none. */
export function syncFolder(path: string): void {
  if (process.platform !== 'win32') withFile(path, 'r', fs.fsyncSync);
}

/** The text of a file, or undefined where there is none. */
export function readIfPresent(path: string): string | undefined {
  return unlessCode(['ENOENT', 'ENOTDIR'], () => fs.readFileSync(path, 'utf8'));
}

/** What a file of ours holds as JSON. Without members where there is no file or it is damaged. */
export function readJson(path: string): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(readIfPresent(path) ?? '{}') };
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** The first bytes of a regular file, or undefined. Where others can write: no link, pipe or device is read. */
export function readRegular(path: string, bytesMax: number): Buffer | undefined {
  const flags = fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);
  return unlessCode(['ENOENT', 'ENOTDIR', 'ELOOP'], () =>
    withFile(path, flags, (fd) => {
      const stat = fs.fstatSync(fd);
      if (!stat.isFile()) return undefined;
      const bytes = Buffer.alloc(Math.min(bytesMax, stat.size));
      return bytes.subarray(0, fs.readSync(fd, bytes));
    }),
  );
}

function withFile<T>(path: string, flags: string | number, work: (fd: number) => T): T {
  const fd = fs.openSync(path, flags, 0o600);
  try {
    return work(fd);
  } finally {
    fs.closeSync(fd);
  }
}

function unlessCode<T>(codes: readonly string[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && codes.includes(String(error.code))) return undefined;
    throw error;
  }
}
