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

interface Writing {
  readonly at: number;
  readonly effect: Effect;
}

/**
 * Follows the log and checks each row of state where the log last speaks of it, so that the file is read once. Keeps one
 * number a table; what the log never speaks of shows in the end as rows too many.
 */
export class StateWalk {
  readonly #report: Report;
  readonly #checked = new Map<string, number>();
  readonly #columns = new Map<string, string>();
  /** Rows found altered, by table and record: a second look must not report them twice. */
  readonly #told = new Set<string>();

  constructor(report: Report) {
    this.#report = report;
  }

  /** Every row that a page of the log says was written must be there, not be older than that, and be as it was written. */
  async follow(tx: Reader, tables: readonly StateTable[], rows: readonly ReadRow[]): Promise<void> {
    for (const table of tables) {
      const written = new Map<number, Writing>();
      for (const { at, row, isHashed } of rows) {
        if (!isHashed) continue;
        for (const effect of row.effects) {
          const id = effect.table === table.name ? parseId(table, effect.id) : undefined;
          if (id !== undefined) written.set(id, { at, effect });
        }
      }
      if (written.size > 0) await this.#checkWritten(tx, table, written);
    }
  }

  async #checkWritten(tx: Reader, table: StateTable, written: ReadonlyMap<number, Writing>): Promise<void> {
    const found = await tx.all<{ id: number; position: number }>(
      `SELECT id, position FROM ${table.name} WHERE id IN (SELECT value FROM json_each(?))`,
      JSON.stringify([...written.keys()]),
    );
    const positions = new Map(found.map((row) => [row.id, row.position]));
    const final: number[] = [];
    for (const [id, { at }] of written) {
      const position = positions.get(id);
      if (position === at) final.push(id);
      else if (position === undefined || position < at) this.#report(missingOrStale(table, id, at, position));
    }
    if (final.length > 0) await this.#checkFinal(tx, table, final, written);
  }

  /** Rows that nothing later in the log can have changed. */
  async #checkFinal(
    tx: Reader,
    table: StateTable,
    ids: readonly number[],
    written: ReadonlyMap<number, Writing>,
  ): Promise<void> {
    const rows = await tx.all<StateRow>(
      `SELECT ${await this.#columnsOf(tx, table)} FROM ${table.name} WHERE id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(ids),
    );
    const report: Report = (finding) => {
      this.#told.add(`${finding.table} ${finding.record}`);
      this.#report(finding);
    };
    for (const row of rows) {
      const effect = written.get(row.id)?.effect;
      await checkRow(tx, table, row, effect === undefined ? [] : [effect], report);
    }
    this.#checked.set(table.name, (this.#checked.get(table.name) ?? 0) + rows.length);
  }

  /** After the log has ended: rows that it does not speak of. */
  async checkRest(tx: Reader, table: StateTable, breathe: () => Promise<void>): Promise<void> {
    await checkBeyond(tx, table, this.#report);
    const found = await tx.get<{ count: number }>(`SELECT count(*) AS count FROM ${table.name}`);
    if (found?.count === (this.#checked.get(table.name) ?? 0)) return;
    await this.#checkAll(tx, table, breathe);
  }

  async #checkAll(tx: Reader, table: StateTable, breathe: () => Promise<void>): Promise<void> {
    const report: Report = (finding) => {
      if (!this.#told.has(`${finding.table} ${finding.record}`)) this.#report(finding);
    };
    for (let last = Number.MIN_SAFE_INTEGER; ; ) {
      const page = await tx.all<StateRow>(
        `SELECT ${await this.#columnsOf(tx, table)} FROM ${table.name} WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
        last,
        Number.MAX_SAFE_INTEGER,
        PAGE,
      );
      await checkRows(tx, table, page, report);
      const reached = page.at(-1)?.id ?? last;
      if (page.length < PAGE || reached <= last) return;
      last = reached;
      await breathe();
    }
  }

  /** In the order of their names, so that a row as it is read has the order of its canonical form. */
  async #columnsOf(tx: Reader, { name }: StateTable): Promise<string> {
    const known = this.#columns.get(name);
    if (known !== undefined) return known;
    const found = await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', name);
    const columns = found
      .map((column) => column.name)
      .sort()
      .join(', ');
    this.#columns.set(name, columns);
    return columns;
  }
}

function missingOrStale(table: StateTable, id: number, at: number, position: number | undefined): Finding {
  const record = formatId(table, id);
  const base = { table: table.name, record, position: at };
  if (position === undefined)
    return {
      ...base,
      kind: 'missing',
      message: `${record} was written by audit row ${at} and is gone from ${table.name}.`,
    };
  const message = `${record} is older than audit row ${at}, which changed it.`;
  return { ...base, kind: 'stale', columns: ['position'], message };
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
    else await checkRow(tx, table, row, effects, report);
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

async function checkRow(
  tx: Reader,
  table: StateTable,
  row: StateRow,
  effects: readonly Effect[],
  report: Report,
): Promise<void> {
  const record = formatId(table, row.id);
  const effect = effects.find((candidate) => candidate.table === table.name && candidate.id === record);
  const base = { table: table.name, record, position: row.position };
  if (effect === undefined) {
    const message = `${record} says that audit row ${row.position} wrote it, but that row does not say so.`;
    report({ ...base, kind: 'unexplained', columns: ['id', 'position'], message });
    return;
  }
  // A row read in the order of its names is in canonical order already, which is five times as fast as sorting it again.
  const text = JSON.stringify(row);
  if (mayHideBytes(text)) await checkBytes(tx, table, row, report);
  if (!holdsInfinity(row) && (sha256Hex(text) === effect.hash || sha256Hex(jsonText(row)) === effect.hash))
    return;
  const actual = sha256Hex(jsonText(row));
  const columns = changedColumns(row, effect.columns);
  // Once in 65,536 times the mark of another value is the same; the digest of the row is not.
  const what = columns.length === 0 ? 'one of its columns' : columns.join(', ');
  const message = `${record} is not as audit row ${row.position} left it: ${what} changed.`;
  report({ ...base, kind: 'altered', columns, message, expected: effect.hash, actual });
}

/** JSON writes infinity as null, so that no such number may get there. */
function holdsInfinity(row: StateRow): boolean {
  for (const column in row) if (row[column] === Infinity || row[column] === -Infinity) return true;
  return false;
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
