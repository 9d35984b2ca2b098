import { canonicalJson } from '../../integrity/canonical-json.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import type { Reader, SqlValue } from '../../storage/engine.ts';
import type { Effect } from '../../tool.ts';
import { formatId, parseId, type StateTable } from '../state.ts';
import { isStoredAs, mayHideBytes } from './bytes.ts';
import type { Finding, Report } from './finding.ts';
import { readRowText } from './row-text.ts';
import type { ReadRow } from './rows.ts';

export type StateRow = Readonly<Record<string, SqlValue>> & {
  readonly id: number;
  readonly position: number;
};

const PAGE = 500;

/** Every row that a page of the log says was written must be there, and not be older than that. */
export async function checkEffects(
  tx: Reader,
  tables: readonly StateTable[],
  rows: readonly ReadRow[],
  report: Report,
): Promise<void> {
  for (const table of tables) {
    const written = new Map<number, number>();
    for (const { at, row } of rows) {
      for (const effect of row.effects) {
        const id = effect.table === table.name ? parseId(table, effect.id) : undefined;
        if (id !== undefined) written.set(id, at);
      }
    }
    if (written.size > 0) await checkWritten(tx, table, written, report);
  }
}

async function checkWritten(
  tx: Reader,
  table: StateTable,
  written: ReadonlyMap<number, number>,
  report: Report,
): Promise<void> {
  const found = await tx.all<{ id: number; position: number }>(
    `SELECT id, position FROM ${table.name} WHERE id IN (SELECT value FROM json_each(?))`,
    JSON.stringify([...written.keys()]),
  );
  const positions = new Map(found.map((row) => [row.id, row.position]));
  for (const [id, writtenAt] of written) {
    const position = positions.get(id);
    const record = formatId(table, id);
    if (position === undefined) {
      const message = `${record} was written by audit row ${writtenAt} and is gone from ${table.name}.`;
      report({ kind: 'missing', table: table.name, record, position: writtenAt, message });
    } else if (position < writtenAt) {
      const message = `${record} is older than audit row ${writtenAt}, which changed it.`;
      report({
        kind: 'stale',
        table: table.name,
        record,
        position: writtenAt,
        columns: ['position'],
        message,
      });
    }
  }
}

