import { isHash } from '../integrity/digest.ts';
import { seenAt } from '../log/row.ts';
import {
  callColumn,
  SESSIONS,
  type StateTable,
  type StateTableName,
  TASKS,
  tableNamed,
} from '../log/tables.ts';
import { ERASED, NOT_ERASED, SHOWN_TEXT } from '../log/texts.ts';
import { after, type Sooner } from '../sooner.ts';
import type { Reader, SqlValue, Transaction } from '../storage/engine.ts';
import { isNamed, OF_TWO } from '../storage/text-ids.ts';
import type { WritingContext } from '../tool.ts';
import { erasableTexts } from './carried-texts.ts';
import type { SessionRecordRow, SessionRow, TaskRow } from './facts.ts';
import type { Erasable } from './owner/rules.ts';
import { thoughtHash } from './records.ts';
import type { AsyncLookup, HashedThought, NewestThought, Written } from './rule.ts';

/**
 * Answers a rule from the transaction of its call, where calls before it may have learned the answer already. A class: of a
 * dozen functions made for each call, a rule uses two.
 */
export class TransactionLookup implements AsyncLookup {
  /** Tasks that were asked for, as they were before the call. */
  readonly seen = new Map<number, TaskRow>();
  /** The texts of the call by their digests. */
  readonly texts: ReadonlyMap<string, string>;
  readonly #tx: Transaction;
  readonly #call: WritingContext;

  constructor(tx: Transaction, call: WritingContext) {
    this.#tx = tx;
    this.#call = call;
    this.texts = new Map(call.texts.map(({ digest, text }) => [digest, text]));
  }

