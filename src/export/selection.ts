import { ColibriError } from '../errors.ts';
import { formatId, parseId, STATE_TABLES, type StateTable, TASKS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import { Cells } from '../verify/sources/database-cells.ts';
import { rowsBehind, withEnters } from '../verify/sources/part.ts';

/** The audit rows that prove a record, by position, in order. Throws where there is no such record. */
export async function select(tx: Reader, subject: string): Promise<number[]> {
  if (subject.startsWith('#')) return await bothRowsOf(tx, subject);
  const table = STATE_TABLES.find(({ prefix }) => 'TAΘ'.includes(prefix) && subject.startsWith(`${prefix}-`));
  if (table === undefined)
    throw new Error(`"${subject}" is no id. Give T-0001, Θ-0001, A-0001 or #12 for an audit row.`);
  const positions = await rowsBehind(tx, table, await requireId(tx, table, subject));
  const sql = 'SELECT position FROM actions WHERE position';
  const there = await new Cells(tx).among<{ position: number }>('actions', sql, positions);
  const missing = positions.find((one) => !there.some(({ position }) => position === one));
  if (missing !== undefined)
    throw new Error(`There is no audit row ${missing} for ${subject}. "colibri verify" tells more.`);
  return await withErasures(tx, positions);
}

/** The calls by which a key that did not create the log became one of its keys, added to what was selected. */
export async function withKeyActs(tx: Reader, positions: readonly number[]): Promise<number[]> {
  const acts = await exitsOf(tx, "'owner_adopt', 'owner_trust', 'key_join'");
  return await withErasures(tx, await withEnters(new Cells(tx), [...positions, ...acts]));
}

/** Both rows of a call, by either of them. */
async function bothRowsOf(tx: Reader, subject: string): Promise<number[]> {
  const position = Number(subject.slice(1));
  const row = await tx.get<{ stage: string; sequence_no: number }>(
    'SELECT stage, sequence_no FROM actions WHERE position = ?',
    position,
  );
  if (row === undefined) throw new Error(`There is no audit row ${position}.`);
  const sql = 'SELECT position FROM actions WHERE position > ? AND sequence_no = ? ORDER BY position LIMIT 1';
  const exit =
    row.stage === 'exit' ? undefined : await tx.get<{ position: number }>(sql, position, row.sequence_no);
  return await withErasures(
    tx,
    await withEnters(new Cells(tx), [position, ...(exit ? [exit.position] : [])]),
  );
}

/** Texts that the owner has erased are absent; the calls that say so explain it. */
async function withErasures(tx: Reader, positions: readonly number[]): Promise<number[]> {
  const cells = new Cells(tx);
  const wanted = new Set(await digestsAt(cells, positions));
  for (const digest of (await cells.texts([...wanted])).keys()) wanted.delete(digest);
  if (wanted.size === 0) return [...positions];
  const explaining: number[] = [];
  for (const exit of await exitsOf(tx, "'owner_erase'"))
    if ((await digestsAt(cells, [exit])).some((digest) => wanted.has(digest))) explaining.push(exit);
  return await withEnters(cells, [...positions, ...explaining]);
}

/** What stands in the payloads of rows in the place of a text, and whatever looks like it. */
export async function digestsAt(cells: Cells, positions: readonly number[]): Promise<string[]> {
  const sql = 'SELECT body FROM action_payloads WHERE position';
  const bodies = await cells.among<{ body: unknown }>('action_payloads', sql, positions);
  return bodies.flatMap(({ body }) =>
    [...String(body).matchAll(/"([0-9a-f]{64})"/g)].map(([, it = '']) => it),
  );
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
async function exitsOf(tx: Reader, tools: string): Promise<number[]> {
  const sql = `SELECT position FROM actions WHERE stage = 'exit' AND outcome = 'ok' AND tool IN (${tools}) ORDER BY position`;
  return (await tx.all<{ position: number }>(sql)).map(({ position }) => position);
}
