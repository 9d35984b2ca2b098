import { asError } from '../../errors.ts';
import { rowText, type StateTable } from '../../log/tables.ts';
import type { Reader, SqlValue } from '../../storage/engine.ts';
import { DamagedSource, type SourceRow, type SourceText } from '../source.ts';

/** Rows read at a time. */
export const PAGE = 500;

export interface StoredRow {
  readonly position: number;
  readonly text: SqlValue;
  readonly content_hash: SqlValue;
  readonly chain_hash: SqlValue;
}

/** Reads rows of a database as they are hashed. Whatever is not a text of exactly its bytes reads as none. */
export class Cells {
  readonly #tx: Reader;

  constructor(tx: Reader) {
    this.#tx = tx;
  }

  /** A reader whose failures are told from mistakes of the verifier: a query that fails means a file that cannot be read. */
  from(table: string): Reader {
    return noticingDamage(this.#tx, table);
  }

  async origin(): Promise<string | undefined> {
    const sql = 'SELECT origin FROM log ORDER BY id LIMIT 1';
    const row = await this.from('log').get<{ origin: SqlValue }>(sql);
    return row === undefined ? undefined : String(row.origin);
  }

  /** The text of an audit row, whatever it is. */
  async textAt(position: number): Promise<SqlValue | undefined> {
    const sql = 'SELECT text FROM actions WHERE position = ?';
    return (await this.from('actions').get<{ text: SqlValue }>(sql, position))?.text;
  }

  /** The rows whose column, with which `select` ends, has one of these values. */
  async among<T extends object>(table: string, select: string, values: readonly SqlValue[]): Promise<T[]> {
    const found: T[] = [];
    for (const page of pagesOf(values)) {
      const { width, marks } = WIDTHS.find((one) => one.width >= page.length) ?? { width: PAGE, marks: '' };
      const padding = Array.from({ length: width - page.length }, () => null);
      found.push(...(await this.from(table).all<T>(`${select} IN (${marks})`, ...page, ...padding)));
    }
    return found;
  }

  /** Audit rows with what lies beside them. */
  async withPayloads(rows: readonly StoredRow[], kept: readonly StoredPayload[]): Promise<SourceRow[]> {
    const beside = new Map(kept.map((payload) => [payload.position, payload]));
    const page: SourceRow[] = [];
    for (const row of rows) {
      const payload = beside.get(row.position);
      // Waiting for what is at hand would cost more than the rest of this loop.
      page.push(areTexts(row, payload) ? asRead(row, payload) : await this.#readOdd(row, payload));
    }
    return page;
  }

  async texts(digests: readonly string[]): Promise<ReadonlyMap<string, SourceText>> {
    const tx = this.from('texts');
    const found = new Map<string, SourceText>();
    const select = 'SELECT digest, salt, text FROM texts WHERE digest';
    for (const { digest, salt, text } of await this.among<StoredText>('texts', select, [
      ...new Set(digests),
    ])) {
      const cell = { table: 'texts', key: 'digest', id: digest, column: 'text' };
      const exact = isPlain(text) ? text : ((await this.#exact(tx, cell, text)) ?? NO_TEXT);
      found.set(String(digest), { salt: textOf(salt), text: exact });
    }
    return found;
  }

  async states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const tx = this.from(table.name);
    const found = new Map<number, string>();
    const select = `SELECT ${table.facts.join(', ')} FROM ${table.name} WHERE id`;
    for (const row of await this.among<Readonly<Record<string, SqlValue>>>(table.name, select, ids)) {
      const text = stateText(table, row);
      found.set(Number(row.id), isPlain(text) ? text : await this.#exactState(tx, table, row, text));
    }
    return found;
  }

  /** A row with something in it that may not be what it reads as. */
  async #readOdd(row: StoredRow, payload: StoredPayload | undefined): Promise<SourceRow> {
    const cell = { table: 'actions', key: 'position', id: row.position, column: 'text' };
    const text = await this.#exact(this.from('actions'), cell, row.text);
    const read = { ...asRead(row, undefined), text };
    if (payload === undefined) return read;
    const beside = { table: 'action_payloads', key: 'position', id: row.position, column: 'body' };
    const body = await this.#exact(this.from('action_payloads'), beside, payload.body);
    return { ...read, payload: { salt: textOf(payload.salt), body: body ?? NO_TEXT } };
  }

  async #exactState(
    tx: Reader,
    table: StateTable,
    row: Readonly<Record<string, SqlValue>>,
    text: string,
  ): Promise<string> {
    const odd = new Set<string>();
    for (const column of table.facts) {
      const value = row[column] ?? null;
      const cell = { table: table.name, key: 'id', id: row.id ?? null, column };
      if (typeof value === 'string' && (await this.#exact(tx, cell, value)) === undefined) odd.add(column);
    }
    return odd.size === 0 ? text : textWithout(table, row, (column) => odd.has(column));
  }

  /** The text of a cell; undefined if its bytes are not those of the text, or it is not a text at all. */
  async #exact(tx: Reader, { table, key, id, column }: Cell, value: SqlValue): Promise<string | undefined> {
    if (typeof value !== 'string') return undefined;
    if (isPlain(value)) return value;
    // The engine compares bytes, and what it is given here is UTF-8.
    const same = await tx.get(`SELECT 1 AS same FROM ${table} WHERE ${key} = ? AND ${column} = ?`, id, value);
    return same === undefined ? undefined : value;
  }
}

export interface StoredPayload {
  readonly position: number;
  readonly salt: SqlValue;
  readonly body: SqlValue;
}

function areTexts({ text }: StoredRow, payload: StoredPayload | undefined): boolean {
  return isPlain(text) && (payload === undefined || isPlain(payload.body));
}

function asRead(
  { position, text, content_hash, chain_hash }: StoredRow,
  payload: StoredPayload | undefined,
): SourceRow {
  const read = {
    position,
    text: textOf(text),
    content_hash: textOf(content_hash),
    chain_hash: textOf(chain_hash),
  };
  if (payload === undefined) return read;
  return { ...read, payload: { salt: textOf(payload.salt), body: textOf(payload.body) } };
}

function stateText(table: StateTable, row: Readonly<Record<string, SqlValue>>): string {
  try {
    return rowText(table, row);
  } catch {
    // A blob, or a number that has no JSON text: no call wrote it.
    return textWithout(table, row, (column) => !isFact(row[column] ?? null));
  }
}

/** The row with nothing that any call could have written in the columns that are odd, so that they can be told from the others. */
function textWithout(
  table: StateTable,
  row: Readonly<Record<string, SqlValue>>,
  isOdd: (column: string) => boolean,
): string {
  const readable = table.facts.map((column) => [column, isOdd(column) ? NO_TEXT : (row[column] ?? null)]);
  return rowText(table, Object.fromEntries(readable));
}

function isFact(value: SqlValue): boolean {
  if (typeof value === 'number')
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return value === null || typeof value === 'string';
}

type StoredText = Readonly<Record<'digest' | 'salt' | 'text', SqlValue>>;

interface Cell {
  readonly table: string;
  readonly key: string;
  readonly id: SqlValue;
  readonly column: string;
}

/** Stands for what is not a text. No digest is that of this one: it is never written. */
const NO_TEXT = '\u0000';

/** A text as it is stored. Bytes that only read the same are none. */
export function textOf(value: SqlValue | undefined): string {
  return typeof value === 'string' ? value : NO_TEXT;
}

/** What stands in a decoded text for bytes that are not UTF-8, and for itself. Only then is it worth asking for them. */
const REPLACEMENT = '\ufffd';

function isPlain(text: SqlValue): text is string {
  return typeof text === 'string' && !text.includes(REPLACEMENT);
}

export function* pagesOf<T>(items: readonly T[], size = PAGE): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}

/** Lists of a few lengths only, the rest filled with NULL: each length is a statement to be compiled. */
const WIDTHS = [8, 64, PAGE].map((width) => ({
  width,
  marks: Array.from({ length: width }, () => '?').join(', '),
}));

/**
 * Rows by a key that grows, a page at a time. `select` ends where the condition on the key goes on. A page that leads no
 * further ends it: the file is damaged, or somebody stored numbers beyond 2^53, which are read alike.
 */
export async function* inPages<T extends object>(
  tx: Reader,
  select: string,
  key: string,
  params: readonly SqlValue[] = [],
  first: number | string = Number.NEGATIVE_INFINITY,
): AsyncGenerator<T> {
  const sql = `${select} ${key} > ? ORDER BY ${key} LIMIT ${PAGE}`;
  for (let last: SqlValue = first; ; ) {
    const page: readonly T[] = await tx.all<T>(sql, ...params, last);
    yield* page;
    const end: SqlValue | undefined = Reflect.get(page.at(-1) ?? {}, key);
    if (page.length < PAGE || end === undefined || !isBehind(end, last)) return;
    last = end;
  }
}

function isBehind(one: SqlValue, other: SqlValue): boolean {
  return typeof one === 'string' ? one > String(other) : Number(one) > Number(other);
}

function noticingDamage(tx: Reader, table: string): Reader {
  async function noticing<T>(query: Promise<T>): Promise<T> {
    try {
      return await query;
    } catch (thrown) {
      throw new DamagedSource(table, asError(thrown).message, { cause: thrown });
    }
  }
  return {
    get: (sql, ...params) => noticing(tx.get(sql, ...params)),
    all: (sql, ...params) => noticing(tx.all(sql, ...params)),
  };
}
