import { type Files, isEntryName, SourceError } from './files.ts';

// The bytes of a zip as Colibri writes them: entries back to back, a directory that says of each the same again, an end.
// The writer puts these headers down, and the reader makes them again and compares.

/** The bytes of a zip: a file on disk, a file in a browser. */
export interface ZipBytes {
  readonly size: number;
  /** Exactly these bytes; fewer only at the end. */
  read(from: number, length: number): Promise<Uint8Array>;
  /** What Deflate, without any header, made these bytes of. */
  inflated(from: number, length: number): AsyncIterable<Uint8Array>;
  /** A faster one than ours, where there is one. */
  readonly crc32?: typeof crc32;
}

export interface Entry {
  readonly name: string;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  /** Where its local header begins. */
  readonly offset: number;
}

/** More need the 64-bit extension of the format, which Colibri does not write. */
export const ENTRIES_MAX = 0xffff;
const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
const DEFLATE = 8;
/** Version 2.0 of the format, made on Unix, so that the file mode is read. */
const VERSION = 20;
const MADE_BY = 0x0300 | VERSION;
const PRIVATE_FILE = 0o100600 * 0x10000;
/** The first day the format knows: the same contents make the same zip. */
const NO_DATE = 0x0021;
/** Audit rows shrink about tenfold, but texts may repeat themselves; Deflate cannot do more than 1,032. */
const RATIO_MAX = 200;
const RATIO_FREE_BYTES = 64 * 1_048_576;

/**
 * Opens a zip by a stranger, and only one as Colibri makes them: nothing before, between or behind the entries. So no
 * other program finds other files in it than this one.
 */
export async function openZip(zip: ZipBytes): Promise<Files> {
  const entries = await readEntries(zip);
  return {
    names: [...entries.keys()],
    stream(name) {
      const entry = entries.get(name);
      if (entry === undefined) throw new SourceError(`the zip has no ${name}`);
      return unpack(zip, entry);
    },
  };
}

/** The bytes of an entry. Throws where they are not as many, or not those, that its header promised. */
async function* unpack(
  zip: ZipBytes,
  { name, offset, packed, size, crc }: Entry,
): AsyncGenerator<Uint8Array> {
  let actual = 0;
  let sum = 0;
  try {
    for await (const chunk of zip.inflated(offset + LOCAL_BYTES + name.length, packed)) {
      actual += chunk.length;
      if (actual > size) break;
      sum = (zip.crc32 ?? crc32)(chunk, sum);
      yield chunk;
    }
  } catch (cause) {
    throw cause instanceof SourceError ? cause : new SourceError(`${name} cannot be unpacked`, { cause });
  }
  if (actual !== size || sum !== crc) throw new SourceError(`${name} is not what the zip says it is`);
}

async function readAt(zip: ZipBytes, from: number, length: number): Promise<Uint8Array> {
  const bytes = from + length > zip.size ? new Uint8Array() : await zip.read(from, length);
  if (bytes.length !== length) throw new SourceError('the zip is cut off');
  return bytes;
}

/** Goes from entry to entry. Whatever comes behind the last one must be the directory of exactly these, and the end. */
async function readEntries(zip: ZipBytes): Promise<ReadonlyMap<string, Entry>> {
  const entries = new Map<string, Entry>();
  let offset = 0;
  for (;;) {
    const header = await readAt(zip, offset, LOCAL_BYTES);
    if (viewOf(header).getUint32(0, true) !== LOCAL) break;
    const entry = await readEntry(zip, header, offset);
    if (entries.has(entry.name)) throw new SourceError(`the zip holds ${entry.name} twice`);
    if (entries.size === ENTRIES_MAX) throw new SourceError(`there are more than ${ENTRIES_MAX} files`);
    entries.set(entry.name, entry);
    offset += LOCAL_BYTES + entry.name.length + entry.packed;
  }
  const directory = directoryOf([...entries.values()], offset);
  if (
    offset + directory.length !== zip.size ||
    !isSame(await readAt(zip, offset, directory.length), directory)
  )
    throw new SourceError(`the directory of the zip does not match its entries: ${UNPACK}`);
  return entries;
}

const UNPACK = 'if another program made the zip, unpack it with that program and verify the folder';

async function readEntry(zip: ZipBytes, header: Uint8Array, offset: number): Promise<Entry> {
  const view = viewOf(header);
  const bytes = await readAt(zip, offset + LOCAL_BYTES, Math.min(view.getUint16(26, true), NAME_MAX));
  const name = String.fromCharCode(...bytes);
  // A name that leads out of the folder ends here, before anything is opened under it.
  if (!isEntryName(name))
    throw new SourceError(`${JSON.stringify(name)} is not a name for a file in a bundle`);
  const [crc, packed, size] = [14, 18, 22].map((at) => view.getUint32(at, true));
  const entry = { name, crc: crc ?? 0, packed: packed ?? 0, size: size ?? 0, offset };
  if (!isSame(header, localHeader(entry).subarray(0, LOCAL_BYTES)))
    throw new SourceError(`${name} is not packed as Colibri packs: ${UNPACK}`);
  if (entry.size > RATIO_FREE_BYTES + RATIO_MAX * entry.packed)
    throw new SourceError(`${name} would grow more than ${RATIO_MAX}-fold: refused as a zip bomb`);
  return entry;
}

/** Longer than any name that is allowed, and short enough to be spread. */
const NAME_MAX = 1_000;

export function localHeader(entry: Omit<Entry, 'offset'>): Uint8Array {
  return Uint8Array.from([...u32(LOCAL), ...u16(VERSION), ...common(entry), ...Buffer.from(entry.name)]);
}

/** The directory of entries that end at `start`, and the end of the zip. */
export function directoryOf(entries: readonly Entry[], start: number): Uint8Array {
  const parts = entries.map((entry) => {
    const versions = [...u32(0x02014b50), ...u16(MADE_BY), ...u16(VERSION)];
    const place = [...u16(0), ...u16(0), ...u16(0), ...u32(PRIVATE_FILE), ...u32(entry.offset)];
    return Uint8Array.from([...versions, ...common(entry), ...place, ...Buffer.from(entry.name)]);
  });
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  const counts = [...u32(0), ...u16(entries.length), ...u16(entries.length), ...u32(bytes), ...u32(start)];
  return Buffer.concat([...parts, Uint8Array.from([...u32(0x06054b50), ...counts, ...u16(0)])]);
}

/** The fields both headers share, from the flags to the lengths of the name and of extras. */
function common({ name, crc, packed, size }: Omit<Entry, 'offset'>): number[] {
  const about = [...u16(0), ...u16(DEFLATE), ...u16(0), ...u16(NO_DATE)];
  return [...about, ...u32(crc), ...u32(packed), ...u32(size), ...u16(name.length), ...u16(0)];
}

// A zip writes numbers from their lowest byte on.
const u16 = (value: number) => [value & 0xff, (value >>> 8) & 0xff];
const u32 = (value: number) => [...u16(value), ...u16(value >>> 16)];

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** The CRC-32 of more bytes behind those that gave `before`. */
export function crc32(bytes: Uint8Array, before: number): number {
  let crc = ~before;
  // Counting, not iterating: four times as fast over the tens of megabytes of a log.
  for (let i = 0; i < bytes.length; i += 1) crc = (crc >>> 8) ^ (TABLE[(crc ^ (bytes[i] ?? 0)) & 0xff] ?? 0);
  return ~crc >>> 0;
}
