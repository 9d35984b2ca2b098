// The bytes of a zip as Colibri writes them. The writer puts these headers down and the reader compares with them.

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
export const LOCAL_BYTES = 30;
export const CENTRAL_BYTES = 46;
export const END_BYTES = 22;
const DEFLATE = 8;
/** Version 2.0 of the format, made on Unix, so that the file mode is read. */
const VERSION = 20;
const MADE_BY = 0x0300 | VERSION;
const PRIVATE_FILE = 0o100600 * 0x10000;
/** The first day the format knows: the same contents make the same zip. */
const NO_DATE = 0x0021;

/** Audit rows shrink about tenfold; Deflate itself cannot do more than 1,032. */
export const RATIO_MAX = 200;
export const RATIO_FREE_BYTES = 1_048_576;

export interface Entry {
  readonly name: string;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  /** Where its local header begins. */
  readonly offset: number;
}

export function localHeader({ name, crc, packed, size }: Entry): Uint8Array {
  const [bytes, view] = header(LOCAL_BYTES, name);
  view.setUint32(0, LOCAL, true);
  view.setUint16(4, VERSION, true);
  setCommon(view, 6, { crc, packed, size, name });
  return bytes;
}

export function centralHeader({ name, crc, packed, size, offset }: Entry): Uint8Array {
  const [bytes, view] = header(CENTRAL_BYTES, name);
  view.setUint32(0, CENTRAL, true);
  view.setUint16(4, MADE_BY, true);
  view.setUint16(6, VERSION, true);
  setCommon(view, 8, { crc, packed, size, name });
  view.setUint32(38, PRIVATE_FILE, true);
  view.setUint32(42, offset, true);
  return bytes;
}

export function endRecord(count: number, bytes: number, start: number): Uint8Array {
  const end = new Uint8Array(END_BYTES);
  const view = new DataView(end.buffer);
  view.setUint32(0, END, true);
  view.setUint16(8, count, true);
  view.setUint16(10, count, true);
  view.setUint32(12, bytes, true);
  view.setUint32(16, start, true);
  return end;
}

/** What the last bytes of a zip say of its directory. */
export function readEnd(end: Uint8Array): {
  readonly count: number;
  readonly bytes: number;
  readonly start: number;
} {
  const view = viewOf(end);
  return {
    count: view.getUint16(10, true),
    bytes: view.getUint32(12, true),
    start: view.getUint32(16, true),
  };
}

/** The entry that begins at a place of the directory, and where it ends. Undefined where the directory ends first. */
export function readCentral(
  directory: Uint8Array,
  at: number,
  offset: number,
): { readonly entry: Entry; readonly end: number } | undefined {
  if (at + CENTRAL_BYTES > directory.length) return undefined;
  const view = viewOf(directory);
  const end = at + CENTRAL_BYTES + view.getUint16(at + 28, true);
  const name = String.fromCharCode(...directory.subarray(at + CENTRAL_BYTES, Math.min(end, at + NAME_MAX)));
  const entry = {
    name,
    crc: view.getUint32(at + 16, true),
    packed: view.getUint32(at + 20, true),
    size: view.getUint32(at + 24, true),
    offset,
  };
  return { entry, end };
}

/** Longer than any name that is allowed, and short enough to be spread. */
const NAME_MAX = 1_000;

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
