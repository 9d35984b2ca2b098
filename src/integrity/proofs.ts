import { isHash } from './digest.ts';
import { EMPTY_ROOT, nodeHash } from './tree.ts';

/** Where a proof finds its hashes: an array in memory, a table, a tile store. */
export interface NodeReader {
  /** The root of the full subtree over the 2^level leaves that begin at leaf index * 2^level. */
  node(level: number, index: number): string | Promise<string>;
}

/** The hashes that lead from leaf `index` to the root at `size`, the leaf's sibling first (RFC 9162 2.1.3.1). */
export async function inclusionProof(nodes: NodeReader, index: number, size: number) {
  requireCount('index', index, 0, size - 1);
  return hashRanges(nodes, descend(size, index + 1, ({ start, end }) => end - start === 1).siblings);
}

/** The hashes that show the tree at `size1` to be the beginning of the one at `size2` (RFC 9162 2.1.4.1). */
export async function consistencyProof(nodes: NodeReader, size1: number, size2: number) {
  requireCount('size1', size1, 1, size2);
  const { siblings, range } = descend(size2, size1, ({ end }) => end === size1);
  // Where the old tree is itself a subtree of the new one, its root is known and left out.
  return hashRanges(nodes, range.start === 0 ? siblings : [range, ...siblings]);
}

/** The root the tree had when it held `size` leaves. */
export async function rootAt(nodes: NodeReader, size: number): Promise<string> {
  requireCount('size', size, 0, Number.MAX_SAFE_INTEGER);
  return size === 0 ? EMPTY_ROOT : hashRange(nodes, { start: 0, end: size });
}

/** A reader over leaf hashes in memory. It hashes each full subtree once, here. */
export function nodesInMemory(leafHashes: readonly string[]): NodeReader {
  const levels = [leafHashes];
  for (let below = leafHashes; below.length > 1; ) {
    const level: string[] = [];
    for (let i = 0; i + 1 < below.length; i += 2) level.push(nodeHash(below[i]!, below[i + 1]!));
    levels.push(level);
    below = level;
  }
  return {
    node(level, index) {
      const hash = levels[level]?.[index];
      if (hash === undefined) throw new RangeError(`no full subtree at level ${level}, index ${index}`);
      return hash;
    },
  };
}

/** The leaves from `start` up to but not including `end`. */
interface Range {
  readonly start: number;
  readonly end: number;
}

// Goes down from the root towards the leaf before `target`, keeping what it passes by, the deepest first.
function descend(size: number, target: number, arrived: (range: Range) => boolean) {
  const siblings: Range[] = [];
  let range: Range = { start: 0, end: size };
  while (!arrived(range)) {
    const middle = range.start + splitPoint(range.end - range.start);
    const left: Range = { start: range.start, end: middle };
    const right: Range = { start: middle, end: range.end };
    siblings.unshift(target <= middle ? right : left);
    range = target <= middle ? left : right;
  }
  return { siblings, range };
}

/** The largest power of two below `count`, which must be at least 2. Sizes outgrow 32 bits: no shifting. */
function splitPoint(count: number): number {
  let power = 1;
  while (power * 2 < count) power *= 2;
  return power;
}

async function hashRanges(nodes: NodeReader, ranges: readonly Range[]): Promise<readonly string[]> {
  const hashes: string[] = [];
  for (const range of ranges) hashes.push(await hashRange(nodes, range));
  return hashes;
}

// A range of the tree is a row of ever smaller full subtrees: one for each bit set in its length.
async function hashRange(nodes: NodeReader, { start, end }: Range): Promise<string> {
  const peaks: string[] = [];
  let at = start;
  for (let level = 52; level >= 0; level -= 1) {
    const width = 2 ** level;
    if (end - at < width) continue;
    peaks.push(await nodes.node(level, at / width));
    at += width;
  }
  // A reader may be a file that a stranger wrote: nodeHash refuses what is not a hash, but a single peak is never given to it.
  if (!peaks.every(isHash)) throw new RangeError(`no hash for the leaves ${start} to ${end - 1}`);
  return peaks.reduceRight((right, left) => nodeHash(left, right));
}

function requireCount(what: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(max) && Number.isSafeInteger(value) && min <= value && value <= max) return;
  throw new RangeError(`${what} must be a whole number from ${min} to ${max}, not ${value}`);
}
