import { closeSync, createReadStream, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { asError } from '../errors.ts';
import { FILES_MAX, type Files, isEntryName, SourceError } from '../verify/sources/files.ts';
import { openZip } from '../verify/sources/zip.ts';
import { NODE_UNPACKER } from './zip.ts';

/** The files of a bundle on this machine. */
export interface OpenedFiles extends Files {
  close(): void;
}

/** Opens a folder or a zip by a stranger. Throws a SourceError where it is neither. */
export async function openBundle(path: string): Promise<OpenedFiles> {
  return reading(path, () => lstatSync(path).isDirectory()) ? openFolder(path) : await openZipFile(path);
}

function openFolder(folder: string): OpenedFiles {
  const sizes = new Map<string, number>();
  reading(folder, () => list(folder, '', sizes));
  return {
    names: [...sizes.keys()],
    size: (name) => sizes.get(name) ?? 0,
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

function list(folder: string, prefix: string, sizes: Map<string, number>): void {
  for (const item of readdirSync(join(folder, prefix), { withFileTypes: true })) {
    const name = `${prefix}${item.name}`;
    if (!isEntryName(name)) throw new SourceError(`${JSON.stringify(name)} does not belong in a bundle`);
    if (sizes.size >= FILES_MAX) throw new SourceError(`there are more than ${FILES_MAX} files`);
    if (item.isDirectory() && prefix === '') list(folder, `${name}/`, sizes);
    // A link could lead to any file of whoever verifies, a pipe could never end.
    else if (!item.isFile()) throw new SourceError(`${name} is not a plain file`);
    else sizes.set(name, lstatSync(join(folder, name)).size);
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
    const files = await openZip({ size: stat.size, read }, NODE_UNPACKER);
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
