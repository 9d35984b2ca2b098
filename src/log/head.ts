import type { Reader, Transaction } from '../storage/engine.ts';
import { GENESIS } from './row.ts';

/** The last row of the log, or what comes before the first. */
export interface Head {
  readonly position: number;
  readonly chainHash: string;
  readonly at: string;
}

/** Decides under the write lock whether what is there may be signed over, and signs what a commit adds. */
export interface HeadKeeper {
  /** The last row. Where what is there must not be signed over, the rows of this commit stay unsigned. */
  open(tx: Transaction): Promise<Head>;
  /** Before the commit: signs everything up to `head`, whose new rows have these content hashes. `keep` files the checkpoint for good. */
  close(tx: Transaction, head: Head, contentHashes: readonly string[], keep: boolean): Promise<void>;
}

const EMPTY: Head = { position: 0, chainHash: GENESIS, at: '' };

export async function readHead(tx: Reader): Promise<Head> {
  const row = await tx.get<{ position: number; chain_hash: string; at: string }>(
    'SELECT position, chain_hash, at FROM actions ORDER BY position DESC LIMIT 1',
  );
  return row === undefined ? EMPTY : { position: row.position, chainHash: row.chain_hash, at: row.at };
}

/** Signs nothing: for a database in memory, and where there is no key. */
export const UNSIGNED: HeadKeeper = Object.freeze({ open: readHead, close: () => Promise.resolve() });
