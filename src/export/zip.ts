import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { pipeline, Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import {
  CENTRAL,
  CENTRAL_BYTES,
  DEFLATE,
  END,
  END_BYTES,
  isEntryName,
  LOCAL,
  LOCAL_BYTES,
  RATIO_FREE_BYTES,
  RATIO_MAX,
} from './zip-format.ts';

/** Says why a zip is not one that may be read. */
export class ZipError extends Error {
  override readonly name = 'ZipError';
}

/** Version 2.0 of the format, made on Unix, so that the file mode is read. */
const VERSION = 20;
const MADE_BY = 0x0300 | VERSION;
const PRIVATE_FILE = 0o100600 * 0x10000;
/** The first day the format knows: the same contents make the same zip. */
const NO_DATE = 0x0021;
/** Beyond these a zip needs its 64-bit extension, which this writer leaves out. */
const BYTES_MAX = 0xffffffff;
const ENTRIES_MAX = 0xffff;
const CHUNK_BYTES = 262_144;

interface Entry {
  readonly name: string;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  readonly offset: number;
}

/** Writes a zip one entry after the other; holds an open file and a chunk, whatever the size. */
export class ZipWriter {
  readonly #fd: number;
  readonly #entries: Entry[] = [];
  #at = 0;

  constructor(path: string) {
    this.#fd = openSync(path, 'wx', 0o600);
  }

  async add(name: string, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    if (!isEntryName(name)) throw new ZipError(`${JSON.stringify(name)} is no name for a file in a bundle`);
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
    this.#at += LOCAL_BYTES + name.length;
    const begun = this.#at;
    for await (const packed of through(measured(), zlib.createDeflateRaw())) this.#append(packed);
    const entry = { name, crc, packed: this.#at - begun, size, offset };
    if (size > BYTES_MAX || this.#at > BYTES_MAX || this.#entries.length === ENTRIES_MAX)
      throw new ZipError('the bundle is too large for one zip; export it as a folder');
    // Written last, because only now the sizes are known: no entry needs a trailer that a reader must guess.
    writeFully(this.#fd, localHeader(entry), offset);
    this.#entries.push(entry);
  }

  close(): void {
    const start = this.#at;
    for (const entry of this.#entries) this.#append(centralHeader(entry));
    this.#append(endRecord(this.#entries.length, this.#at - start, start));
    closeSync(this.#fd);
  }

  /** Gives up. The file is left for the caller to remove. */
  abandon(): void {
    closeSync(this.#fd);
  }

  #append(bytes: Buffer): void {
    writeFully(this.#fd, bytes, this.#at);
    this.#at += bytes.length;
  }
}

/**
 * Reads a zip by a stranger, and only one as `ZipWriter` makes it: entries back to back from the first byte, each
 * described the same way twice, nothing before, between or behind them.
 */
export class ZipReader {
  readonly names: ReadonlySet<string>;
  readonly #fd: number;
  readonly #entries: ReadonlyMap<string, Entry>;

  constructor(path: string) {
    this.#fd = openSync(path, 'r');
    try {
      this.#entries = readDirectory(this.#fd, fstatSync(this.#fd).size);
      this.names = new Set(this.#entries.keys());
    } catch (error) {
      closeSync(this.#fd);
      throw error;
    }
  }

  size(name: string): number {
    return this.#entries.get(name)?.size ?? 0;
  }

  /** The bytes of an entry. Throws where they are not as many, or not those, that the directory promised. */
  async *stream(name: string): AsyncGenerator<Buffer> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new ZipError(`the zip has no ${name}`);
    let crc = 0;
    let size = 0;
    try {
      const packed = readRange(this.#fd, entry.offset + LOCAL_BYTES + name.length, entry.packed);
      for await (const chunk of through(packed, zlib.createInflateRaw())) {
        size += chunk.length;
        if (size > entry.size) break;
        crc = crc32(chunk, crc);
        yield chunk;
      }
    } catch (error) {
      throw error instanceof ZipError ? error : new ZipError(`${name} cannot be unpacked`, { cause: error });
    }
    if (size !== entry.size || crc !== entry.crc)
      throw new ZipError(`${name} is not what the zip's directory says`);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function readDirectory(fd: number, fileSize: number): ReadonlyMap<string, Entry> {
  const end = readAt(fd, fileSize - END_BYTES, END_BYTES, fileSize);
  const count = end.readUInt16LE(10);
  const [bytes, start] = [end.readUInt32LE(12), end.readUInt32LE(16)];
  if (!end.equals(endRecord(count, bytes, start)) || start + bytes + END_BYTES !== fileSize)
    throw new ZipError('the end of the zip is damaged, or the file goes on behind it');
  const directory = readAt(fd, start, bytes, fileSize);
  const entries = new Map<string, Entry>();
  let at = 0;
  let offset = 0;
  for (let i = 0; i < count; i += 1) {
    const entry = readEntry(directory, at, offset);
    if (entries.has(entry.name)) throw new ZipError(`the zip holds ${entry.name} twice`);
    const local = readAt(fd, offset, LOCAL_BYTES + entry.name.length, start);
    if (!local.equals(localHeader(entry))) throw new ZipError(`${entry.name} is described in two ways`);
    entries.set(entry.name, entry);
    at += CENTRAL_BYTES + entry.name.length;
    offset += LOCAL_BYTES + entry.name.length + entry.packed;
  }
  if (at !== bytes || offset !== start)
    throw new ZipError('the zip holds something its directory leaves out');
  return entries;
}

function readEntry(directory: Buffer, at: number, offset: number): Entry {
  if (at + CENTRAL_BYTES > directory.length) throw new ZipError('the directory of the zip is cut off');
  const nameEnd = at + CENTRAL_BYTES + directory.readUInt16LE(at + 28);
  const name = directory.toString('latin1', at + CENTRAL_BYTES, nameEnd);
  // A name that leads out of the folder ends here, before anything is opened under it.
  if (!isEntryName(name)) throw new ZipError(`${JSON.stringify(name)} is no name for a file in a bundle`);
  const entry: Entry = {
    name,
    crc: directory.readUInt32LE(at + 16),
    packed: directory.readUInt32LE(at + 20),
    size: directory.readUInt32LE(at + 24),
    offset,
  };
  if (!directory.subarray(at, nameEnd).equals(centralHeader(entry)))
    throw new ZipError(
      `${name} is not packed as Colibri packs; unpack the zip with another program and verify the folder`,
    );
  if (entry.size > RATIO_FREE_BYTES + RATIO_MAX * entry.packed)
    throw new ZipError(`${name} would grow more than ${RATIO_MAX}-fold: refused as a zip bomb`);
  return entry;
}

function localHeader({ name, crc, packed, size }: Entry): Buffer {
  const header = Buffer.alloc(LOCAL_BYTES + name.length);
  header.writeUInt32LE(LOCAL, 0);
  header.writeUInt16LE(VERSION, 4);
  writeCommon(header, 6, { crc, packed, size, name });
  header.write(name, LOCAL_BYTES, 'latin1');
  return header;
}

function centralHeader({ name, crc, packed, size, offset }: Entry): Buffer {
  const header = Buffer.alloc(CENTRAL_BYTES + name.length);
  header.writeUInt32LE(CENTRAL, 0);
  header.writeUInt16LE(MADE_BY, 4);
  header.writeUInt16LE(VERSION, 6);
  writeCommon(header, 8, { crc, packed, size, name });
  header.writeUInt32LE(PRIVATE_FILE, 38);
  header.writeUInt32LE(offset, 42);
  header.write(name, CENTRAL_BYTES, 'latin1');
  return header;
}

/** The fields both headers share, from the flags to the length of the name. */
function writeCommon(header: Buffer, at: number, entry: Omit<Entry, 'offset'>): void {
  header.writeUInt16LE(DEFLATE, at + 2);
  header.writeUInt16LE(NO_DATE, at + 6);
  header.writeUInt32LE(entry.crc, at + 8);
  header.writeUInt32LE(entry.packed, at + 12);
  header.writeUInt32LE(entry.size, at + 16);
  header.writeUInt16LE(entry.name.length, at + 20);
}

function endRecord(count: number, bytes: number, start: number): Buffer {
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(END, 0);
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(bytes, 12);
  end.writeUInt32LE(start, 16);
  return end;
}

/** Errors of the source and of the transform both end the iteration that the caller is in. */
function through(
  source: Iterable<Buffer> | AsyncIterable<Buffer>,
  transform: Transform,
): AsyncIterable<Buffer> {
  return pipeline(Readable.from(source), transform, () => undefined);
}

function* readRange(fd: number, from: number, length: number): Generator<Buffer> {
  for (let at = 0; at < length; at += CHUNK_BYTES)
    yield readAt(fd, from + at, Math.min(CHUNK_BYTES, length - at), from + length);
}

function readAt(fd: number, position: number, length: number, end: number): Buffer {
  if (position < 0 || position + length > end) throw new ZipError('the zip is cut off');
  const bytes = Buffer.alloc(length);
  if (readSync(fd, bytes, 0, length, position) !== length) throw new ZipError('the zip is cut off');
  return bytes;
}

export function writeFully(fd: number, bytes: Buffer, position: number | null): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done);
}

/** The CRC-32 of more bytes behind those that gave `before`. */
export const crc32: (bytes: Uint8Array, before: number) => number =
  // Node before 20.15 has none of its own; its own does 3 GB/s, the table 0.4.
  typeof zlib.crc32 === 'function' ? zlib.crc32 : crc32ByTable;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

export function crc32ByTable(bytes: Uint8Array, before: number): number {
  let crc = ~before;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff]!;
  return ~crc >>> 0;
}
