import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync, constants as zlib } from 'node:zlib';
import { type OpenFile, withFile } from './git-files.ts';
import { kindInPack, type ObjectKind, offsetsOf, readPackIndex } from './git-pack.ts';

/** Where a repository keeps its objects, and how long their ids are. */
export interface ObjectStore {
  readonly folder: string;
  readonly idBytes: number;
}

/** Packs looked through for one id, at 13 µs each. Git gathers them into one when there are 50. */
const PACKS_MAX = 128;

/** Whether there is a commit whose id begins so. Undefined where not all objects could be looked at. */
export function hasCommit(store: ObjectStore, idStart: string): boolean | undefined {
  let certain = true;
  for (const kinds of [looseKinds(store, idStart), packedKinds(store, idStart)]) {
    for (const kind of kinds) {
      if (kind === 'commit') return true;
      if (kind === 'unknown') certain = false;
    }
  }
  return certain ? false : undefined;
}

function* looseKinds({ folder, idBytes }: ObjectStore, idStart: string): Generator<ObjectKind> {
  const fan = join(folder, idStart.slice(0, 2));
  const rest = idStart.slice(2);
  const isWhole = idStart.length === idBytes * 2;
  for (const name of isWhole ? [rest] : namesIn(fan)) {
    const kind = name.startsWith(rest) ? withFile(join(fan, name), looseKind) : undefined;
    if (kind !== undefined) yield kind;
  }
}

/** A loose object is a compressed `commit 231`, a NUL and the rest; its first bytes are enough. */
function looseKind(file: OpenFile): ObjectKind {
  const head = inflateSync(file.read(0, 64), { finishFlush: zlib.Z_SYNC_FLUSH });
  return head.toString('latin1', 0, 7) === 'commit ' ? 'commit' : 'other';
}

function* packedKinds(store: ObjectStore, idStart: string): Generator<ObjectKind> {
  const packs = join(store.folder, 'pack');
  const indexes = namesIn(packs).filter((name) => name.endsWith('.idx'));
  if (indexes.length > PACKS_MAX) yield 'unknown';
  for (const name of indexes.slice(0, PACKS_MAX)) {
    const pack = join(packs, `${name.slice(0, -'.idx'.length)}.pack`);
    yield* withFile(join(packs, name), (file) => kindsInPack(file, pack, store.idBytes, idStart)) ?? [];
  }
}

function kindsInPack(file: OpenFile, pack: string, idBytes: number, idStart: string): readonly ObjectKind[] {
  const index = readPackIndex(file, idBytes);
  if (index === undefined) return ['unknown'];
  const offsets = offsetsOf(index, idStart);
  if (offsets.length === 0) return [];
  return (
    withFile(pack, (packed) => offsets.map((offset) => kindInPack(packed, index, offset))) ?? ['unknown']
  );
}

function namesIn(folder: string): readonly string[] {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : [];
}
