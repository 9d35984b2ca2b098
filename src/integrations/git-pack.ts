import type { OpenFile } from './git-files.ts';

/** What an object is, as far as this matters here. */
export type ObjectKind = 'commit' | 'other' | 'unknown';

/** An open `.idx` of version 2: a table of counts by first byte, then ids, checksums and offsets, all in the ids' order. */
export interface PackIndex {
  readonly file: OpenFile;
  readonly idBytes: number;
  readonly fanOut: Buffer;
  readonly count: number;
}

const MAGIC_AND_VERSION = 'ff744f6300000002';
const FAN_OUT_AT = 8;
const IDS_AT = FAN_OUT_AT + 256 * 4;
const CHECKSUM_BYTES = 4;
const OFFSET_BYTES = 4;
/** Objects that share the start of an id; with seven digits two already are an accident. */
const MATCHES_MAX = 16;
/** Git builds rows of at most 50 deltas unless told otherwise. */
const DELTAS_MAX = 256;

/** The head of an index, or nothing for a file that cannot be one of this version and size. */
export function readPackIndex(file: OpenFile, idBytes: number): PackIndex | undefined {
  const head = file.read(0, IDS_AT);
  if (head.length < IDS_AT || head.toString('hex', 0, FAN_OUT_AT) !== MAGIC_AND_VERSION) return undefined;
  const fanOut = head.subarray(FAN_OUT_AT);
  const count = fanOut.readUInt32BE(255 * 4);
  const bytesMin = IDS_AT + count * (idBytes + CHECKSUM_BYTES + OFFSET_BYTES) + 2 * idBytes;
  return file.bytes < bytesMin ? undefined : { file, idBytes, fanOut, count };
}

/** Where the objects whose ids begin so stand in the pack. */
export function offsetsOf(index: PackIndex, idStart: string): readonly number[] {
  const first = Number.parseInt(idStart.slice(0, 2), 16);
  const end = index.fanOut.readUInt32BE(first * 4);
  let low = first === 0 ? 0 : index.fanOut.readUInt32BE((first - 1) * 4);
  let high = end;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (idAt(index, middle) < idStart) low = middle + 1;
    else high = middle;
  }
  const offsets: number[] = [];
  while (low < end && offsets.length < MATCHES_MAX && idAt(index, low).startsWith(idStart)) {
    offsets.push(offsetAt(index, low));
    low += 1;
  }
  return offsets;
}

/** What the object at a place of the pack is. A delta is what its base is. */
export function kindInPack(pack: OpenFile, index: PackIndex, offset: number): ObjectKind {
  let at: number | undefined = offset;
  for (let hop = 0; hop < DELTAS_MAX && at !== undefined && at > 0; hop += 1) {
    const head = pack.read(at, 64);
    const type = ((head[0] ?? 0) >> 4) & 7;
    if (type === TYPE.commit) return 'commit';
    if (type === TYPE.tree || type === TYPE.blob || type === TYPE.tag) return 'other';
    const base = afterSize(head);
    if (type === TYPE.deltaByOffset) at -= readDistance(head, base);
    else if (type === TYPE.deltaById)
      at = offsetsOf(index, head.toString('hex', base, base + index.idBytes))[0];
    else return 'unknown';
  }
  return 'unknown';
}

const TYPE = { commit: 1, tree: 2, blob: 3, tag: 4, deltaByOffset: 6, deltaById: 7 };

function idAt({ file, idBytes }: PackIndex, position: number): string {
  return file.read(IDS_AT + position * idBytes, idBytes).toString('hex');
}

function offsetAt({ file, idBytes, count }: PackIndex, position: number): number {
  const offsetsAt = IDS_AT + count * (idBytes + CHECKSUM_BYTES);
  const offset = file.read(offsetsAt + position * OFFSET_BYTES, OFFSET_BYTES).readUInt32BE();
  if (offset < 0x8000_0000) return offset;
  // Packs of more than 2 GB have a second table with wider offsets.
  const wideAt = offsetsAt + count * OFFSET_BYTES + (offset - 0x8000_0000) * 8;
  return Number(file.read(wideAt, 8).readBigUInt64BE());
}

/** The place after the type and the size: the top bit of a byte says that one more follows. */
function afterSize(head: Buffer): number {
  let at = 0;
  while (((head[at] ?? 0) & 0x80) !== 0) at += 1;
  return at + 1;
}

/** How far before the delta its base stands. */
function readDistance(head: Buffer, from: number): number {
  let at = from;
  let byte = head[at] ?? 0;
  let distance = byte & 0x7f;
  while ((byte & 0x80) !== 0 && at < head.length) {
    at += 1;
    byte = head[at] ?? 0;
    distance = (distance + 1) * 128 + (byte & 0x7f);
  }
  // A distance of nothing would be an object that is its own base.
  return distance === 0 ? Number.POSITIVE_INFINITY : distance;
}
