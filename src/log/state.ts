import { ColibriError } from '../errors.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { Reader, SqlValue, Transaction } from '../storage/engine.ts';
import type { CallContext, Effect } from '../tool.ts';

/** A table whose rows the log vouches for. Each has an integer `id`, a random `salt` and the `position` that wrote it last. */
export interface StateTable {
  readonly name: string;
  /** One row of it, in a sentence. */
  readonly noun: string;
  /** Shown before the number: `T-0001`. */
  readonly prefix: string;
  /** The tool that makes its rows. */
  readonly createdBy: string;
}

/** A row without what the state writer adds to it. */
export type StateValues = Readonly<Record<string, SqlValue>>;

const ID_DIGITS = 4;

/** `T-0001`; four digits, growing beyond. */
export function formatId(table: StateTable, id: number): string {
  return `${table.prefix}-${String(id).padStart(ID_DIGITS, '0')}`;
}

/** The number inside an id, or undefined for a text that is no id of this table. */
export function parseId(table: StateTable, text: string): number | undefined {
  if (!text.startsWith(`${table.prefix}-`)) return undefined;
  const digits = text.slice(table.prefix.length + 1);
  const id = Number(digits);
  return Number.isSafeInteger(id) && id > 0 && formatId(table, id) === text ? id : undefined;
}

/** The next number of a table. Rows are never deleted, so the largest is the last. */
export async function nextId(tx: Transaction, table: StateTable): Promise<number> {
  const row = await tx.get<{ id: number | null }>(`SELECT max(id) AS id FROM ${table.name}`);
  return (row?.id ?? 0) + 1;
}

/** Inserts a row and reports it as an effect of the call. */
export async function insertState(
  tx: Transaction,
  call: CallContext,
  table: StateTable,
  values: StateValues & { readonly id: number },
): Promise<void> {
  const row = { ...values, position: call.position, salt: call.salt() };
  const columns = Object.keys(row);
  const marks = columns.map(() => '?').join(', ');
  await tx.run(
    `INSERT INTO ${table.name} (${columns.join(', ')}) VALUES (${marks})`,
    ...Object.values<SqlValue>(row),
  );
  report(call, table, row);
}

/** Changes some columns of a row that was read in this transaction, and reports the whole row as an effect. */
export async function updateState<R extends StateValues>(
  tx: Transaction,
  call: CallContext,
  table: StateTable,
  before: R & { readonly id: number },
  changes: Partial<R>,
): Promise<R> {
  const row = { ...before, ...changes, position: call.position };
  const columns = [...Object.keys(changes), 'position'];
  const values = columns.map((column): SqlValue => row[column] ?? null);
  const assignments = columns.map((column) => `${column} = ?`).join(', ');
  const { changes: count } = await tx.run(
    `UPDATE ${table.name} SET ${assignments} WHERE id = ?`,
    ...values,
    before.id,
  );
  if (count !== 1) throw new Error(`${table.name} ${before.id} vanished inside a transaction`);
  report(call, table, row);
  return row;
}

/** A second write of the same row in one call replaces the first: the log speaks of rows after the call. */
function report(call: CallContext, table: StateTable, row: StateValues & { readonly id: number }): void {
  const effect = describeEffect(table, row);
  const known = call.effects.findIndex((other) => other.table === effect.table && other.id === effect.id);
  if (known === -1) call.effects.push(effect);
  else call.effects[known] = effect;
}

/** What the log says of a row: digest of the whole, and four hex digits for each column. */
export function describeEffect(table: StateTable, row: StateValues & { readonly id: number }): Effect {
  return {
    table: table.name,
    id: formatId(table, row.id),
    hash: sha256Hex(canonicalJson(row)),
    columns: columnMarks(row).join(''),
  };
}

/** One mark a column, by name. Salted with the row's salt, so that an erased row cannot be guessed back from them. */
export function columnMarks(row: StateValues): string[] {
  return Object.keys(row)
    .sort()
    .map((column) => sha256Hex(`${row.salt}\n${column}\n${canonicalJson(row[column])}`).slice(0, 4));
}

/** For an id that leads nowhere: an error with the existing ones nearest to it, so that the next try can be right. */
export async function notFound(
  tx: Reader,
  table: StateTable,
  code: 'ERR_TASK_NOT_FOUND' | 'ERR_SESSION_NOT_FOUND',
  text: string,
  field: string,
): Promise<ColibriError> {
  const wanted = Number(/\d{1,15}/.exec(text)?.[0] ?? Number.MAX_SAFE_INTEGER);
  const rows = await tx.all<{ id: number }>(
    `SELECT id FROM (SELECT id FROM ${table.name} WHERE id <= ? ORDER BY id DESC LIMIT 3)
     UNION SELECT id FROM (SELECT id FROM ${table.name} WHERE id > ? ORDER BY id LIMIT 2)`,
    wanted,
    wanted,
  );
  const nearest = rows.map(({ id }) => formatId(table, id));
  const hint =
    nearest.length === 0
      ? `There is none yet: ${table.createdBy} makes one.`
      : `The nearest there are: ${nearest.join(', ')}.`;
  return new ColibriError(code, `There is no ${table.noun} ${JSON.stringify(text)} (${field}). ${hint}`, {
    field,
    id: text,
    nearest,
  });
}
