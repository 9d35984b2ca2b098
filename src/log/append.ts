import type { Clock } from '../clock.ts';
import { parseInstant } from '../instant.ts';
import type { StorageEngine, Transaction } from '../storage/engine.ts';
import type { Head, HeadKeeper } from './head.ts';
import { type AuditRow, RULES_VERSION, storeRow, type UNSAID } from './row.ts';
import { closeBlock } from './tree.ts';

/** Fields that a caller decides; the others follow from the log and from who writes. */
export type NewRow = Omit<AuditRow, Made | keyof typeof UNSAID> &
  Partial<Pick<AuditRow, 'sequence_no' | 'at' | keyof typeof UNSAID>>;

type Made = 'position' | 'sequence_no' | 'at' | 'rules' | 'process';

const DAY_MS = 86_400_000;

/**
 * Stored time never runs backwards, whatever the clock does. A last time that is more than a day ahead of the clock, or
 * no time at all, is a finding for the verifier and no lower bound: else one forged row would fix every later time.
 */
export function timeAfter(head: Head, clock: Clock): string {
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
): Promise<T> {
  return await writer.storage.write(async (tx) => {
    const appending = await Appending.open(tx, writer);
    const result = await work(appending);
    await appending.close(false);
    return result;
  });
}

/** Rows that are being added to the log by one transaction. Nobody else can be in between. */
export class Appending {
  readonly tx: Transaction;
  readonly #writer: Omit<LogWriter, 'storage'>;
  readonly #contentHashes: string[] = [];
  #head: Head;

  private constructor(tx: Transaction, writer: Omit<LogWriter, 'storage'>, head: Head) {
    this.tx = tx;
    this.#writer = writer;
    this.#head = head;
  }

  static async open(tx: Transaction, writer: Omit<LogWriter, 'storage'>): Promise<Appending> {
    return new Appending(tx, writer, await writer.keeper.open(tx));
  }

  /** Position and time that a row appended now would have. */
  next(): { readonly position: number; readonly at: string } {
    return { position: this.#head.position + 1, at: timeAfter(this.#head, this.#writer.clock) };
  }

  /** Appends one row and answers its position. */
  async append(fields: NewRow): Promise<number> {
    const { position, at } = this.next();
    const { process } = this.#writer;
    // In this order: with the spread first, the object costs an eighth of the whole call.
    const row = { at, sequence_no: position, ...fields, position, rules: RULES_VERSION, process };
    const { text, content_hash, chain_hash } = storeRow(row, this.#head.chainHash);
    await insertOne(
      this.tx,
      'INSERT INTO actions (position, text, content_hash, chain_hash) VALUES (?, ?, ?, ?)',
      position,
      text,
      content_hash,
      chain_hash,
    );
    await closeBlock(this.tx, position);
    this.#head = { position, chainHash: chain_hash, at: row.at };
    this.#contentHashes.push(content_hash);
    return position;
  }

  /** Keeps what a row's digest was made of. */
  async keepPayload(position: number, salt: string, body: string): Promise<void> {
    const sql = 'INSERT INTO action_payloads (position, salt, body) VALUES (?, ?, ?)';
    await insertOne(this.tx, sql, position, salt, body);
  }

  /** The last thing before the commit: signs what was appended. */
  async close(keep: boolean): Promise<void> {
    if (this.#contentHashes.length === 0) return;
    await this.tx.run(
      `INSERT INTO processes (process, last_seen) VALUES (?, ?)
       ON CONFLICT (process) DO UPDATE SET last_seen = excluded.last_seen`,
      this.#writer.process,
      this.#head.at,
    );
    await this.#writer.keeper.close(this.tx, this.#head, this.#contentHashes, keep);
  }
}

/** A planted trigger may swallow a row: an insert that changed nothing is not an insert. */
export async function insertOne(tx: Transaction, sql: string, ...params: (string | number)[]): Promise<void> {
  const { changes } = await tx.run(sql, ...params);
  if (changes !== 1) throw new Error(`a row was not stored: ${sql.slice(0, sql.indexOf('('))}`);
}