/** Walks a whole table: every row must be what the log says was last written there. */
export async function checkTable(
  tx: Reader,
  table: StateTable,
  report: Report,
  breathe: () => Promise<void>,
): Promise<number> {
  // In the order of their names, so that a row as it is read has the order of its canonical form.
  const columns = (await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', table.name))
    .map((column) => column.name)
    .sort();
  await checkBeyond(tx, table, report);
  let last = Number.MIN_SAFE_INTEGER;
  let count = 0;
  for (;;) {
    const page = await tx.all<StateRow>(
      `SELECT ${columns.join(', ')} FROM ${table.name} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
      last,
      Number.MAX_SAFE_INTEGER,
      PAGE,
    );
    await checkRows(tx, table, page, report);
    count += page.length;
    last = page.at(-1)?.id ?? last;
    if (page.length < PAGE) return count;
    await breathe();
  }
}

/** Rows whose ids are no longer exact as numbers. A walk over them might never end. */
async function checkBeyond(tx: Reader, table: StateTable, report: Report): Promise<void> {
  const stray = await tx.all<{ id: string }>(
    `SELECT CAST(id AS TEXT) AS id FROM ${table.name} WHERE id <= ? OR id > ? LIMIT 1000`,
    Number.MIN_SAFE_INTEGER,
    Number.MAX_SAFE_INTEGER,
  );
  for (const { id } of stray) {
    const record = `${table.prefix}-${id}`;
    const message = `${record} has an id that Colibri never gives.`;
    report({ kind: 'stray', table: table.name, record, columns: ['id'], message });
  }
}

/** Compares rows with the effects that wrote them last, and names the columns that differ. */
export async function checkRows(
  tx: Reader,
  table: StateTable,
  rows: readonly StateRow[],
  report: Report,
): Promise<void> {
  const positions = JSON.stringify([...new Set(rows.map((row) => row.position))]);
  const writers = await tx.all<{ position: number; text: string; content_hash: string }>(
    'SELECT position, text, content_hash FROM actions WHERE position IN (SELECT value FROM json_each(?))',
    positions,
  );
  const effectsAt = new Map(writers.map((writer) => [writer.position, effectsOf(writer)]));
  for (const row of rows) {
    const effects = effectsAt.get(row.position) ?? [];
    if (effects === 'changed') report(uncheckable(table, row));
    else checkRow(table, row, effects, report);
    if (Object.values(row).some(isDoubtful)) await checkBytes(tx, table, row, report);
  }
}

function isDoubtful(value: SqlValue): value is string {
  return typeof value === 'string' && mayHideBytes(value);
}

/** A row that reads as it was written may still be of other bytes. */
async function checkBytes(tx: Reader, table: StateTable, row: StateRow, report: Report): Promise<void> {
  for (const [column, text] of Object.entries(row)) {
    if (!isDoubtful(text)) continue;
    if (await isStoredAs(tx, { table: table.name, key: 'id', id: row.id, column, text })) continue;
    const record = formatId(table, row.id);
    const message = `The bytes of ${column} in ${record} are no text in UTF-8.`;
    const base = { table: table.name, record, position: row.position };
    report({ ...base, kind: 'altered', columns: [column], message });
  }
}

/** The effects of an audit row, unless the row is not what it was hashed as. */
function effectsOf({
  text,
  content_hash,
}: {
  readonly text: string;
  readonly content_hash: string;
}): readonly Effect[] | 'changed' {
  if (typeof text !== 'string' || sha256Hex(text) !== content_hash) return 'changed';
  return readRowText(text)?.effects ?? 'changed';
}

function uncheckable(table: StateTable, { id, position }: StateRow): Finding {
  const record = formatId(table, id);
  const message = `${record} cannot be checked: audit row ${position}, which should have written it, was itself changed.`;
  return { kind: 'unexplained', table: table.name, record, position, message };
}

function checkRow(table: StateTable, row: StateRow, effects: readonly Effect[], report: Report): void {
  const record = formatId(table, row.id);
  const effect = effects.find((candidate) => candidate.table === table.name && candidate.id === record);
  const base = { table: table.name, record, position: row.position };
  if (effect === undefined) {
    const message = `${record} says that audit row ${row.position} wrote it, but that row does not say so.`;
    report({ ...base, kind: 'unexplained', columns: ['id', 'position'], message });
    return;
  }
  if (isWritten(row, effect.hash)) return;
  const actual = sha256Hex(jsonText(row));
  const columns = changedColumns(row, effect.columns);
  // Once in 65,536 times the mark of another value is the same; the digest of the row is not.
  const what = columns.length === 0 ? 'one of its columns' : columns.join(', ');
  const message = `${record} is not as audit row ${row.position} left it: ${what} changed.`;
  report({ ...base, kind: 'altered', columns, message, expected: effect.hash, actual });
}

/**
 * Whether a row is the one that was hashed. A row read in the order of its names is in canonical order already, which is
 * five times as fast as sorting it again. JSON writes infinity as null, so that no such number may get there.
 */
function isWritten(row: StateRow, hash: string): boolean {
  for (const value of Object.values(row)) if (value === Infinity || value === -Infinity) return false;
  return sha256Hex(JSON.stringify(row)) === hash || sha256Hex(jsonText(row)) === hash;
}

/** Canonical JSON, or what can never be one: no call wrote a value that has none. */
function jsonText(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch {
    return 'no JSON';
  }
}

/** Each column has a four-digit mark, salted with the row's salt; if all of them differ, it is the salt that changed. */
function changedColumns(row: StateRow, marks: string): string[] {
  const columns = Object.keys(row).sort();
  const changed = columns.filter((column, i) => {
    const mark = sha256Hex(`${row.salt}\n${column}\n${jsonText(row[column])}`).slice(0, 4);
    return mark !== marks.slice(4 * i, 4 * i + 4);
  });
  return changed.length >= columns.length - 1 ? ['salt'] : changed;
}
