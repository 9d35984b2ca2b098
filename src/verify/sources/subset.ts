import { GENESIS } from '../../log/row.ts';
import {
  formatId,
  SESSION_RECORDS,
  SESSIONS,
  STATE_TABLES,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import type { Report } from '../finding.ts';
import type { Source, SourceRow, SourceText, Walked } from '../source.ts';
import { Cells, pagesOf, type StoredPayload, type StoredRow } from './database-cells.ts';

/** Whose records are verified. */
export interface Subject {
  readonly kind: 'task' | 'session';
  readonly id: number;
}

/** Rows at a time: fewer than of a whole log, so that a slice stays short. */
const PAGE = 64;

/**
 * The part of a database that one task or session rests on: both rows of every call that wrote it or its records, found by
 * the rows of state, by the index of calls and along `previous`. Keeps their positions, eight bytes each.
 */
export class SubsetSource implements Source {
  readonly whole = false;
  readonly dropsContentHashes = true;
  readonly complete: ReadonlySet<string>;
  readonly #subject: Subject;
  readonly #cells: Cells;
  readonly #pause: () => Promise<void>;
  #positions: readonly number[] = [];
  /** Rows of append-only tables that a call says it wrote. */
  readonly #written = new Map(STATE_TABLES.map((table) => [table, new Set<number>()]));

  constructor(tx: Reader, subject: Subject, pause: () => Promise<void>) {
    this.#subject = subject;
    this.#cells = new Cells(tx);
    this.#pause = pause;
    this.complete = new Set([formatId(subject.kind === 'task' ? TASKS : SESSIONS, subject.id)]);
  }

  origin = () => Promise.resolve(undefined);
  heads = () => Promise.resolve([]);
  kept = () => Promise.resolve([]);

  async count(): Promise<number> {
    this.#positions = await this.#collect();
    return this.#positions.length;
  }

  async *rows(): AsyncGenerator<SourceRow[]> {
    const here = new Set(this.#positions);
    for (const page of pagesOf(this.#positions, PAGE)) yield await this.#read(page, here);
  }

  texts(digests: readonly string[]): Promise<ReadonlyMap<string, SourceText>> {
    return this.#cells.texts(digests);
  }

  async states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    for (const id of ids) this.#written.get(table)?.add(id);
    return await this.#cells.states(table, ids);
  }

  /** The subject itself, and records that claim to be its own, where no call wrote them. */
  async checkRest(_walked: Walked, report: Report): Promise<void> {
    const { kind, id } = this.#subject;
    const tables =
      kind === 'task'
        ? ([
            [TASKS, 'id'],
            [THOUGHTS, 'task_id'],
            [SESSIONS, 'task_id'],
          ] as const)
        : ([
            [SESSIONS, 'id'],
            [SESSION_RECORDS, 'session_id'],
          ] as const);
    for (const [table, column] of tables) {
      for await (const { id: number, position } of this.#rowsWith(table, column, id)) {
        if (this.#written.get(table)?.has(number)) continue;
        const record = formatId(table, number);
        const message = `${record} says that audit row ${position} wrote it, but that row does not say so.`;
        report({ kind: 'unexplained', table: table.name, record, columns: ['id', 'position'], message });
      }
    }
  }

  async #read(page: readonly number[], here: ReadonlySet<number>): Promise<SourceRow[]> {
    const cells = this.#cells;
    const rows = await cells.among<StoredRow>(
      'actions',
      'SELECT position, text, content_hash, chain_hash FROM actions WHERE position',
      page,
    );
    const kept = await cells.among<StoredPayload>(
      'action_payloads',
      'SELECT position, salt, body FROM action_payloads WHERE position',
      page,
    );
    const read = new Map((await this.#cells.withPayloads(rows, kept)).map((row) => [row.position, row]));
    const around = [...new Set(page.flatMap((position) => [position - 1, position + 1]))];
    const neighbours = await cells.among<{ position: number; content_hash: string; chain_hash: string }>(
      'actions',
      'SELECT position, content_hash, chain_hash FROM actions WHERE position',
      around,
    );
    const beside = new Map(neighbours.map((row) => [row.position, row]));
    return page.map((position) => linked(read.get(position) ?? { position, text: undefined }, beside, here));
  }

  /** Exit rows of every call that concerns the subject, and their enter rows, in order. */
  async #collect(): Promise<number[]> {
    const { kind, id } = this.#subject;
    const exits = new Set<number>();
    if (kind === 'task') await this.#collectTask(id, exits);
    else await this.#collectSession(id, exits);
    await this.#collectSessionsOf(exits);
    const all = new Set<number>();
    for (const page of pagesOf([...exits], PAGE)) {
      for (const position of page) all.add(position);
      const select = 'SELECT sequence_no FROM actions WHERE position';
      for (const { sequence_no } of await this.#cells.among<{ sequence_no: number | null }>(
        'actions',
        select,
        page,
      ))
        if (Number.isSafeInteger(sequence_no) && Number(sequence_no) > 0) all.add(Number(sequence_no));
      await this.#pause();
    }
    return [...all].sort((a, b) => a - b);
  }

  async #collectTask(id: number, exits: Set<number>): Promise<void> {
    await this.#follow(TASKS, id, exits);
    for await (const { position } of this.#calls(id)) add(exits, position);
    for await (const { position } of this.#rowsWith(THOUGHTS, 'task_id', id)) add(exits, position);
    for await (const session of this.#rowsWith(SESSIONS, 'task_id', id)) this.#sessions.add(session.id);
    const sealing = await this.#cells
      .from('session_records')
      .all<{ id: number }>(
        `SELECT DISTINCT r.session_id AS id FROM thoughts t JOIN session_records r ON r.ref = t.id AND r.kind = 'thought' WHERE t.task_id = ?`,
        id,
      );
    for (const session of sealing) this.#sessions.add(session.id);
  }

  readonly #sessions = new Set<number>();

  async #collectSession(id: number, exits: Set<number>): Promise<void> {
    this.#sessions.add(id);
    for await (const { position } of this.#rowsWith(SESSION_RECORDS, 'session_id', id)) add(exits, position);
    const session = await this.#cells
      .from('sessions')
      .get<{ task_id: number }>('SELECT task_id FROM sessions WHERE id = ?', id);
    if (session === undefined) return;
    // A record that was taken out of the session is still named by its call.
    for await (const { position } of this.#calls(session.task_id)) add(exits, position);
    // These calls begin other sessions of the task, which must be seen to end as well.
    for await (const other of this.#rowsWith(SESSIONS, 'task_id', session.task_id))
      this.#sessions.add(other.id);
  }

  async #collectSessionsOf(exits: Set<number>): Promise<void> {
    for (const id of this.#sessions) await this.#follow(SESSIONS, id, exits);
  }

  /** From the row of state along `previous` to the call that made it. Stops where a row is gone: that one is then reported. */
  async #follow(table: StateTable, id: number, exits: Set<number>): Promise<void> {
    const row = await this.#cells
      .from(table.name)
      .get<{ position: number }>(`SELECT position FROM ${table.name} WHERE id = ?`, id);
    for (let position = row?.position ?? 0; position > 0 && !exits.has(position); ) {
      add(exits, position);
      const writer = await this.#cells
        .from('actions')
        .get<{ text: unknown }>('SELECT text FROM actions WHERE position = ?', position);
      const previous = previousIn(writer?.text, table, id);
      if (previous === undefined || previous >= position) return;
      position = previous;
      if (exits.size % PAGE === 0) await this.#pause();
    }
  }

  async *#calls(task: number): AsyncGenerator<{ position: number }> {
    for (let last = 0; ; ) {
      const page = await this.#cells
        .from('task_calls')
        .all<{ position: number }>(
          'SELECT position FROM task_calls WHERE task_id = ? AND position > ? AND position <= ? ORDER BY position LIMIT 1000',
          task,
          last,
          Number.MAX_SAFE_INTEGER,
        );
      yield* page;
      const end = page.at(-1)?.position;
      if (end === undefined || end <= last) return;
      last = end;
      await this.#pause();
    }
  }

  /** A page that leads no further ends it: somebody stored numbers beyond 2^53, which are read alike. */
  async *#rowsWith(
    table: StateTable,
    column: string,
    value: number,
  ): AsyncGenerator<{ id: number; position: number }> {
    // The order of the index on the column: any other would sort all rows again for each page.
    const order = table === THOUGHTS ? 'chain_position' : 'id';
    for (let last = Number.NEGATIVE_INFINITY; ; ) {
      const page = await this.#cells.from(table.name).all<{ id: number; position: number; place: number }>(
        `SELECT id, position, ${order} AS place FROM ${table.name}
         WHERE ${column} = ? AND ${order} > ? ORDER BY ${order} LIMIT 1000`,
        value,
        last,
      );
      yield* page;
      const end = page.at(-1)?.place;
      if (end === undefined || end <= last) return;
      last = end;
      await this.#pause();
    }
  }
}

/** A forged position may be any number; only such as can be one is looked for. */
function add(exits: Set<number>, position: number): void {
  if (Number.isSafeInteger(position) && position > 0) exits.add(position);
}

function previousIn(text: unknown, table: StateTable, id: number): number | undefined {
  try {
    const { effects } = JSON.parse(String(text)) as {
      effects?: { table?: unknown; id?: unknown; previous?: unknown }[];
    };
    const effect = effects?.find((one) => one.table === table.name && one.id === formatId(table, id));
    return typeof effect?.previous === 'number' ? effect.previous : undefined;
  } catch {
    return undefined;
  }
}

type Neighbours = ReadonlyMap<number, { readonly content_hash: string; readonly chain_hash: string }>;

function linked(row: SourceRow, beside: Neighbours, here: ReadonlySet<number>): SourceRow {
  const previous = row.position === 1 ? GENESIS : beside.get(row.position - 1)?.chain_hash;
  const next = here.has(row.position + 1) ? undefined : beside.get(row.position + 1);
  return {
    ...row,
    ...(previous !== undefined && { previous_chain_hash: String(previous) }),
    ...(next !== undefined && {
      next: { content_hash: String(next.content_hash), chain_hash: String(next.chain_hash) },
    }),
  };
}
