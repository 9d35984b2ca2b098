import { FILES_MAX, type Files, isEntryName, SourceError } from './files.ts';
import * as format from './zip-format.ts';

/** Bytes that can be read anywhere: a file on disk, a file in a browser. */
export interface RandomBytes {
  readonly size: number;
  /** Exactly these bytes; fewer only at the end. */
  read(from: number, length: number): Promise<Uint8Array>;
}

/** What Node and a browser do in different ways. */
export interface Unpacker {
  /** Undoes Deflate without any header. */
  inflate(packed: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** The CRC-32 of more bytes behind those that gave `before`. */
  crc32?(bytes: Uint8Array, before: number): number;
}

const CHUNK_BYTES = 262_144;

/**
 * Opens a zip by a stranger, and only one as Colibri makes them: entries back to back from the first byte, each described
 * the same way twice, nothing before, between or behind them. So no other program finds other files in it than this one.
 */
export async function openZip(zip: RandomBytes, unpacker: Unpacker): Promise<Files> {
  const entries = await readDirectory(zip);
  return {
    names: [...entries.keys()],
    size: (name) => entries.get(name)?.size ?? 0,
    stream(name) {
      const entry = entries.get(name);
      if (entry === undefined) throw new SourceError(`the zip has no ${name}`);
      return unpack(zip, entry, unpacker);
    },
  };
}

/** The bytes of an entry. Throws where they are not as many, or not those, that the directory promised. */
async function* unpack(
  zip: RandomBytes,
  { name, offset, packed, size, crc }: format.Entry,
  { inflate, crc32 = format.crc32 }: Unpacker,
): AsyncGenerator<Uint8Array> {
  let actual = 0;
  let sum = 0;
  try {
    for await (const chunk of inflate(readRange(zip, offset + format.LOCAL_BYTES + name.length, packed))) {
      actual += chunk.length;
      if (actual > size) break;
      sum = crc32(chunk, sum);
      yield chunk;
    }
  } catch (cause) {
    throw cause instanceof SourceError ? cause : new SourceError(`${name} cannot be unpacked`, { cause });
  }
  if (actual !== size || sum !== crc) throw new SourceError(`${name} is not what the zip's directory says`);
}

async function* readRange(zip: RandomBytes, from: number, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < length; at += CHUNK_BYTES)
    yield await readAt(zip, from + at, Math.min(CHUNK_BYTES, length - at), from + length);
}

async function readAt(zip: RandomBytes, from: number, length: number, end: number): Promise<Uint8Array> {
  if (from < 0 || from + length > end) throw new SourceError('the zip is cut off');
  const bytes = await zip.read(from, length);
  if (bytes.length !== length) throw new SourceError('the zip is cut off');
  return bytes;
}

async function readDirectory(zip: RandomBytes): Promise<ReadonlyMap<string, format.Entry>> {
  const end = await readAt(zip, zip.size - format.END_BYTES, format.END_BYTES, zip.size);
  const { count, bytes, start } = format.readEnd(end);
  if (
    !isSame(end, format.endRecord(count, bytes, start)) ||
    start + bytes + format.END_BYTES !== zip.size ||
    count > FILES_MAX
  )
    throw new SourceError('the end of the zip is damaged, or the file goes on behind it');
  const directory = await readAt(zip, start, bytes, zip.size);
  const entries = new Map<string, format.Entry>();
  let at = 0;
  let offset = 0;
  for (let i = 0; i < count; i += 1) {
    const entry = readEntry(directory, at, offset);
    if (entries.has(entry.name)) throw new SourceError(`the zip holds ${entry.name} twice`);
    const local = await readAt(zip, offset, format.LOCAL_BYTES + entry.name.length, start);
    if (!isSame(local, format.localHeader(entry)))
      throw new SourceError(`${entry.name} is described in two ways`);
    entries.set(entry.name, entry);
    at += format.CENTRAL_BYTES + entry.name.length;
    offset += format.LOCAL_BYTES + entry.name.length + entry.packed;
  }
  if (at !== bytes || offset !== start)
    throw new SourceError('the zip holds something its directory leaves out');
  return entries;
}

function readEntry(directory: Uint8Array, at: number, offset: number): format.Entry {
  const found = format.readCentral(directory, at, offset);
  if (found === undefined) throw new SourceError('the directory of the zip is cut off');
  const { entry, end } = found;
  // A name that leads out of the folder ends here, before anything is opened under it.
  if (!isEntryName(entry.name))
    throw new SourceError(`${JSON.stringify(entry.name)} is no name for a file in a bundle`);
  if (!isSame(directory.subarray(at, end), format.centralHeader(entry)))
    throw new SourceError(
      `${entry.name} is not packed as Colibri packs; unpack the zip with another program and verify the folder`,
    );
  if (entry.size > format.RATIO_FREE_BYTES + format.RATIO_MAX * entry.packed)
    throw new SourceError(
      `${entry.name} would grow more than ${format.RATIO_MAX}-fold: refused as a zip bomb`,
    );
  return entry;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
