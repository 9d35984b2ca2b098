/// <reference lib="dom" />
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
} from '../../../export/zip-format.ts';
import { BundleError, type Files } from './files.ts';

interface Entry {
  readonly name: string;
  readonly crc: number;
  readonly size: number;
  readonly packed: Uint8Array<ArrayBuffer>;
}

/**
 * Reads a zip by a stranger, and only one as Colibri makes them: entries back to back from the first byte, each
 * described the same way twice. So nobody else's program can find other files in it than this one.
 */
export async function readZip(zip: Uint8Array<ArrayBuffer>): Promise<Files> {
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const entry of readDirectory(zip)) {
    if (files.has(entry.name)) throw new BundleError(`The zip holds ${entry.name} twice.`);
    files.set(entry.name, await inflate(entry));
  }
  return files;
}

function readDirectory(zip: Uint8Array<ArrayBuffer>): Entry[] {
  const view = new DataView(zip.buffer, zip.byteOffset, zip.byteLength);
  const end = zip.length - END_BYTES;
  if (end < 0 || view.getUint32(end, true) !== END)
    throw new BundleError('This is no zip as Colibri writes them, or its end is cut off or damaged.');
  const count = view.getUint16(end + 10, true);
  const start = view.getUint32(end + 16, true);
  if (start + view.getUint32(end + 12, true) !== end || view.getUint16(end + 20, true) !== 0)
    throw new BundleError('The end of the zip is damaged, or the file goes on behind it.');
  const entries: Entry[] = [];
  let at = start;
  let offset = 0;
  for (let i = 0; i < count; i += 1) {
    const entry = readEntry(zip, view, at, offset, end);
    entries.push(entry);
    at += CENTRAL_BYTES + entry.name.length;
    offset += LOCAL_BYTES + entry.name.length + entry.packed.length;
  }
  if (at !== end || offset !== start)
    throw new BundleError('The zip holds something its directory leaves out.');
  return entries;
}

function readEntry(
  zip: Uint8Array<ArrayBuffer>,
  view: DataView,
  at: number,
  offset: number,
  end: number,
): Entry {
  if (at + CENTRAL_BYTES > end || view.getUint32(at, true) !== CENTRAL)
    throw new BundleError('The directory of the zip is damaged.');
  const nameLength = view.getUint16(at + 28, true);
  const name = latin1(zip.subarray(at + CENTRAL_BYTES, at + CENTRAL_BYTES + nameLength));
  if (!isEntryName(name)) throw new BundleError(`${JSON.stringify(name)} does not belong in a bundle.`);
  const [crc, packed, size] = [
    view.getUint32(at + 16, true),
    view.getUint32(at + 20, true),
    view.getUint32(at + 24, true),
  ];
  const body = offset + LOCAL_BYTES + nameLength;
  const isPlain =
    view.getUint16(at + 8, true) === 0 &&
    view.getUint16(at + 10, true) === DEFLATE &&
    view.getUint32(at + 30, true) === 0 &&
    view.getUint32(at + 42, true) === offset;
  if (!isPlain || body + packed > end || !isSameTwice(view, at, offset, nameLength))
    throw new BundleError(
      `${name} is not packed as Colibri packs. Unpack the zip with another program and choose the folder.`,
    );
  if (latin1(zip.subarray(offset + LOCAL_BYTES, body)) !== name)
    throw new BundleError(`${name} has two names.`);
  if (size > RATIO_FREE_BYTES + RATIO_MAX * packed)
    throw new BundleError(`${name} would grow more than ${RATIO_MAX}-fold: refused as a zip bomb.`);
  return { name, crc, size, packed: zip.subarray(body, body + packed) };
}

/** Flags to name length stand in both headers; the local one has no extra field. */
function isSameTwice(view: DataView, at: number, offset: number, nameLength: number): boolean {
  if (view.getUint32(offset, true) !== LOCAL || view.getUint16(offset + 28, true) !== 0) return false;
  for (let i = 0; i < 22; i += 2)
    if (view.getUint16(at + 8 + i, true) !== view.getUint16(offset + 6 + i, true)) return false;
  return view.getUint16(offset + 26, true) === nameLength;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, 1_000));
}

async function inflate({ name, crc, size, packed }: Entry): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(size);
  let at = 0;
  try {
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const reader = stream.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (at + part.value.length > size) throw new Error('too long');
      bytes.set(part.value, at);
      at += part.value.length;
    }
  } catch (cause) {
    throw new BundleError(`${name} cannot be unpacked.`, { cause });
  }
  if (at !== size || crc32(bytes) !== crc)
    throw new BundleError(`${name} is not what the zip's directory says.`);
  return bytes;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

function crc32(bytes: Uint8Array): number {
  let crc = ~0;
  // Counting, not iterating: four times as fast over the tens of megabytes of a log.
  for (let i = 0; i < bytes.length; i += 1) crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[i]!) & 0xff]!;
  return ~crc >>> 0;
}
