import { requireSession, sessionId } from '../domains/trail/index.ts';
import type { AuditRow } from '../log/row.ts';
import { formatId, notFound, parseId, type StateTable } from '../log/state.ts';
import { SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';

/** The part of a log that proves something about one subject. */
export interface Selection {
  /** `T-0001`, `Θ-0001`, `A-0001` or `#12`. */
  readonly subject: string;
  /** Audit rows, by position, in order. */
  readonly positions: readonly number[];
  /** Rows of state, by table and id, in the order of a bundle. */
  readonly state: readonly { readonly table: StateTable; readonly ids: readonly number[] }[];
  /** Sessions whose seals belong to it. */
  readonly sessions: readonly number[];
}

/** Finds what proves a record. Throws where there is no such record. */
export async function select(tx: Reader, subject: string): Promise<Selection> {
  if (/^#[1-9]\d{0,14}$/.test(subject)) return await selectRow(tx, subject);
  if (subject.startsWith('T-')) return await selectTask(tx, subject);
  if (subject.startsWith('A-')) return await selectSession(tx, subject);
  if (subject.startsWith('Θ-')) return await selectThought(tx, subject);
  throw new Error(`"${subject}" is no id. Give T-0001, Θ-0001, A-0001 or #12 for an audit row.`);
}

async function selectRow(tx: Reader, subject: string): Promise<Selection> {
  const row = await readRow(tx, Number(subject.slice(1)));
  if (row === undefined) throw new Error(`There is no audit row ${subject}.`);
  const positions = await bothRows(tx, row);
  return { subject, positions, state: [], sessions: [] };
}

/** One task: all calls that name it or changed it, its thoughts, and the sessions that recorded it. */
async function selectTask(tx: Reader, subject: string): Promise<Selection> {
  const task = parseId(TASKS, subject);
  if (task === undefined || !(await exists(tx, TASKS, task)))
    throw await notFound(tx, TASKS, 'ERR_TASK_NOT_FOUND', subject, 'ID');
  const sessions = await ids(
    tx,
    'SELECT id FROM sessions WHERE task_id = ? UNION SELECT session_id FROM session_records WHERE task_id = ?',
    task,
    task,
  );
  const names = new Set(sessions.map((id) => formatId(SESSIONS, id)));
  const thoughts = await ids(tx, 'SELECT id FROM thoughts WHERE task_id = ?', task);
  const records = await ids(tx, 'SELECT id FROM session_records WHERE task_id = ?', task);
  const state = [
    { table: TASKS, ids: [task] },
    { table: THOUGHTS, ids: thoughts },
    { table: SESSIONS, ids: sessions },
    { table: SESSION_RECORDS, ids: records },
  ];
  const positions = await findCalls(
    tx,
    await writers(tx, state),
    (row, args) =>
      args.task_id === subject ||
      names.has(String(args.session_id)) ||
      row.effects.some(
        ({ table, id }) => (table === 'tasks' && id === subject) || (table === 'sessions' && names.has(id)),
      ),
  );
  return { subject, positions, state, sessions };
}

/** One session: its start, its records with the calls that made them, its seal. */
async function selectSession(tx: Reader, subject: string): Promise<Selection> {
  const session = await requireSession(tx, subject);
  const of = 'FROM session_records WHERE session_id = ?';
  const state = [
    {
      table: TASKS,
      ids: await ids(
        tx,
        `SELECT task_id AS id ${of} UNION SELECT task_id FROM sessions WHERE id = ?`,
        session.id,
        session.id,
      ),
    },
    { table: THOUGHTS, ids: await ids(tx, `SELECT ref AS id ${of} AND kind = 'thought'`, session.id) },
    { table: SESSIONS, ids: [session.id] },
    { table: SESSION_RECORDS, ids: await ids(tx, `SELECT id ${of}`, session.id) },
  ];
  const positions = await findCalls(tx, await writers(tx, state), (row) =>
    row.effects.some(({ table, id }) => table === 'sessions' && id === sessionId(session)),
  );
  return { subject, positions, state, sessions: [session.id] };
}

/** One thought with its call; of the thoughts before it only the exit rows, whose results show hashes and no content. */
async function selectThought(tx: Reader, subject: string): Promise<Selection> {
  const id = parseId(THOUGHTS, subject);
  const thought =
    id === undefined
      ? undefined
      : await tx.get<{ task_id: number; chain_position: number; position: number }>(
          'SELECT task_id, chain_position, position FROM thoughts WHERE id = ?',
          id,
        );
  if (id === undefined || thought === undefined) throw new Error(`There is no thought ${subject}.`);
  const earlier = await ids(
    tx,
    'SELECT position AS id FROM thoughts WHERE task_id = ? AND chain_position < ?',
    thought.task_id,
    thought.chain_position,
  );
  const row = await readRow(tx, thought.position);
  const own = row === undefined ? [thought.position] : await bothRows(tx, row);
  return {
    subject,
    positions: sorted([...earlier, ...own]),
    state: [{ table: THOUGHTS, ids: [id] }],
    sessions: [],
  };
}

/** The exit rows that wrote these rows last. */
async function writers(tx: Reader, state: Selection['state']): Promise<Set<number>> {
  const positions = new Set<number>();
  for (const { table, ids: wanted } of state) {
    const sql = `SELECT position AS id FROM ${table.name} WHERE id IN (SELECT value FROM json_each(?))`;
    for (const position of await ids(tx, sql, JSON.stringify(wanted))) positions.add(position);
  }
  return positions;
}

interface ScannedRow {
  readonly position: number;
  readonly text: string;
  readonly body: string | null;
}

const PAGE = 1_000;

/**
 * Reads the log once, a page at a time, and keeps the positions of both rows of every call that ends in one of `exits`
 * or that `concerns` says yes to. An exit row always comes after its enter row, so one pass is enough.
 */
async function findCalls(
  tx: Reader,
  exits: ReadonlySet<number>,
  concerns: (row: AuditRow, args: Readonly<Record<string, unknown>>) => boolean,
): Promise<readonly number[]> {
  const found = new Set<number>();
  let after = 0;
  for (;;) {
    const page = await tx.all<ScannedRow>(
      `SELECT a.position, a.text, p.body FROM actions a LEFT JOIN action_payloads p ON p.position = a.position
       WHERE a.position > ? ORDER BY a.position LIMIT ?`,
      after,
      PAGE,
    );
    for (const { position, text, body } of page) {
      const row = JSON.parse(text) as AuditRow;
      const args = row.stage === 'enter' ? argumentsOf(body) : {};
      if (!found.has(row.sequence_no) && !exits.has(position) && !concerns(row, args)) continue;
      found.add(row.sequence_no).add(position);
    }
    after = page.at(-1)?.position ?? after;
    if (page.length < PAGE) return sorted(found);
  }
}

function argumentsOf(body: string | null): Readonly<Record<string, unknown>> {
  return body === null ? {} : (JSON.parse(body) as Readonly<Record<string, unknown>>);
}

async function readRow(tx: Reader, position: number): Promise<AuditRow | undefined> {
  const stored = await tx.get<{ text: string }>('SELECT text FROM actions WHERE position = ?', position);
  return stored === undefined ? undefined : (JSON.parse(stored.text) as AuditRow);
}

/** Enter and exit of the call a row belongs to. */
async function bothRows(tx: Reader, row: AuditRow): Promise<readonly number[]> {
  return await ids(
    tx,
    'SELECT position AS id FROM actions WHERE position >= ? AND sequence_no = ? ORDER BY position LIMIT 2',
    row.sequence_no,
    row.sequence_no,
  );
}

async function exists(tx: Reader, table: StateTable, id: number): Promise<boolean> {
  return (await tx.get(`SELECT 1 AS found FROM ${table.name} WHERE id = ?`, id)) !== undefined;
}

async function ids(tx: Reader, sql: string, ...params: readonly (string | number)[]): Promise<number[]> {
  return sorted((await tx.all<{ id: number }>(sql, ...params)).map(({ id }) => id));
}

function sorted(numbers: Iterable<number>): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}
