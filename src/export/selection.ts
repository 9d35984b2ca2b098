import { ColibriError } from '../errors.ts';
import { type AuditRow, parseAuditText } from '../log/row.ts';
import {
  formatId,
  parseId,
  SESSIONS,
  STATE_TABLES,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import { digestsIn, listed, payloadsAt, rowsAt, textsIn } from './stored.ts';

/** The part of a log that proves something about one subject. */
export interface Selection {
  /** `T-0001`, `Θ-0001`, `A-0001` or `#12`. */
  readonly subject: string;
  /** Audit rows, by position, in order. */
  readonly positions: readonly number[];
  /** Rows of state, by table and id, in the order of a bundle. */
  readonly state: readonly { readonly table: StateTable; readonly ids: readonly number[] }[];
}

/** Finds what proves a record. Throws where there is no such record. */
export async function select(tx: Reader, subject: string): Promise<Selection> {
  const chosen = new Chosen(tx);
  if (/^#[1-9]\d{0,14}$/.test(subject)) await chosen.addCall(Number(subject.slice(1)), subject);
  else if (subject.startsWith('T-')) await addTask(tx, chosen, await requireId(tx, TASKS, subject));
  else if (subject.startsWith('A-')) await addSession(tx, chosen, await requireId(tx, SESSIONS, subject));
  else if (subject.startsWith('Θ-'))
    await chosen.addHistory(THOUGHTS, await requireId(tx, THOUGHTS, subject));
  else throw new Error(`"${subject}" is no id. Give T-0001, Θ-0001, A-0001 or #12 for an audit row.`);
  await chosen.addErasures();
  return chosen.selection(subject);
}

/** The calls by which a key that did not create the log became one of its keys, added to what was selected. */
export async function addKeyActs(tx: Reader, { subject, positions }: Selection): Promise<Selection> {
  const chosen = new Chosen(tx);
  for (const position of positions) await chosen.addCall(position, subject);
  for (const position of await exitsOf(tx, ['owner_adopt', 'owner_trust', 'key_join']))
    await chosen.addCall(position, subject);
  await chosen.addErasures();
  return chosen.selection(subject);
}

/** One task: every call that wrote or named it, its thoughts, and the sessions that recorded it. */
async function addTask(tx: Reader, chosen: Chosen, task: number): Promise<void> {
  await chosen.addHistory(TASKS, task);
  const calls = 'SELECT position AS id FROM task_calls WHERE task_id = ?';
  const thoughts = 'SELECT position AS id FROM thoughts WHERE task_id = ?';
  for (const position of [...(await ids(tx, calls, task)), ...(await ids(tx, thoughts, task))])
    await chosen.addCall(position, formatId(TASKS, task));
  const sessions =
    'SELECT id FROM sessions WHERE task_id = ? UNION SELECT session_id FROM session_records WHERE task_id = ?';
  for (const session of await ids(tx, sessions, task, task)) await chosen.addHistory(SESSIONS, session);
}

/** One session: its start, the calls that made its records, its seal. */
async function addSession(tx: Reader, chosen: Chosen, session: number): Promise<void> {
  await chosen.addHistory(SESSIONS, session);
  const records = 'SELECT position AS id FROM session_records WHERE session_id = ?';
  for (const position of await ids(tx, records, session))
    await chosen.addCall(position, formatId(SESSIONS, session));
}

/**
 * What was chosen so far. Whatever a chosen call wrote belongs to it, and with each row of state the call that wrote it
 * last: so that every effect that counts has its row, and every row its effect.
 */
class Chosen {
  readonly #tx: Reader;
  readonly #positions = new Set<number>();
  readonly #state = new Map<string, Set<number>>();

  constructor(tx: Reader) {
    this.#tx = tx;
  }

  /** Both rows of a call, by either of them. */
  async addCall(position: number, what: string): Promise<AuditRow> {
    const row = await this.#row(position);
    if (row === undefined)
      throw new Error(`There is no audit row ${position} for ${what}. "colibri verify" tells more.`);
    if (this.#positions.has(position)) return row;
    for (const one of await this.#bothOf(row)) {
      if (!Array.isArray(one.effects))
        throw new Error(
          `Audit row ${one.position} is damaged, so it proves nothing. Run "colibri verify" to see what is wrong.`,
        );
      this.#positions.add(one.position);
      for (const { table: name, id } of one.effects) {
        const table = STATE_TABLES.find((known) => known.name === name);
        const number = table === undefined ? undefined : parseId(table, id);
        if (table !== undefined && number !== undefined) await this.#addState(table, number);
      }
    }
    return row;
  }

  /** Every call that wrote a record, from the last one back. */
  async addHistory(table: StateTable, id: number): Promise<void> {
    const record = formatId(table, id);
    let position = await this.#writerOf(table, id);
    while (position > 0) {
      const { effects } = await this.addCall(position, record);
      const previous =
        effects.find((effect) => effect.table === table.name && effect.id === record)?.previous ?? 0;
      position = previous < position ? previous : 0;
    }
  }

  /** Texts that the owner has erased are absent; the calls that say so explain it. */
  async addErasures(): Promise<void> {
    const wanted = new Set<string>();
    const positions = [...this.#positions];
    for await (const { body } of payloadsAt(this.#tx, positions))
      for (const digest of digestsIn(body)) wanted.add(digest);
    for await (const { digest } of textsIn(this.#tx, payloadsAt(this.#tx, positions))) wanted.delete(digest);
    if (wanted.size === 0) return;
    const exits = await exitsOf(this.#tx, ['owner_erase']);
    for await (const { position, body } of payloadsAt(this.#tx, exits))
      if (digestsIn(body).some((digest) => wanted.has(digest))) await this.addCall(position, 'an erasure');
  }

  selection(subject: string): Selection {
    const state = STATE_TABLES.map((table) => ({ table, ids: sorted(this.#state.get(table.name) ?? []) }));
    return { subject, positions: sorted(this.#positions), state };
  }

  async #addState(table: StateTable, id: number): Promise<void> {
    const ids = this.#state.get(table.name) ?? new Set();
    this.#state.set(table.name, ids);
    if (ids.has(id)) return;
    ids.add(id);
    const writer = await this.#writerOf(table, id);
    if (writer > 0) await this.addCall(writer, formatId(table, id));
  }

  async #writerOf(table: StateTable, id: number): Promise<number> {
    const sql = `SELECT position FROM ${table.name} WHERE id = ?`;
    return (await this.#tx.get<{ position: number }>(sql, id))?.position ?? 0;
  }

  async #row(position: number): Promise<AuditRow | undefined> {
    for await (const { text } of rowsAt(this.#tx, [position])) return parseAuditText(text);
    return undefined;
  }

  async #bothOf(row: AuditRow): Promise<AuditRow[]> {
    if (row.stage === 'exit') return [(await this.#row(row.sequence_no)) ?? [], row].flat();
    const sql = 'SELECT text FROM actions WHERE position > ? AND sequence_no = ? ORDER BY position LIMIT 1';
    const exit = await this.#tx.get<{ text: string }>(sql, row.position, row.sequence_no);
    return exit === undefined ? [row] : [row, parseAuditText(exit.text)];
  }
}

async function requireId(tx: Reader, table: StateTable, subject: string): Promise<number> {
  const id = parseId(table, subject);
  const found =
    id === undefined ? undefined : await tx.get(`SELECT 1 AS found FROM ${table.name} WHERE id = ?`, id);
  if (id !== undefined && found !== undefined) return id;
  const last = (await tx.get<{ id: number | null }>(`SELECT max(id) AS id FROM ${table.name}`))?.id ?? 0;
  const hint = last === 0 ? 'There is none yet.' : `The last one is ${formatId(table, last)}.`;
  const message = `There is no ${table.noun} ${JSON.stringify(subject)}. ${hint}`;
  throw table === TASKS
    ? new ColibriError('ERR_TASK_NOT_FOUND', message, { id: subject })
    : new Error(message);
}

/** Exit rows of calls of these tools that went well. Reads the log once. */
async function exitsOf(tx: Reader, tools: readonly string[]): Promise<number[]> {
  const found: number[] = [];
  const sql = "SELECT position FROM actions WHERE stage = 'exit' AND outcome = 'ok' AND tool";
  for await (const { position } of listed<{ position: number }>(tx, sql, tools, '')) found.push(position);
  return sorted(found);
}

async function ids(tx: Reader, sql: string, ...params: readonly number[]): Promise<number[]> {
  return sorted((await tx.all<{ id: number }>(sql, ...params)).map(({ id }) => id));
}

function sorted(numbers: Iterable<number>): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}