  task(id: number) {
    const found = once(this.#tx, KNOWN.task(id), () => this.#tx.get<TaskRow>(TASK_BY_ID, id));
    return after(found, (row) => {
      if (row !== undefined) this.seen.set(id, row);
      return row;
    });
  }

  async existing(ids: readonly number[]) {
    if (ids.length === 0) return [];
    return await idsFrom(this.#tx, `SELECT id FROM tasks WHERE id IN (${marks(ids)})`, ...ids);
  }

  async awaitedBy(ids: readonly number[]) {
    const found = new Map<number, number[]>(ids.map((id) => [id, []]));
    const rows = await this.#tx.all<{ task: number; id: number }>(
      `SELECT task_id AS task, depends_on AS id FROM task_dependencies WHERE task_id IN (${marks(ids)})
       UNION SELECT parent_id AS task, id FROM tasks WHERE parent_id IN (${marks(ids)}) ORDER BY task, id`,
      ...ids,
      ...ids,
    );
    for (const { task, id } of rows) found.get(task)?.push(id);
    return found;
  }

  async unmet({ id, depends_on }: TaskRow) {
    const ids = JSON.parse(depends_on) as number[];
    const waits = `is_final = 0 AND (parent_id = ? OR id IN (${marks(ids)}))`;
    return await numberFrom(this.#tx, `SELECT count(*) AS value FROM tasks WHERE ${waits}`, id, ...ids);
  }

  async holder(actor: string, process: string | null) {
    if (process === null) return { present: true };
    const [tx, call] = [this.#tx, this.#call];
    const isOurs = process === call.process;
    const present = isOurs || (await tx.isPresent(process));
    if (!isOurs) call.outside.holder = { present };
    const [stored, now] = [await lastSeen(tx, actor, process), isOurs ? call.lastSeen(actor) : undefined];
    const last_seen = now === undefined ? stored : seenAt(stored, now);
    return { present, last_seen };
  }

  session(id: number) {
    return id === 0 ? undefined : this.#tx.get<SessionRow>(SESSION_BY_ID, id);
  }

  async openSession(task: number) {
    return await this.#tx.get<SessionRow>(OPEN_SESSION, task);
  }

  coveringSessions(task: number) {
    return once(this.#tx, KNOWN.sessionsOver(task), () => coveringSessions(this.#tx, task));
  }

  newestThought(task: number) {
    return once(this.#tx, KNOWN.newestThought(task), () => newestThought(this.#tx, task));
  }

  async unsealedThoughts(task: number) {
    const sql = `SELECT count(*) AS value FROM thoughts t WHERE t.task_id = ? AND NOT ${SEALED}`;
    return await numberFrom(this.#tx, sql, task);
  }

  leaves(session: number, onlyTask: number | null) {
    return readLeaves(this.#tx, session, onlyTask);
  }

  /** It is made of the text, which is among those of the call. */
  thoughtHash(thought: HashedThought) {
    const content = this.texts.get(thought.content);
    if (content === undefined) throw new Error('the text of a thought is not among those of its call');
    return thoughtHash({ ...thought, content });
  }

  async textsOf(erasable: Erasable) {
    return (await erasableTexts(this.#tx, erasable)).map(({ digest }) => digest);
  }

  nextId(name: StateTableName) {
    const newest = () => numberFrom(this.#tx, `SELECT max(id) AS value FROM ${tableNamed(name).name}`);
    return after(once(this.#tx, KNOWN.lastId(name), newest), (last) => last + 1);
  }

  nextSequence(project: string) {
    const newest = () =>
      numberFrom(this.#tx, 'SELECT max(sequence) AS value FROM tasks WHERE project = ?', project);
    return after(once(this.#tx, KNOWN.lastSequence(project), newest), (last) => last + 1);
  }
}

/** What is remembered of a transaction, by its names. */
const KNOWN = {
  task: (id: number) => `task ${id}`,
  openSession: 'an open session',
  sessionsOver: (task: number) => `sessions over task ${task}`,
  newestThought: (task: number) => `newest thought of task ${task}`,
  lastId: (table: string) => `last id of ${table}`,
  lastSequence: (project: string) => `last sequence of ${project}`,
};

function once<T>({ known }: Transaction, name: string, learn: () => Promise<T>): Sooner<T> {
  if (known.has(name)) return known.get(name) as Sooner<T>;
  // Who asks meanwhile waits for the same answer. What was written meanwhile is newer.
  const learning = learn().then((learned) => {
    if (known.get(name) === learning) known.set(name, learned);
    return learned;
  });
  known.set(name, learning);
  return learning;
}

/** What is asked once in a transaction, however often it is wanted. */
export const REMEMBERED: ReadonlySet<keyof AsyncLookup> = new Set([
  ...(['task', 'coveringSessions', 'newestThought', 'nextId', 'nextSequence'] as const),
]);

/** A row that was written is what would be read from now on. */
export function learn({ known }: Transaction, { table, row, previous }: Written): void {
  // It may open or close one, or seal thoughts.
  if (table === 'sessions') known.clear();
  if (previous === 0) known.set(KNOWN.lastId(table), row.id);
  if (table === 'tasks') {
    known.set(KNOWN.task(row.id), row);
    if (previous === 0) {
      known.set(KNOWN.lastSequence(row.project), row.sequence);
      // Somebody may have asked for it before it was there.
      known.delete(KNOWN.sessionsOver(row.id));
    }
  }
  if (table === 'thoughts') {
    const { id, hash, chain_position } = row;
    known.set(KNOWN.newestThought(row.task_id), { id, hash, chain_position, sealed: false });
  }
}

async function coveringSessions(tx: Transaction, task: number): Promise<SessionRow[]> {
  const isAnyOpen = "SELECT 1 AS found FROM sessions WHERE status = 'open' LIMIT 1";
  if ((await once(tx, KNOWN.openSession, () => tx.get(isAnyOpen))) === undefined) return [];
  return await tx.all<SessionRow>(COVERING, task);
}

const COVERING = `WITH RECURSIVE above (id, distance) AS (
    SELECT CAST(? AS BIGINT), 0
    UNION ALL
    SELECT t.parent_id, above.distance + 1 FROM tasks t JOIN above ON t.id = above.id WHERE t.parent_id IS NOT NULL
  )
  SELECT ${columnsOf(SESSIONS, 's.')} FROM sessions s JOIN above ON s.task_id = above.id
  WHERE s.status = 'open' AND (above.distance = 0 OR s.scope = 'deep') ORDER BY s.id`;

async function newestThought(tx: Reader, task: number): Promise<NewestThought | undefined> {
  const row = await tx.get<Omit<NewestThought, 'sealed'> & { readonly sealed: number }>(NEWEST_THOUGHT, task);
  if (row === undefined) return undefined;
  const { id, hash, chain_position } = row;
  return { id, hash, chain_position, sealed: row.sealed === 1 };
}

/** When a process last wrote a row for an actor. */
export async function lastSeen(tx: Reader, actor: string, process: string): Promise<string | undefined> {
  const sql = 'SELECT last_seen FROM processes WHERE process = ? AND actor = ?';
  return (await tx.get<{ last_seen: string }>(sql, process, actor))?.last_seen;
}

// What every call asks is put together once: a text of a thousand characters made anew is also hashed anew.
const TASK_BY_ID = `SELECT ${columnsOf(TASKS)} FROM tasks WHERE id = ?`;
export const SESSION_BY_ID = `SELECT ${columnsOf(SESSIONS)} FROM sessions WHERE id = ?`;
const OPEN_SESSION = `SELECT ${columnsOf(SESSIONS)} FROM sessions WHERE task_id = ? AND status = 'open'`;

/** Named, not *: a derived or generated column must not slip into a row that is hashed. */
export function columnsOf(table: StateTable, alias = ''): string {
  return table.facts.map((column) => `${alias}${column}`).join(', ');
}

/** The same with each text in the place of its digest. */
export function shownColumns(table: StateTable): string {
  return table.facts
    .map((column) => (table.texts.includes(column) ? shown(table, column) : column))
    .join(', ');
}

/** A text in the place of its digest, or what stands for one that was erased. */
export function shown(table: StateTable, column: string): string {
  const text = `SELECT ${SHOWN_TEXT} FROM texts WHERE ${isTextIn(table, column)} AND ${NOT_ERASED} ${OF_TWO}`;
  return `CASE WHEN ${table.name}.${column} IS NULL THEN NULL ELSE coalesce((${text}), '${ERASED}') END AS ${column}`;
}

/** Whether a row of `texts` is the one that a column names. */
export function isTextIn(table: StateTable, column: string): string {
  return isNamed(`${table.name}.${callColumn(table, column)}`, `${table.name}.${column}`);
}

/** Whether the owner has erased one of these texts, as the column `erased`. */
export function erasedAmong({ name }: StateTable, ...columns: readonly string[]): string {
  const digests = columns.map((column) => `${name}.${column}`).join(', ');
  return `EXISTS (SELECT 1 FROM erased_texts WHERE digest IN (${digests})) AS erased`;
}

/** Placeholders for a list. An empty list is one that nothing is in. */
export function marks(values: readonly unknown[]): string {
  return values.length === 0 ? 'NULL' : values.map(() => '?').join(', ');
}

/** The one number that a query answers as `value`; 0 if there is none. */
export async function numberFrom(tx: Reader, sql: string, ...params: readonly SqlValue[]): Promise<number> {
  return (await tx.get<{ value: number | null }>(sql, ...params))?.value ?? 0;
}

/** The numbers that a query answers as `id`. */
export async function idsFrom(tx: Reader, sql: string, ...params: readonly SqlValue[]): Promise<number[]> {
  return (await tx.all<{ id: number }>(sql, ...params)).map(({ id }) => id);
}

/** A record of a finalized session is sealed unless the seal was of another task only. */
const SEALED = `EXISTS (
  SELECT 1 FROM session_records r JOIN sessions s ON s.id = r.session_id
  WHERE r.kind = 'thought' AND r.ref = t.id AND s.status = 'finalized'
    AND (s.sealed_task_id IS NULL OR s.sealed_task_id = r.task_id)
)`;

const NEWEST_THOUGHT = `SELECT t.id, t.hash, t.chain_position, ${SEALED} AS sealed
  FROM thoughts t WHERE t.task_id = ? ORDER BY t.chain_position DESC LIMIT 1`;

/** The hashes of a session's records in the order written. */
export async function readLeaves(tx: Reader, session: number, onlyTask: number | null): Promise<string[]> {
  const hashes: string[] = [];
  for await (const page of sessionRecords(tx, session, onlyTask)) {
    for (const { id, hash } of page) {
      if (hash === null || !isHash(hash) || !Number.isSafeInteger(id))
        throw new Error(`record ${id} of session ${session} is damaged; audit_verify_chain has the details`);
      hashes.push(hash);
    }
  }
  return hashes;
}

/** A record of a session with the hash that is its leaf. A missing hash means that the record itself is gone. */
export type Leaf = Pick<SessionRecordRow, 'id' | 'kind' | 'ref'> & { readonly hash: string | null };

const PAGE = 2_000;

/** The records of a session in the order written, a page at a time. */
export async function* sessionRecords(tx: Reader, session: number, onlyTask: number | null = null) {
  // A number that is not exact, in a file somebody forged, could be the last one for ever.
  for (let after: number | undefined = 0; after !== undefined && Number.isSafeInteger(after); ) {
    const page: Leaf[] = await tx.all<Leaf>(
      `SELECT r.id, r.kind, r.ref,
         CASE r.kind WHEN 'thought' THEN (SELECT hash FROM thoughts WHERE id = r.ref)
                     ELSE (SELECT content_hash FROM audit_rows WHERE position = r.ref) END AS hash
       FROM session_records r
       WHERE r.session_id = ? AND r.id > ? AND r.task_id = coalesce(?, r.task_id) ORDER BY r.id LIMIT ${PAGE}`,
      session,
      after,
      onlyTask,
    );
    yield page;
    after = page[PAGE - 1]?.id;
  }
}
