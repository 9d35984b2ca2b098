import type { Clock } from '../clock.ts';
import { parseInstant } from '../instant.ts';
import { changeOne, type Reader, type StorageEngine, type Transaction } from '../storage/engine.ts';
import { type AuditRow, GENESIS, RULES_VERSION, storeRow, type UNSAID } from './row.ts';
import { closeBlock } from './tree.ts';

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

/** The head before the first row. */
export const EMPTY_LOG: Head = { position: 0, chainHash: GENESIS, at: '' };

export async function readHead(tx: Reader): Promise<Head> {
  const sql = 'SELECT position, chain_hash, at FROM audit_rows ORDER BY position DESC LIMIT 1';
  const row = await tx.get<{ position: number; chain_hash: string; at: string }>(sql);
  return row === undefined ? EMPTY_LOG : { position: row.position, chainHash: row.chain_hash, at: row.at };
}

/** Signs nothing: for a database in memory, and where there is no key. */
export const UNSIGNED: HeadKeeper = Object.freeze({ open: readHead, close: () => Promise.resolve() });

/** Fields that a caller decides; the others follow from the log and from who writes. */
export type NewRow = Omit<AuditRow, Made | keyof typeof UNSAID> &
  Partial<Pick<AuditRow, 'sequence_no' | 'at' | keyof typeof UNSAID>>;

type Made = 'position' | 'sequence_no' | 'at' | 'rules' | 'process';

const DAY_MS = 86_400_000;

/**
 * Stored time never runs backwards, whatever the clock does. A last time that is more than a day ahead of the clock, or
 * no time at all, is a finding for the verifier and no lower bound: else one forged row would fix every later time.
 */
export function timeAfter(head: Head, clock: Pick<Clock, 'now'>): string {
  const now = clock.now();
  const text = new Date(now).toISOString();
  const isBound = parseInstant(head.at) === head.at && Date.parse(head.at) <= now + DAY_MS;
  return isBound && head.at > text ? head.at : text;
}

/** Who adds rows to a log, and who signs them. */
export interface LogWriter {
  readonly storage: StorageEngine;
  readonly clock: Clock;
  /** Which server process writes: recovery asks whether it is still there. */
  readonly process: string;
  readonly keeper: HeadKeeper;
}

/** One commit that adds rows, signed at its end. */
export async function commitRows<T>(
  writer: LogWriter,
  work: (appending: Appending) => Promise<T>,
  durable?: 'soon',
): Promise<T> {
  return await writer.storage.write(async (tx) => {
    const appending = await openAppending(tx, writer);
    const result = await work(appending);
    await appending.close(appending.keeps);
    return result;
  }, durable);
}

/** Rows that are being added to the log by one transaction. Nobody else can be in between. `keeps`: its checkpoint is filed for good. */
export type Appending = Awaited<ReturnType<typeof openAppending>>;

export async function openAppending(tx: Transaction, writer: Omit<LogWriter, 'storage'>) {
  const { keeper, process } = writer;
  // Machines that share a database share its clock.
  const clock = { now: () => tx.now() ?? writer.clock.now() };
  let head = await keeper.open(tx);
  const contentHashes: string[] = [];
  /** When each actor last got a row in this transaction. */
  const seen = new Map<string, string>();

  /** Position and time that a row appended now would have. */
  function next(): Pick<AuditRow, 'position' | 'at'> {
    return { position: head.position + 1, at: timeAfter(head, clock) };
  }

  /** Appends one row and answers its position. */
  async function append(fields: NewRow): Promise<number> {
    const { position, at } = next();
    // In this order: with the spread first, the object costs an eighth of the whole call.
    const row = { at, sequence_no: position, ...fields, position, rules: RULES_VERSION, process };
    const { text, content_hash, chain_hash } = storeRow(row, head.chainHash);
    const sql = 'INSERT INTO actions (position, text, content, chain) VALUES (?, ?, ?, ?)';
    const [content, chain] = [Buffer.from(content_hash, 'hex'), Buffer.from(chain_hash, 'hex')];
    await changeOne(tx, sql, position, text, content, chain);
    await closeBlock(tx, position);
    head = { position, chainHash: chain_hash, at: row.at };
    contentHashes.push(content_hash);
    seen.set(fields.actor, row.at);
    return position;
  }

  /** Keeps what a row's digest was made of. */
  async function keepPayload(position: number, salt: string, body: string): Promise<void> {
    const sql = 'INSERT INTO action_payloads (position, salt, body) VALUES (?, ?, ?)';
    await changeOne(tx, sql, position, salt, body);
  }

  /** Takes back what `work` wrote and appended if it rejects. */
  async function savepoint<T>(work: () => Promise<T>): Promise<T> {
    const before = head;
    try {
      return await tx.savepoint(work);
    } catch (error) {
      contentHashes.length -= head.position - before.position;
      head = before;
      throw error;
    }
  }

  /** The last thing before the commit: signs what was appended. */
  async function close(keep: boolean): Promise<void> {
    if (contentHashes.length === 0) return;
    const sql = `INSERT INTO processes (process, actor, last_seen) VALUES (?, ?, ?)
       ON CONFLICT (process, actor) DO UPDATE SET last_seen = excluded.last_seen`;
    for (const [actor, at] of seen) await changeOne(tx, sql, process, actor, at);
    await keeper.close(tx, head, contentHashes, keep);
    const chain = Buffer.from(head.chainHash, 'hex');
    tx.foundBy('SELECT 1 AS found FROM actions WHERE position = ? AND chain = ?', head.position, chain);
  }

  const lastSeen = (actor: string) => seen.get(actor);

  return { tx, next, append, keepPayload, savepoint, lastSeen, close, keeps: false };
}
