import { ColibriError } from '../errors.ts';
import { formatId, parseId, SESSIONS, STATE_TABLES, type StateTable, TASKS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import { Cells } from '../verify/sources/database-cells.ts';
import { isCount, members } from '../verify/sources/forms.ts';
import { erasingRows, rowsBehind, withEnters } from '../verify/sources/part.ts';
import { effectsOf, statesNamed } from '../verify/sources/rows.ts';

/** What proves one record: audit rows, in order, and rows of state by table and id, as the texts that are hashed. */
export type Selection = Awaited<ReturnType<typeof closed>>;

/** Finds what proves a record. Throws where there is no such record, or rows that it rests on are gone. */
export async function select(tx: Reader, subject: string): Promise<Selection> {
  const table = STATE_TABLES.find(({ prefix }) => 'TAΘ'.includes(prefix) && subject.startsWith(`${prefix}-`));
  if (table === undefined && !/^#\d{1,15}$/.test(subject))
    throw new Error(`"${subject}" is not an id. Give T-0001, Θ-0001, A-0001 or #12 for an audit row.`);
  const chosen =
    table === undefined
      ? await rowsOfCall(tx, Number(subject.slice(1)))
      : await rowsBehind(tx, table, await requireId(tx, table, subject));
  const selection = await closed(tx, chosen);
  const sql = 'SELECT position FROM actions WHERE position';
  const there = await new Cells(tx).among('actions', sql, selection.positions);
  const known = new Set(there.map(([position]) => position));
  const missing = selection.positions.find((position) => !known.has(position));
  if (missing === undefined) return selection;
  throw new Error(`There is no audit row ${missing} for ${subject}. "colibri verify" has the details.`);
}

/** The calls by which a key that did not create the log became one of its keys, added to what was selected. */
export async function addKeyActs(tx: Reader, { positions }: Selection): Promise<Selection> {
  const acts = await exitsOf(tx, "'owner_adopt', 'owner_trust', 'key_join'");
  return await closed(tx, [...positions, ...acts]);
}

/** A row, and the exit row of its call. */
export async function rowsOfCall(tx: Reader, position: number): Promise<number[]> {
  const exit = await tx.get<{ position: number }>(
    `SELECT x.position FROM audit_rows e JOIN audit_rows x ON x.position > e.position AND x.sequence_no = e.sequence_no
     WHERE e.position = ? AND e.stage = 'enter' ORDER BY x.position LIMIT 1`,
    position,
  );
  return exit === undefined ? [position] : [position, exit.position];
}

/**
 * Whatever a chosen call wrote belongs to it, and with each row of state the call that wrote it last: so that every effect
 * that counts has its row, and every row its effect. Texts that the owner has erased are absent; the calls that say so
 * explain it.
 */
export async function closed(tx: Reader, chosen: Iterable<number>) {
  const cells = new Cells(tx);
  const sql = 'SELECT text FROM actions WHERE position';
  for (let positions = await withEnters(cells, chosen); ; ) {
    const rows = await cells.among('actions', sql, positions);
    const effects = rows.flatMap(([text]) => effectsOf(members(String(text))));
    const state = await statesNamed(cells, effects);
    const writers = [...state.values()].flatMap((rows) =>
      [...rows.values()].map((row) => members(row).position),
    );
    const more = [...writers.filter(isCount), ...(await erasingRows(cells, positions))];
    const all = new Set([...positions, ...more.filter((position) => position > 0)]);
    if (all.size === positions.length) return { positions, state };
    positions = await withEnters(cells, all);
  }
}

async function requireId(tx: Reader, table: StateTable, subject: string): Promise<number> {
  const id = parseId(table, subject);
  if (id && (await tx.get(`SELECT 1 AS found FROM ${table.name} WHERE id = ?`, id)) !== undefined) return id;
  const last = (await tx.get<{ id: number | null }>(`SELECT max(id) AS id FROM ${table.name}`))?.id ?? 0;
  const hint = last === 0 ? 'There is none yet.' : `The last one is ${formatId(table, last)}.`;
  const message = `There is no ${table.noun} ${JSON.stringify(subject)}. ${hint}`;
  const code =
    table === TASKS ? 'ERR_TASK_NOT_FOUND' : table === SESSIONS ? 'ERR_SESSION_NOT_FOUND' : 'ERR_NOT_FOUND';
  throw new ColibriError(code, message, { id: subject });
}

/** Exit rows of calls of these tools that went well. Reads the log once. */
async function exitsOf(tx: Reader, tools: string): Promise<number[]> {
  const sql = `SELECT position FROM audit_rows WHERE stage = 'exit' AND outcome = 'ok' AND tool IN (${tools}) ORDER BY position`;
  return (await tx.all<{ position: number }>(sql)).map(({ position }) => position);
}
