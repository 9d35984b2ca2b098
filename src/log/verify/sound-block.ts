import { isHash, sha256Hex } from '../../integrity/digest.ts';
import type { Reader } from '../../storage/engine.ts';
import { BLOCK_ROWS, blockHashes } from './block-hashes.ts';
import { mayHideBytes } from './bytes.ts';
import { DamageError } from './damage.ts';

/** A block of rows whose positions, types, content hashes and links are all as they must be. */
export interface SoundBlock {
  readonly texts: readonly string[];
  readonly root: string;
  /** The chain hash of the last row. */
  readonly link: string;
}

interface Joined {
  readonly count: number;
  readonly positions: string;
  readonly texts: string;
  readonly content_hashes: string;
  readonly chain_hashes: string;
}

/** Far more than a row has. */
const TEXT_BYTES_MAX = 100_000;

// A row costs 0.9 µs to read in one piece with its block, and 1.4 by itself. What is no text, or too long a one, is left out:
// then the block is not whole. A row too many that is left out shows when all rows are counted in the end.
const JOINED = `
  SELECT count(*) AS count, group_concat(position) AS positions, group_concat(text, char(10)) AS texts,
    group_concat(content_hash, '') AS content_hashes, group_concat(chain_hash, '') AS chain_hashes
  FROM actions WHERE position > ? AND position <= ?
    AND typeof(text) = 'text' AND typeof(content_hash) = 'text' AND typeof(chain_hash) = 'text'
    AND octet_length(text) <= ${TEXT_BYTES_MAX} AND octet_length(content_hash) = 64 AND octet_length(chain_hash) = 64`;

/**
 * The block of rows after a position, if there is one and nothing about it is wrong. Undefined says no more than that: who
 * reads the same rows one by one can say what it is. Hostile input enters here: each row has hashes of 64
 * bytes, and the lines of the joined texts are counted, so that nothing can have moved from a row to its neighbour.
 */
export async function readSoundBlock(
  tx: Reader,
  { position, link }: { readonly position: number; readonly link: string },
): Promise<SoundBlock | undefined> {
  if (!isHash(link) || position > Number.MAX_SAFE_INTEGER - BLOCK_ROWS) return undefined;
  const joined = await readJoined(tx, position);
  const hashes = joined?.count === BLOCK_ROWS ? blockHashes() : undefined;
  if (joined === undefined || hashes === undefined || mayHideBytes(joined.texts)) return undefined;
  // In a damaged file a search between two positions may come upon any.
  if (joined.positions !== positionsAfter(position)) return undefined;
  const texts = joined.texts.split('\n', BLOCK_ROWS + 1);
  const chain = joined.chain_hashes;
  if (texts.length !== BLOCK_ROWS || chain.length !== 64 * BLOCK_ROWS) return undefined;
  const contents = texts.map((text) => sha256Hex(text));
  if (contents.join('') !== joined.content_hashes) return undefined;
  if (hashes.links(joined.content_hashes, link, chain) !== chain) return undefined;
  return { texts, root: hashes.root(contents), link: chain.slice(-64) };
}

/** Damage may lie in the row behind the block, which whoever reads one by one has not come to yet. */
async function readJoined(tx: Reader, position: number): Promise<Joined | undefined> {
  try {
    return await tx.get<Joined>(JOINED, position, position + BLOCK_ROWS);
  } catch (error) {
    if (error instanceof DamageError) return undefined;
    throw error;
  }
}

function positionsAfter(position: number): string {
  return Array.from({ length: BLOCK_ROWS }, (_, i) => position + 1 + i).join();
}
