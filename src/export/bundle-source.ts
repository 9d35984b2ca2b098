import { createReadStream, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { asError } from '../errors.ts';
import { ZipReader } from './zip.ts';
import { isEntryName } from './zip-format.ts';

/** The files of a bundle, wherever they lie. */
export interface BundleSource {
  readonly names: ReadonlySet<string>;
  size(name: string): number;
  stream(name: string): AsyncIterable<Buffer>;
  close(): void;
}

/** Says why something is no bundle that may be read. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** How many files a bundle may have. One session has a proof a row; a whole log a few files a session. */
const FILES_MAX = 2_000_000;

/** Opens a folder or a zip by a stranger. Names are checked before anything is opened under them. */
export function openBundle(path: string): BundleSource {
  let isFolder: boolean;
  try {
    isFolder = lstatSync(path).isDirectory();
  } catch (thrown) {
    throw new SourceError(`${path} cannot be read: ${asError(thrown).message}`);
  }
  return isFolder ? openFolder(path) : new ZipReader(path);
}

/** Reads a small file whole; undefined where it is absent. */
export async function readSmall(
  source: BundleSource,
  name: string,
  bytesMax: number,
): Promise<Buffer | undefined> {
  if (!source.names.has(name)) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source.stream(name)) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new SourceError(`${name} is larger than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function openFolder(folder: string): BundleSource {
  const sizes = new Map<string, number>();
  list(folder, '', sizes);
  return {
    names: new Set(sizes.keys()),
    size: (name) => sizes.get(name) ?? 0,
    stream: (name) => createReadStream(join(folder, name), { highWaterMark: 262_144 }),
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
