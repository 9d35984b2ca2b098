import type { Clock } from '../clock.ts';
import type { Reader, Transaction } from '../storage/engine.ts';
import { type AuditRow, GENESIS, type StoredRow, storeRow } from './row.ts';
import { closeBlock } from './tree.ts';

/** The last row of the log, or what stands before the first. */
export interface Head {
  readonly position: number;
  readonly chainHash: string;
  readonly at: string;
}

const EMPTY: Head = { position: 0, chainHash: GENESIS, at: '' };

export async function readHead(tx: Reader): Promise<Head> {
  const row = await tx.get<{ position: number; chain_hash: string; at: string }>(
    'SELECT position, chain_hash, at FROM actions ORDER BY position DESC LIMIT 1',
  );
  return row === undefined ? EMPTY : { position: row.position, chainHash: row.chain_hash, at: row.at };
}

/** Stored time never runs backwards, whatever the clock does: order is by position, time only decorates it. */
export function timeAfter(head: Head, clock: Clock): string {
  const now = new Date(clock.now()).toISOString();
  return now > head.at ? now : head.at;
}

/** The fields a caller decides; position, time and hashes follow from the head. */
export type NewRow = Omit<AuditRow, 'position' | 'sequence_no' | 'at'> & { readonly sequence_no?: number };

/** Appends one row behind `head` and returns the new head. Only inside a write transaction: nobody else can be in between. */
export async function appendRow(tx: Transaction, head: Head, fields: NewRow, clock: Clock): Promise<Head> {
  const position = head.position + 1;
  const row: AuditRow = {
    ...fields,
    position,
    sequence_no: fields.sequence_no ?? position,
    at: timeAfter(head, clock),
  };
  const stored: StoredRow = storeRow(row, head.chainHash);
  await tx.run(
    'INSERT INTO actions (position, text, content_hash, chain_hash) VALUES (?, ?, ?, ?)',
    stored.position,
    stored.text,
    stored.content_hash,
    stored.chain_hash,
  );
  await closeBlock(tx, position);
  return { position, chainHash: stored.chain_hash, at: row.at };
}

/** Keeps what a row's digest was made of beside the row. */
export async function keepPayload(
  tx: Transaction,
  position: number,
  salt: string,
  body: string,
): Promise<void> {
  await tx.run('INSERT INTO action_payloads (position, salt, body) VALUES (?, ?, ?)', position, salt, body);
}
