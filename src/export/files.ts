import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline, Readable, type Transform } from 'node:stream';
import { pipeline as finished } from 'node:stream/promises';
import * as zlib from 'node:zlib';
import { systemClock } from '../clock.ts';
import { asError } from '../errors.ts';
import { isThere, makePrivateFolder, openPrivate, WARILY } from '../private-files.ts';
import { FILES_MAX, type Files, isEntryName, SourceError } from '../verify/sources/files.ts';
import * as forms from '../verify/sources/forms.ts';
import * as format from '../verify/sources/zip.ts';

/** The files of a bundle on this machine. */
export interface OpenedFiles extends Files {
  close(): void;
}

/** Opens a folder or a zip by a stranger. Throws a SourceError where it is neither. */
export async function openBundle(path: string): Promise<OpenedFiles> {
  return reading(path, () => fs.lstatSync(path).isDirectory()) ? openFolder(path) : await openZipFile(path);
}

function openFolder(folder: string): OpenedFiles {
  const names: string[] = [];
  reading(folder, () => list(folder, '', names));
  // A file may be endless and take no room on the disk. Those of lines have a bound for a line.
  const beside = names.filter((name) => !forms.OF_LINES.includes(name));
  if (beside.reduce((sum, name) => sum + fs.lstatSync(join(folder, name)).size, 0) > BESIDE_BYTES_MAX)
    throw new SourceError(`the files next to the log take more than ${BESIDE_BYTES_MAX} bytes`);
  return {
    names,
    async *stream(name) {
      try {
        const fd = fs.openSync(join(folder, name), fs.constants.O_RDONLY | WARILY);
        yield* fs.createReadStream('', { fd, highWaterMark: 262_144 });
      } catch (error) {
        throw unreadable(name, error);
      }
    },
    close() {},
  };
}

/** Of the files that are not read line by line: a page, and a few kilobytes for each session. */
const BESIDE_BYTES_MAX = 1_073_741_824;

function list(folder: string, prefix: string, names: string[]): void {
  for (const item of fs.readdirSync(join(folder, prefix), { withFileTypes: true })) {
    const name = `${prefix}${item.name}`;
    if (!isEntryName(name)) throw new SourceError(`${JSON.stringify(name)} does not belong in a bundle`);
    if (names.length >= FILES_MAX) throw new SourceError(`there are more than ${FILES_MAX} files`);
    if (item.isDirectory() && prefix === '') list(folder, `${name}/`, names);
    // A link could lead to any file of the person who verifies, a pipe could never end.
    else if (!item.isFile()) throw new SourceError(`${name} is not a plain file`);
    else names.push(name);
  }
}

