import type { Clock } from '../clock.ts';
import type { Sooner } from '../sooner.ts';
import {
  changeOne,
  type Durable,
  notAsMany,
  PlantedRow,
  type Reader,
  type SqlValue,
  type StorageEngine,
  type Transaction,
} from '../storage/engine.ts';
import {
  type AuditRow,
  DAY_CHARS,
  GENESIS,
  RULES_VERSION,
  SECOND_CHARS,
  seenAt,
  storeRow,
  UNSAID,
} from './row.ts';
import { destinationOf, isReceipt, isTransfer, TransferredError } from './transfer.ts';
import { closeBlocks } from './tree.ts';

/** The last row of the log, or what comes before the first. */
export interface Head {
  readonly position: number;
  readonly chainHash: string;
  readonly at: string;
  /** The owner has transferred the log: it goes on elsewhere, and nothing may follow here. */
  readonly isTransferred?: boolean;
}

/** Decides under the write lock whether what is there may be signed over, and signs what a commit adds. */
export interface HeadKeeper {
  /** The last row. Where what is there must not be signed over, the rows of this commit stay unsigned. */
  open(tx: Transaction): Promise<Head>;
  /**
   * Before the commit: signs everything up to `head`, whose new rows have these content hashes. `keep` files the checkpoint
   * for good. Answers the roots of the blocks that they complete, as far as it knows them.
   */
  close(
    tx: Transaction,
    head: Head,
    contentHashes: readonly string[],
    keep: boolean,
  ): Promise<ReadonlyMap<number, string> | undefined>;
}

/** The head before the first row. */
export const EMPTY_LOG: Head = { position: 0, chainHash: GENESIS, at: '' };

export async function readHead(tx: Reader): Promise<Head> {
  const sql = `SELECT position, chain_hash, at, stage, tool, outcome FROM audit_rows ORDER BY position DESC LIMIT 1`;
  const row = await tx.get<AuditRow & { readonly chain_hash: string }>(sql);
  if (row === undefined) return EMPTY_LOG;
  return { position: row.position, chainHash: row.chain_hash, at: row.at, isTransferred: isTransfer(row) };
}

/** Signs nothing: for a database in memory, and where there is no key. */
export const UNSIGNED: HeadKeeper = Object.freeze({
  open: readHead,
  close: () => Promise.resolve(undefined),
});

/** Fields that a caller decides; the others follow from the log and from who writes. */
export type NewRow = Omit<AuditRow, Made | keyof typeof UNSAID> & {
  readonly [K in 'sequence_no' | 'at' | keyof typeof UNSAID]?: AuditRow[K] | undefined;
};

type Made = 'position' | 'sequence_no' | 'at' | 'rules' | 'process';

const DAY_MS = 86_400_000;

/**
 * Stored time never runs backwards, whatever the clock does. A last time that is more than a day ahead of the clock, or
 * no time at all, is a finding for the verifier and no lower bound: else one forged row would fix every later time.
 */
function lowerBound({ at }: Head, now: number): string {
  // As it is stored, or it is nothing to compare with. Most often it is the time that this process stored last.
  const time = at === shown.text ? shown.ms : Date.parse(at);
  const isStored = at === shown.text || (Number.isFinite(time) && new Date(time).toISOString() === at);
  return isStored && time <= now + DAY_MS ? at : '';
}

/** The last millisecond that was asked for, and its text: the rows of a batch have few. */
let shown = { ms: Number.NaN, text: '' };

function notBefore(earliest: string, now: number): string {
  if (now !== shown.ms) shown = { ms: now, text: new Date(now).toISOString() };
  return earliest > shown.text ? earliest : shown.text;
}

/** The same as `seenAt`. */
const SEEN = `INSERT INTO processes (process, actor, last_seen) VALUES (?, ?, ?)
  ON CONFLICT (process, actor) DO UPDATE SET last_seen = CASE
    WHEN substr(processes.last_seen, 1, ${DAY_CHARS}) = substr(excluded.last_seen, 1, ${DAY_CHARS})
      AND substr(excluded.last_seen, 1, ${SECOND_CHARS}) <= substr(processes.last_seen, 1, ${SECOND_CHARS})
    THEN processes.last_seen ELSE excluded.last_seen END`;

function noteSeen(tx: Transaction, process: string, actor: string, at: string): void {
  const name = `when ${actor} of ${process} was last seen`;
  const known = tx.known.get(name);
  if (typeof known === 'string' && seenAt(known, at) === known) return;
  changeOne(tx, SEEN, process, actor, at);
  tx.known.set(name, at);
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
  work: (appending: Appending) => Sooner<T>,
  durable?: Durable,
): Promise<T> {
  return await writer.storage.write(async (tx) => {
    const appending = await openAppending(tx, writer);
    const result = await work(appending);
    await appending.close(appending.keeps);
    return result;
  }, durable);
}

/** Tables of the log, and the columns that a row of each is kept with. No rule reads them, unless its tool says so (`readsLog`). */
const KEPT = {
  actions: ['position', 'text', 'content', 'chain'],
  action_payloads: ['position', 'salt', 'body'],
  texts: ['id', 'digest', 'salt', 'text'],
  open_calls: ['position', 'process'],
  task_calls: ['task_id', 'position'],
} as const;

type KeptTable = keyof typeof KEPT;
const KEPT_TABLES = Object.keys(KEPT) as readonly KeptTable[];

/** No log gets that far by itself, and behind it positions are soon no exact numbers any more. */
const POSITION_MAX = Number.MAX_SAFE_INTEGER - 1_000_000;

