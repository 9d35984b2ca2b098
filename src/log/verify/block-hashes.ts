import { createLanes, LANES_FREE, type Lanes } from '../../integrity/sha256-lanes.ts';
import { nodeHash } from '../../integrity/tree.ts';

/** Rows hashed together, which are those whose common root is stored. */
export const BLOCK_ROWS = 256;

/** Hashes over a block of rows at once, three times as fast as one by one. */
export interface BlockHashes {
  /** The root of the tree over the rows, from their content hashes. */
  root(contentHashes: readonly string[]): string;
  /**
   * What the chain hashes must be, in hex and without anything between them. Each row continues the hash that is stored
   * for the row before it; `before` stands before the first. Both texts have 64 characters a row.
   */
  links(contentHashes: string, before: string, chainHashes: string): string;
}

// Where things lie in the memory of the lanes. Messages are padded as SHA-256 wants it: a bit, zeros, the length in bits.
const CONTENTS_AT = LANES_FREE;
const LINKS_AT = CONTENTS_AT + BLOCK_ROWS * 64;
const LINK_PADDING_AT = LINKS_AT + (BLOCK_ROWS + 1) * 64;
const LEAVES_AT = LINK_PADDING_AT + 64;
const NODES_AT = LEAVES_AT + BLOCK_ROWS * 64;
const DIGESTS_AT = NODES_AT + (BLOCK_ROWS / 2) * 128;

let made: { readonly hashes: BlockHashes | undefined } | undefined;

/** Made at the first call, in 20 ms, and kept. Undefined where the machine cannot. */
export function blockHashes(): BlockHashes | undefined {
  made ??= { hashes: createBlockHashes() };
  return made.hashes;
}

function createBlockHashes(): BlockHashes | undefined {
  const lanes = createLanes();
  if (lanes === undefined) return undefined;
  const { memory } = lanes;
  pad(memory, LINK_PADDING_AT, { at: 0, bytes: 128, end: 64 });
  for (let i = 0; i < BLOCK_ROWS; i += 1) pad(memory, leafAt(i), { at: 33, bytes: 33, end: 64 });
  for (let i = 0; i < BLOCK_ROWS / 2; i += 1) {
    memory[nodeAt(i)] = 0x01;
    pad(memory, nodeAt(i), { at: 65, bytes: 65, end: 128 });
  }
  return {
    root: (contentHashes) => rootOf(lanes, contentHashes),
    links: (contentHashes, before, chainHashes) => {
      memory.write(contentHashes, CONTENTS_AT, 'latin1');
      memory.write(before, LINKS_AT, 'latin1');
      memory.write(chainHashes, linkBeforeAt(1), 'latin1');
      hashEach(lanes, BLOCK_ROWS, [contentAt, linkBeforeAt, () => LINK_PADDING_AT], digestAt);
      return memory.toString('hex', DIGESTS_AT, digestAt(BLOCK_ROWS));
    },
  };
}

type Place = (index: number) => number;

const contentAt: Place = (i) => CONTENTS_AT + 64 * i;
const linkBeforeAt: Place = (i) => LINKS_AT + 64 * i;
const leafAt: Place = (i) => LEAVES_AT + 64 * i;
const nodeAt: Place = (i) => NODES_AT + 128 * i;
const nodeEndAt: Place = (i) => nodeAt(i) + 64;
/** Where a leaf or node goes in the message of the node above it. */
const childAt: Place = (i) => nodeAt(i >> 1) + 1 + 32 * (i & 1);
const digestAt: Place = (i) => DIGESTS_AT + 32 * i;

function pad(
  memory: Buffer,
  message: number,
  { at, bytes, end }: { readonly at: number; readonly bytes: number; readonly end: number },
): void {
  memory[message + at] = 0x80;
  memory.writeUInt32BE(8 * bytes, message + end - 4);
}

/** The nodes of a level take the place of those below them, which were read by then. */
function rootOf(lanes: Lanes, contentHashes: readonly string[]): string {
  const { memory } = lanes;
  for (const [i, hash] of contentHashes.entries()) memory.write(hash, leafAt(i) + 1, 'hex');
  hashEach(lanes, BLOCK_ROWS, [leafAt], childAt);
  for (let nodes = BLOCK_ROWS / 2; nodes > 4; nodes /= 2)
    hashEach(lanes, nodes, [nodeAt, nodeEndAt], childAt);
  hashEach(lanes, 4, [nodeAt, nodeEndAt], digestAt);
  const [a = '', b = '', c = '', d = ''] = [0, 1, 2, 3].map((i) =>
    memory.toString('hex', digestAt(i), digestAt(i + 1)),
  );
  return nodeHash(nodeHash(a, b), nodeHash(c, d));
}

/** Hashes `count` messages, a multiple of four. `parts` tells where the blocks of each message lie, `to` where its digest goes. */
function hashEach(lanes: Lanes, count: number, parts: readonly Place[], to: Place): void {
  for (let i = 0; i < count; i += 4) {
    lanes.begin();
    for (const at of parts) lanes.take(at(i), at(i + 1), at(i + 2), at(i + 3));
    lanes.end(to(i), to(i + 1), to(i + 2), to(i + 3));
  }
}
