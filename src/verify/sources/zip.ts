import { FILES_MAX, type Files, isEntryName, SourceError } from './files.ts';

// The bytes of a zip as Colibri writes them: entries back to back, a directory that says of each the same again, an end.
// The writer puts these headers down, and the reader makes them again and compares.

/** The bytes of a zip: a file on disk, a file in a browser. */
export interface ZipBytes {
  readonly size: number;
  /** Exactly these bytes; fewer only at the end. */
  read(from: number, length: number): Promise<Uint8Array>;
  /** What Deflate, without any header, made these bytes of. */
  inflated(from: number, length: number): AsyncIterable<Uint8Array>;
  /** The CRC-32 of more bytes behind those that gave `before`, where there is one that is faster than ours. */
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

const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;
const DEFLATE = 8;
/** Version 2.0 of the format, made on Unix, so that the file mode is read. */
const VERSION = 20;
const MADE_BY = 0x0300 | VERSION;
const PRIVATE_FILE = 0o100600 * 0x10000;
/** The first day the format knows: the same contents make the same zip. */
const NO_DATE = 0x0021;
/** Audit rows shrink about tenfold; Deflate itself cannot do more than 1,032. */
const RATIO_MAX = 200;
const RATIO_FREE_BYTES = 1_048_576;

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
  const sumOf = zip.crc32 ?? crc32;
  let actual = 0;
  let sum = 0;
  try {
    for await (const chunk of zip.inflated(offset + LOCAL_BYTES + name.length, packed)) {
      actual += chunk.length;
      if (actual > size) break;
      sum = sumOf(chunk, sum);
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
    if (entries.size === FILES_MAX) throw new SourceError(`there are more than ${FILES_MAX} files`);
    entries.set(entry.name, entry);
    offset += LOCAL_BYTES + entry.name.length + entry.packed;
  }
  const directory = directoryOf([...entries.values()], offset);
  if (
    offset + directory.length !== zip.size ||
    !isSame(await readAt(zip, offset, directory.length), directory)
  )
    throw new SourceError(`the directory of the zip says something else than its entries: ${UNPACK}`);
  return entries;
}

const UNPACK = 'if another program packed it, unpack the zip with another program and verify the folder';

async function readEntry(zip: ZipBytes, header: Uint8Array, offset: number): Promise<Entry> {
  const view = viewOf(header);
  const bytes = await readAt(zip, offset + LOCAL_BYTES, Math.min(view.getUint16(26, true), NAME_MAX));
  const name = String.fromCharCode(...bytes);
  // A name that leads out of the folder ends here, before anything is opened under it.
  if (!isEntryName(name)) throw new SourceError(`${JSON.stringify(name)} is no name for a file in a bundle`);
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
  const [bytes, view] = header(LOCAL_BYTES, entry.name);
  view.setUint32(0, LOCAL, true);
  view.setUint16(4, VERSION, true);
  setCommon(view, 6, entry);
  return bytes;
}

/** The directory of entries that end at `start`, and the end of the zip. */
export function directoryOf(entries: readonly Entry[], start: number): Uint8Array {
  const parts = entries.map((entry) => {
    const [bytes, view] = header(CENTRAL_BYTES, entry.name);
    view.setUint32(0, 0x02014b50, true);
    view.setUint16(4, MADE_BY, true);
    view.setUint16(6, VERSION, true);
    setCommon(view, 8, entry);
    view.setUint32(38, PRIVATE_FILE, true);
    view.setUint32(42, entry.offset, true);
    return bytes;
  });
  const [end, view] = header(END_BYTES, '');
  view.setUint32(0, 0x06054b50, true);
  view.setUint16(8, entries.length, true);
  view.setUint16(10, entries.length, true);
  view.setUint32(
    12,
    parts.reduce((sum, { length }) => sum + length, 0),
    true,
  );
  view.setUint32(16, start, true);
  return Buffer.concat([...parts, end]);
}

function header(length: number, name: string): [Uint8Array, DataView] {
  const bytes = new Uint8Array(length + name.length);
  for (let i = 0; i < name.length; i += 1) bytes[length + i] = name.charCodeAt(i);
  return [bytes, viewOf(bytes)];
}

/** The fields both headers share, from the flags to the length of the name. */
function setCommon(view: DataView, at: number, entry: Omit<Entry, 'offset'>): void {
  view.setUint16(at + 2, DEFLATE, true);
  view.setUint16(at + 6, NO_DATE, true);
  view.setUint32(at + 8, entry.crc, true);
  view.setUint32(at + 12, entry.packed, true);
  view.setUint32(at + 16, entry.size, true);
  view.setUint16(at + 20, entry.name.length, true);
}

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
