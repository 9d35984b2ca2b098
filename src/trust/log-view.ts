import type { VerifierKey } from '../integrity/note-key.ts';
import type { Frontier } from '../integrity/tree.ts';
import type { Head } from '../log/head.ts';
import { GENESIS } from '../log/row.ts';
import type { Reader } from '../storage/engine.ts';
import { openIfValid, treeIn } from './opening.ts';

export const HEAD_COLUMNS = ['key', 'size', 'chain_hash', 'at', 'frontier', 'checkpoint'] as const;

/** One row of `log_heads`. */
export type HeadRow = {
  readonly [column in (typeof HEAD_COLUMNS)[number]]: column extends 'size' ? number : string;
};

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
         ${HEAD_COLUMNS.map((column) => `head.${column}`).join(', ')}
  FROM (SELECT 1 AS one) AS always
  LEFT JOIN log ON TRUE
  LEFT JOIN (SELECT position, chain_hash, text FROM actions ORDER BY position DESC LIMIT 1) AS last ON TRUE
  LEFT JOIN log_heads AS head ON TRUE
  LIMIT ${HEADS_MAX}`;

type ViewRow = { readonly origin: string | null } & (
  | { readonly position: number; readonly last_chain_hash: string; readonly text: string }
  | { readonly position: null }
) &
  (HeadRow | { readonly key: null });

/** The name, the heads and the last row of the log, in one query. Hostile input enters here. */
export async function readView(tx: Reader): Promise<LogView> {
  const rows = await tx.all<ViewRow>(VIEW);
  const [first] = rows;
  const heads = rows.flatMap((row) => (row.key === null ? [] : [row]));
  const last =
    first === undefined || first.position === null
      ? { position: 0, chainHash: GENESIS, at: '' }
      : { position: first.position, chainHash: first.last_chain_hash, at: timeIn(first.text) };
  return { origin: first?.origin ?? undefined, heads, last };
}

/** One row as a head describes it. */
export async function readRow(tx: Reader, position: number): Promise<Head | undefined> {
  const row = await tx.get<{ chain_hash: string; text: string }>(
    'SELECT chain_hash, text FROM actions WHERE position = ?',
    position,
  );
  return row && { position, chainHash: row.chain_hash, at: timeIn(row.text) };
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

/** Whether a head is that of the last row: its position, its chain hash and its time. */
export function isHeadOf(row: HeadRow, last: Head): boolean {
  return row.size === last.position && row.chain_hash === last.chainHash && row.at === last.at;
}

/** The head of a row, if the key signed what the row says and the frontier gives the signed root. */
export function openHead(row: HeadRow, key: VerifierKey): SignedHead | undefined {
  const checkpoint = openIfValid(row.checkpoint, [key]);
  const tree = treeIn(row.frontier, row.size);
  if (tree === undefined || checkpoint?.size !== row.size || checkpoint.root !== tree.root())
    return undefined;
  return { row, tree };
}