/** Rows that are being added to the log by one transaction. Nobody else can be in between. `keeps`: its checkpoint is filed for good. */
export type Appending = Awaited<ReturnType<typeof openAppending>>;

export async function openAppending(tx: Transaction, writer: Omit<LogWriter, 'storage'>) {
  const { keeper, process } = writer;
  // Machines that share a database share its clock.
  const clock = { now: () => tx.now() ?? writer.clock.now() };
  let head = await keeper.open(tx);
  if (head.position > POSITION_MAX) throw new PlantedRow('The database', `audit row ${head.position}`);
  const destination = head.isTransferred === true ? await destinationOf(tx, head.position) : undefined;
  /** The last row that is in the database, and not only among those that will be. */
  let flushed = head.position;
  let earliest = lowerBound(head, clock.now());
  const contentHashes: string[] = [];
  /** Rows that leave together: one statement for many costs a third of one each. */
  const waiting: { readonly [T in KeptTable]: SqlValue[][] } = {
    ...{ actions: [], action_payloads: [], texts: [], open_calls: [], task_calls: [] },
  };
  /** Open calls that have ended: their marks go together. */
  const ended: number[] = [];
  /** When each actor last got a row in this transaction. */
  const seen = new Map<string, string>();

  /** Position and time that a row appended now would have. */
  function next(): Pick<AuditRow, 'position' | 'at'> {
    return { position: head.position + 1, at: notBefore(earliest, clock.now()) };
  }

  /** Appends one row and answers its position. */
  function append(fields: NewRow): number {
    if (head.isTransferred === true && !isReceipt(fields)) throw new TransferredError(destination);
    const position = head.position + 1;
    // Each field by its name: spread over one another, the fields cost an eighth of the whole call.
    const row: AuditRow = {
      position,
      sequence_no: fields.sequence_no ?? position,
      stage: fields.stage,
      tool: fields.tool,
      actor: fields.actor,
      source: fields.source,
      correlation_id: fields.correlation_id,
      at: fields.at ?? notBefore(earliest, clock.now()),
      rules: RULES_VERSION,
      schema_valid: fields.schema_valid,
      args_hash: fields.args_hash ?? null,
      outcome: fields.outcome,
      error_code: fields.error_code ?? null,
      duration_ms: fields.duration_ms ?? null,
      result_hash: fields.result_hash ?? null,
      effects: fields.effects ?? UNSAID.effects,
      process,
      repaired: fields.repaired ?? UNSAID.repaired,
    };
    const { text, content_hash, chain_hash } = storeRow(row, head.chainHash);
    keep('actions', position, text, content_hash, chain_hash);
    head = { position, chainHash: chain_hash, at: row.at, isTransferred: isTransfer(row) };
    earliest = row.at;
    contentHashes.push(content_hash);
    seen.set(fields.actor, seenAt(seen.get(fields.actor), row.at));
    return position;
  }

  /** Keeps a row beside those of the log: what a digest was made of, or what is found by it. */
  function keep(table: KeptTable, ...values: SqlValue[]): void {
    waiting[table].push(values);
  }

  /** From now on the database has everything that was appended. Not within a savepoint, which would take back what was there before. */
  async function flush(): Promise<void> {
    await store();
    await finishBlocks();
  }

  /** Takes away the mark of an open call. Where somebody else has done so, nothing of this transaction is committed. */
  function end(position: number): void {
    ended.push(position);
  }

  async function store(): Promise<void> {
    const marks = ended.splice(0);
    if (marks.length > 0) {
      const sql = `DELETE FROM open_calls WHERE position IN (${marks.map(() => '?').join(', ')})`;
      const { changes } = await tx.run(sql, ...marks);
      if (changes !== marks.length) throw notAsMany(changes, marks.length, sql);
    }
    for (const table of KEPT_TABLES) {
      const rows = waiting[table].splice(0);
      if (rows.length > 0) tx.insert(table, KEPT[table], rows);
    }
  }

  async function finishBlocks(roots?: ReadonlyMap<number, string>): Promise<void> {
    await closeBlocks(tx, flushed, head.position, roots);
    flushed = head.position;
  }

  const hasNewTexts = () => waiting.texts.length > 0;

  /** Takes back what `work` wrote and appended if it rejects. */
  function savepoint<T>(work: () => Sooner<T>): Promise<T> {
    const [before, bound, seenBefore] = [head, earliest, [...seen]];
    const lengths = KEPT_TABLES.map((table) => waiting[table].length);
    const endedBefore = ended.length;
    return tx.savepoint(work, () => {
      contentHashes.length -= head.position - before.position;
      for (const [i, table] of KEPT_TABLES.entries()) waiting[table].length = lengths[i] ?? 0;
      [head, earliest, ended.length] = [before, bound, endedBefore];
      seen.clear();
      for (const [actor, at] of seenBefore) seen.set(actor, at);
    });
  }

  /** The last thing before the commit: signs what was appended. */
  async function close(keepHead: boolean): Promise<void> {
    if (contentHashes.length === 0) return;
    await store();
    for (const [actor, at] of seen) noteSeen(tx, process, actor, at);
    await finishBlocks(await keeper.close(tx, head, contentHashes, keepHead));
    const chain = Buffer.from(head.chainHash, 'hex');
    tx.foundBy('SELECT 1 AS found FROM actions WHERE position = ? AND chain = ?', head.position, chain);
  }

  const lastSeen = (actor: string) => seen.get(actor);

  return { tx, next, append, keep, end, flush, hasNewTexts, savepoint, lastSeen, close, keeps: false };
}
