import { sha256Hex } from '../../integrity/digest.ts';
import { type AuditRow, payloadHash } from '../../log/row.ts';
import { parseId, type StateTable } from '../../log/state.ts';
import { TASKS } from '../../log/tables.ts';
import { readRowText } from '../../log/verify/row-text.ts';
import type { Reader } from '../../storage/engine.ts';

/** A row the log says was written and that is not there any more. */
export interface LostRow {
  readonly id: number;
  /** Position of the audit row that wrote it. */
  readonly writtenAt: number;
  /** What the call answered, where that was kept and is still what was answered. */
  readonly task_id: number | undefined;
  readonly chain_position: number | undefined;
  readonly hash: string | undefined;
}

/** Rows read between two pauses. */
const STRETCH = 2_000;

/**
 * Where the next stretch of rows ends; undefined if there are none. Counted in rows: with numbers alone, one that was forged
 * far away would make the way to it last for ever.
 */
export async function stretchEnd(
  tx: Reader,
  table: string,
  key: string,
  from: number,
  to: number = Number.MAX_SAFE_INTEGER,
): Promise<number | undefined> {
  const rows = `SELECT ${key} AS place FROM ${table} WHERE ${key} >= ? AND ${key} <= ? ORDER BY ${key} LIMIT ?`;
  const found = await tx.get<{ last: number | null }>(
    `SELECT max(place) AS last FROM (${rows})`,
    from,
    to,
    STRETCH,
  );
  const last = found?.last ?? undefined;
  return last === undefined || last < from ? undefined : last;
}

/**
 * Every lost row of a table whose rows are only ever added. Ids have no gaps, so the log is read only where ids are
 * missing, and behind the last row, where a cut would leave no gap.
 */
export async function lostRows(
  tx: Reader,
  table: StateTable,
  pause: () => Promise<void>,
): Promise<LostRow[]> {
  const head = await tx.get<{ position: number | null }>(
    'SELECT max(position) AS position FROM actions WHERE position <= ?',
    Number.MAX_SAFE_INTEGER,
  );
  const end = head?.position ?? 0;
  const lost = new Map<number, LostRow>();
  for (const { after, before } of await gapsIn(tx, table)) {
    // Positions that run backwards were tampered with: then the whole log is asked.
    const [first, last] = after > (before ?? end) ? [0, end] : [after, before ?? end];
    for (let from = first; from <= last; ) {
      const to = await stretchEnd(tx, 'actions', 'position', from, last);
      if (to === undefined) break;
      for (const row of await lostBetween(tx, table, from, to)) lost.set(row.id, row);
      // Past the numbers that are exact one more is the same.
      if (to + 1 <= from) break;
      from = to + 1;
      await pause();
    }
  }
  return [...lost.values()].sort((a, b) => a.id - b.id);
}

/** Stretches of the log in which a row that is missing must have been written. The last one is open. */
async function gapsIn(
  tx: Reader,
  table: StateTable,
): Promise<{ readonly after: number; readonly before: number | null }[]> {
  const { name } = table;
  // Without a condition SQLite counts the entries of the smallest index: 25 ms of 28 went into counting 80,000 thoughts.
  const ids = await tx.get<{ count: number; last: number | null }>(
    `SELECT (SELECT count(*) FROM ${name}) - (SELECT count(*) FROM ${name} WHERE id <= 0) AS count,
     (SELECT max(id) FROM ${name} WHERE id > 0) AS last`,
  );
  if (ids === undefined || ids.last === null) return [{ after: 0, before: null }];
  if (ids.count === ids.last) {
    const last = await tx.get<{ position: number }>(`SELECT position FROM ${name} WHERE id = ?`, ids.last);
    return [{ after: last?.position ?? 0, before: null }];
  }
  const gaps = await tx.all<{ after: number; before: number | null }>(
    `WITH here AS (SELECT id, position FROM ${name} WHERE id > 0)
     SELECT position AS after, (SELECT n.position FROM here n WHERE n.id > here.id ORDER BY n.id LIMIT 1) AS before
     FROM here WHERE NOT EXISTS (SELECT 1 FROM here n WHERE n.id = here.id + 1)`,
  );
  const first = await tx.get<{ id: number; position: number }>(
    `SELECT id, position FROM ${name} WHERE id > 0 ORDER BY id LIMIT 1`,
  );
  return first === undefined || first.id === 1 ? gaps : [{ after: 0, before: first.position }, ...gaps];
}

async function lostBetween(tx: Reader, table: StateTable, from: number, to: number): Promise<LostRow[]> {
  const writers = await tx.all<{ position: number; text: string; content_hash: string }>(
    'SELECT position, text, content_hash FROM actions WHERE position BETWEEN ? AND ? AND instr(text, ?) > 0',
    from,
    to,
    JSON.stringify(table.name),
  );
  const written = new Map<number, AuditRow>();
  for (const { text, content_hash } of writers) {
    if (typeof text !== 'string' || sha256Hex(text) !== content_hash) continue;
    const row = readRowText(text);
    for (const effect of row?.effects ?? []) {
      const id = effect.table === table.name ? parseId(table, effect.id) : undefined;
      if (row !== undefined && id !== undefined) written.set(id, row);
    }
  }
  const there = await tx.all<{ id: number }>(
    `SELECT id FROM ${table.name} WHERE id IN (SELECT value FROM json_each(?))`,
    JSON.stringify([...written.keys()]),
  );
  for (const { id } of there) written.delete(id);
  const lost: LostRow[] = [];
  for (const [id, row] of written) lost.push({ id, writtenAt: row.position, ...(await answerOf(tx, row)) });
  return lost;
}

/** What the call answered. It lies beside the log and may have been erased; what does not fit its digest is not believed. */
export async function answerOf(
  tx: Reader,
  row: AuditRow,
): Promise<Pick<LostRow, 'task_id' | 'chain_position' | 'hash'>> {
  const kept = await tx.get<{ salt: string; body: string }>(
    'SELECT salt, body FROM action_payloads WHERE position = ?',
    row.position,
  );
  const unknown = { task_id: undefined, chain_position: undefined, hash: undefined };
  if (kept === undefined || payloadHash(kept.salt, kept.body) !== row.result_hash) return unknown;
  const body = JSON.parse(kept.body) as { task_id?: string; chain_position?: number; hash?: string };
  const { chain_position, hash, task_id = '' } = body;
  return { task_id: parseId(TASKS, task_id), chain_position, hash };
}
