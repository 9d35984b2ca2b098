import { closeSync, createReadStream, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createInflateRaw } from 'node:zlib';
import { asError } from '../errors.ts';
import { FILES_MAX, type Files, isEntryName, SourceError } from '../verify/sources/files.ts';
import { openZip } from '../verify/sources/zip.ts';
import { crc32, through } from './zip.ts';

/** The files of a bundle on this machine. */
export interface OpenedFiles extends Files {
  close(): void;
}

/** Opens a folder or a zip by a stranger. Throws a SourceError where it is neither. */
export async function openBundle(path: string): Promise<OpenedFiles> {
  return reading(path, () => lstatSync(path).isDirectory()) ? openFolder(path) : await openZipFile(path);
}

function openFolder(folder: string): OpenedFiles {
  const names: string[] = [];
  reading(folder, () => list(folder, '', names));
  return {
    names,
    async *stream(name) {
      try {
        yield* createReadStream(join(folder, name), { highWaterMark: 262_144 });
      } catch (error) {
        throw unreadable(name, error);
      }
    },
    close() {},
  };
}

function list(folder: string, prefix: string, names: string[]): void {
  for (const item of readdirSync(join(folder, prefix), { withFileTypes: true })) {
    const name = `${prefix}${item.name}`;
    if (!isEntryName(name)) throw new SourceError(`${JSON.stringify(name)} does not belong in a bundle`);
    if (names.length >= FILES_MAX) throw new SourceError(`there are more than ${FILES_MAX} files`);
    if (item.isDirectory() && prefix === '') list(folder, `${name}/`, names);
    // A link could lead to any file of whoever verifies, a pipe could never end.
    else if (!item.isFile()) throw new SourceError(`${name} is not a plain file`);
    else names.push(name);
  }
}

async function openZipFile(path: string): Promise<OpenedFiles> {
  const fd = reading(path, () => openSync(path, 'r'));
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new SourceError(`${path} is not a plain file`);
    const read = async (from: number, length: number) => {
      const bytes = Buffer.alloc(length);
      const count = reading(path, () => readSync(fd, bytes, 0, length, from));
      return bytes.subarray(0, count);
    };
    const inflated = (from: number, length: number) => {
      const range = { fd, start: from, end: from + length - 1, autoClose: false, highWaterMark: 262_144 };
      return through(createReadStream('', range), createInflateRaw());
    };
    const files = await openZip({ size: stat.size, read, inflated, crc32 });
    return { ...files, close: () => closeSync(fd) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** What the system refuses is a matter of the input. */
function reading<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, thrown: unknown): unknown {
  if (thrown instanceof SourceError) return thrown;
  return new SourceError(`${path} cannot be read: ${asError(thrown).message}`, { cause: thrown });
}
