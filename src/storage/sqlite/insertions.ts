import { isBytes, type SqlList, type SqlValue } from '../engine.ts';

/** A row that is to be stored. */
export interface NewRow {
  readonly table: string;
  readonly columns: readonly string[];
  readonly params: SqlList;
}

/** A statement that stores some rows. */
interface Insertion {
  readonly sql: string;
  readonly params: SqlList;
  readonly count: number;
}

/** How many rows one statement stores: a few sizes, so that each is prepared once. A statement costs as much as half a row. */
const ROWS_AT_ONCE = [32, 16, 8, 4, 2, 1];

/** The statements that store rows of one table, in their order. */
export function insertions(rows: readonly NewRow[]): Insertion[] {
  const found: Insertion[] = [];
  let from = 0;
  for (const count of ROWS_AT_ONCE)
    for (; rows.length - from >= count; from += count) found.push(insertion(rows.slice(from, from + count)));
  return found;
}

/** How so many rows of a table are stored: in some columns all have the same value, which is handed over once. */
interface Form {
  readonly sql: string;
  readonly shared: readonly number[];
  readonly own: readonly number[];
}

/** By table and number of rows: putting a statement together takes longer than running it. */
const forms = new Map<string, Form>();

/** SQLite takes half of its time for a new task to take over its values, and most new tasks have most of them in common. */
function insertion(rows: readonly NewRow[]): Insertion {
  const [first, count] = [rows[0]!, rows.length];
  const key = `${first.table} ${count}`;
  const isShared = (column: number) => rows.every(({ params }) => params[column] === first.params[column]);
  let form = forms.get(key) ?? formOf(first, count, sharable(first, count));
  // A column in which rows have differed once is not looked at again, or there could be any number of statements.
  if (!form.shared.every(isShared)) form = formOf(first, count, form.shared.filter(isShared));
  forms.set(key, form);
  const params: SqlValue[] = [];
  for (const column of form.shared) params.push(first.params[column]!);
  for (const row of rows) for (const column of form.own) params.push(row.params[column]!);
  return { sql: form.sql, params, count };
}

/** From so many rows of so many columns on, it pays to look for values that they share. */
const [SHARING_ROWS, SHARING_COLUMNS] = [4, 12];

function sharable({ table, columns }: NewRow, count: number): number[] {
  if (count < SHARING_ROWS || columns.length < SHARING_COLUMNS) return [];
  return [...columns.keys()].filter((column) => {
    const name = columns[column]!;
    return name !== 'id' && !isBytes(table, name);
  });
}

function formOf({ table, columns }: NewRow, count: number, shared: readonly number[]): Form {
  const all = [...columns.keys()];
  const own = all.filter((column) => !shared.includes(column));
  const marks = (some: readonly number[]) =>
    `(${some.map((column) => markOf(table, columns[column]!)).join(', ')})`;
  const into = `INSERT INTO ${table} (${columns.join(', ')})`;
  const rows = `VALUES ${Array(count).fill(marks(own)).join(', ')}`;
  if (shared.length === 0) return { sql: `${into} ${rows}`, shared, own };
  const nameOf = (column: number) =>
    shared.includes(column)
      ? `shared.column${shared.indexOf(column) + 1}`
      : `own.column${own.indexOf(column) + 1}`;
  // CROSS JOIN: the rows stay in their order.
  const from = `(VALUES ${marks(shared)}) AS shared CROSS JOIN (${rows}) AS own`;
  return { sql: `${into} SELECT ${all.map(nameOf).join(', ')} FROM ${from}`, shared, own };
}

function markOf(table: string, column: string): string {
  return isBytes(table, column) ? 'unhex(?)' : '?';
}
