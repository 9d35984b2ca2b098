import type { NoteSigner, VerifierKey } from '../integrity/note-key.ts';
import { Frontier } from '../integrity/tree.ts';
import type { Head } from '../log/head.ts';
import { GENESIS } from '../log/row.ts';
import type { Reader } from '../storage/engine.ts';
import { openIfValid } from './opening.ts';

/** One row of `log_heads`. */
export interface HeadRow {
  readonly key: string;
  readonly size: number;
  readonly chain_hash: string;
  readonly at: string;
  readonly frontier: string;
  readonly checkpoint: string;
}

/** What decides whether a log may be signed over. */
export interface LogView {
  readonly origin: string | undefined;
  readonly heads: readonly HeadRow[];
  readonly last: Head;
}

/** A row of `log_heads` that holds, with its tree. */
export interface SignedHead {
  readonly row: HeadRow;
  readonly tree: Frontier;
}

/** More heads than this nobody wrote honestly; one of the first is foreign already. */
const HEADS_MAX = 64;

const VIEW = `
  SELECT log.origin, last.position, last.chain_hash AS last_chain_hash, last.text,
         head.key, head.size, head.chain_hash, head.at, head.frontier, head.checkpoint
  FROM (SELECT 1 AS one) AS always
  LEFT JOIN log ON TRUE
  LEFT JOIN (SELECT position, chain_hash, text FROM actions ORDER BY position DESC LIMIT 1) AS last ON TRUE
  LEFT JOIN log_heads AS head ON TRUE
  LIMIT ${HEADS_MAX}`;

type ViewRow = { [column in keyof HeadRow]: HeadRow[column] | null } & {
  readonly origin: string | null;
  readonly position: number | null;
  readonly last_chain_hash: string | null;
  readonly text: string | null;
};

/** The name, the heads and the last row of the log, in one query. Hostile input enters here. */
export async function readView(tx: Reader): Promise<LogView> {
  const rows = await tx.all<ViewRow>(VIEW);
  const first = rows[0];
  return { origin: first?.origin ?? undefined, heads: rows.flatMap(headIn), last: lastIn(first) };
}

function headIn({ key, size, chain_hash, at, frontier, checkpoint }: ViewRow): HeadRow[] {
  const isHead =
    key !== null &&
    size !== null &&
    chain_hash !== null &&
    at !== null &&
    frontier !== null &&
    checkpoint !== null;
  return isHead ? [{ key, size, chain_hash, at, frontier, checkpoint }] : [];
}

function lastIn(row: ViewRow | undefined): Head {
  const { position = null, last_chain_hash: chainHash = null, text = null } = row ?? {};
  if (position === null || chainHash === null || text === null)
    return { position: 0, chainHash: GENESIS, at: '' };
  return { position, chainHash, at: timeIn(text) };
}

/** One row as a head describes it. */
export async function readRow(tx: Reader, position: number): Promise<Head | undefined> {
  const row = await tx.get<{ chain_hash: string; text: string }>(
    'SELECT chain_hash, text FROM actions WHERE position = ?',
    position,
  );
  return row === undefined ? undefined : { position, chainHash: row.chain_hash, at: timeIn(row.text) };
}

/** Not the database's own reading of it: a forged text that is no JSON must not stop every call. */
function timeIn(text: string): string {
  try {
    const row: unknown = JSON.parse(text);
    const hasTime = typeof row === 'object' && row !== null && 'at' in row && typeof row.at === 'string';
    return hasTime ? String(row.at) : '';
  } catch {
    return '';
  }
}

/** Byte for byte the same row. */
export function isSameHead(a: HeadRow, b: HeadRow): boolean {
  return (
    a.checkpoint === b.checkpoint &&
    a.size === b.size &&
    a.chain_hash === b.chain_hash &&
    a.at === b.at &&
    a.frontier === b.frontier &&
    a.key === b.key
  );
}

/** Whether a head speaks of the last row: its position, its chain hash and its time. */
export function isHeadOf(row: HeadRow, last: Head): boolean {
  return row.size === last.position && row.chain_hash === last.chainHash && row.at === last.at;
}

/** The head of a row, if the key signed what the row says and the frontier gives the signed root. */
export function openHead(row: HeadRow, key: VerifierKey): SignedHead | undefined {
  const checkpoint = openIfValid(row.checkpoint, [key]);
  const tree = treeOf(row);
  const holds = checkpoint?.size === row.size && checkpoint.root === tree?.root();
  return holds && tree !== undefined ? { row, tree } : undefined;
}

function treeOf({ size, frontier }: HeadRow): Frontier | undefined {
  const hashes = frontier.match(/.{1,64}/gs) ?? [];
  try {
    return new Frontier({ size, hashes });
  } catch {
    return undefined;
  }
}

/** The row of `log_heads` for a tree that ends in `last`. */
export function headRow(signer: NoteSigner, tree: Frontier, last: Head, checkpoint: string): HeadRow {
  return {
    key: signer.verifierKey,
    size: tree.size,
    chain_hash: last.chainHash,
    at: last.at,
    frontier: tree.state.hashes.join(''),
    checkpoint,
  };
}