async function openZipFile(path: string): Promise<OpenedFiles> {
  const fd = reading(path, () => fs.openSync(path, fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0)));
  try {
    const stat = fs.fstatSync(fd);
    if (!stat.isFile()) throw new SourceError(`${path} is not a plain file`);
    const read = async (from: number, length: number) => {
      const bytes = Buffer.alloc(length);
      const count = reading(path, () => fs.readSync(fd, bytes, 0, length, from));
      return bytes.subarray(0, count);
    };
    const inflated = (from: number, length: number) => {
      const range = { fd, start: from, end: from + length - 1, autoClose: false, highWaterMark: 262_144 };
      return through(fs.createReadStream('', range), zlib.createInflateRaw());
    };
    const files = await format.openZip({ size: stat.size, read, inflated, crc32 });
    return { ...files, close: () => fs.closeSync(fd) };
  } catch (error) {
    fs.closeSync(fd);
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

/** What a file is made of: lines of text, or bytes. */
export type Parts = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

/** Where a bundle is written: a folder, or a zip. Nothing is at the target before everything is. */
export type BundleTarget = Awaited<ReturnType<typeof openTarget>>;

/** Prepares to write a bundle at `path`; a name ending in .zip makes a zip. Refuses to replace anything but a bundle. */
export async function openTarget(path: string) {
  const target = resolve(path);
  await assertReplaceable(target);
  const making = join(dirname(target), `.${basename(target)}.${systemClock.salt()}.new`);
  makePrivateFolder(dirname(target), false);
  let zip = target.endsWith('.zip') ? new ZipWriter(making) : undefined;
  if (zip === undefined) makePrivateFolder(making);
  const sums = new Map<string, string>();

  async function write(name: string, parts: Parts): Promise<void> {
    const hash = createHash('sha256');
    const hashed = async function* () {
      for await (const chunk of chunked(parts)) {
        hash.update(chunk);
        yield chunk;
      }
    };
    const path = join(making, name);
    if (zip === undefined) makePrivateFolder(dirname(path));
    const intoFolder = () => fs.createWriteStream('', { fd: openPrivate(path, 'wx'), flush: true });
    await (zip === undefined ? finished(hashed(), intoFolder()) : zip.add(name, hashed()));
    sums.set(name, hash.digest('hex'));
  }

  return {
    write,
    /** Writes the sums and puts the whole in its place. */
    async finish() {
      await write(forms.SUMS, [forms.formatSums(sums)]);
      zip?.close();
      zip = undefined;
      putInPlace(making, target);
    },
    /** Removes what was written so far. */
    abandon() {
      zip?.abandon();
      fs.rmSync(making, { recursive: true, force: true });
    },
  };
}

/** Lines of text gathered into chunks that are worth a write. */
async function* chunked(parts: Parts, chars = 262_144): AsyncGenerator<Buffer> {
  let text = '';
  for await (const part of parts) {
    if (typeof part === 'string') text += part;
    else yield Buffer.from(part);
    if (text.length < chars) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}

/** Nothing, an empty folder, or a bundle of ours may stand where a bundle goes. */
async function assertReplaceable(target: string): Promise<void> {
  if (!isThere(target)) return;
  if (fs.lstatSync(target).isDirectory() && fs.readdirSync(target).length === 0) return;
  // Whatever cannot be opened as a bundle is something else, and stays.
  const opened = await openBundle(target).catch(() => undefined);
  opened?.close();
  if (opened === undefined || ![forms.MARKER, forms.SUMS].every((name) => opened.names.includes(name)))
    throw new Error(
      `${target} exists and is not a bundle, so it was not overwritten. Name another file or folder with -o.`,
    );
}

function putInPlace(made: string, target: string): void {
  const old = `${made}.old`;
  const replaced = fs.existsSync(target);
  if (replaced) fs.renameSync(target, old);
  fs.renameSync(made, target);
  if (replaced) fs.rmSync(old, { recursive: true, force: true });
}

/** Beyond this a zip needs its 64-bit extension, which this writer leaves out. */
const BYTES_MAX = 0xffffffff;

/** Writes a zip one entry after the other; holds an open file and a chunk, whatever the size. */
export class ZipWriter {
  readonly #fd: number;
  readonly #entries: format.Entry[] = [];
  #at = 0;

  constructor(path: string) {
    this.#fd = openPrivate(path, 'wx');
  }

  async add(name: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    if (!isEntryName(name)) throw new Error(`${JSON.stringify(name)} is not a name for a file in a bundle`);
    const offset = this.#at;
    let crc = 0;
    let size = 0;
    const measured = async function* () {
      for await (const chunk of chunks) {
        crc = crc32(chunk, crc);
        size += chunk.length;
        yield chunk;
      }
    };
    this.#at += format.localHeader({ name, crc, packed: 0, size }).length;
    const begun = this.#at;
    for await (const packed of through(Readable.from(measured()), zlib.createDeflateRaw()))
      this.#append(packed);
    const entry = { name, crc, packed: this.#at - begun, size, offset };
    if (size > BYTES_MAX || this.#at > BYTES_MAX || this.#entries.length === format.ENTRIES_MAX)
      throw new Error('The bundle is too large for one zip. Export it as a folder.');
    // Written last, because only now the sizes are known: no entry needs a trailer that a reader must guess.
    writeFully(this.#fd, format.localHeader(entry), offset);
    this.#entries.push(entry);
  }

  close(): void {
    this.#append(format.directoryOf(this.#entries, this.#at));
    fs.closeSync(this.#fd);
  }

  /** Gives up. The file is left for the caller to remove. */
  abandon(): void {
    fs.closeSync(this.#fd);
  }

  #append(bytes: Uint8Array): void {
    writeFully(this.#fd, bytes, this.#at);
    this.#at += bytes.length;
  }
}

function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += fs.writeSync(fd, bytes, done, bytes.length - done, position + done);
}

/** Errors of the source and of the transform both end the iteration that the caller is in. */
function through(source: Readable, transform: Transform): AsyncIterable<Uint8Array> {
  return pipeline(source, transform, () => undefined);
}

/** Node before 20.15 has none of its own; its own does 3 GB/s, the table 0.4. */
export const crc32 = zlib.crc32 ?? format.crc32;
