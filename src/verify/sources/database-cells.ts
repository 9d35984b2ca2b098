import { asError } from '../../errors.ts';
import { rowText, type StateTable } from '../../log/tables.ts';
import type { Reader, Row, SqlValue } from '../../storage/engine.ts';
import type { Report } from '../finding.ts';
import { DamagedSource, type SourceRow, type SourceText, type Walked } from '../source.ts';

/** What the parts of the rest of a database are checked with. */
export interface Rest {
  readonly from: (table: string) => Reader;
  readonly walked: Walked;
  readonly report: Report;
}

/** Checks of the rest, by the table that each is about. */
export type Parts = Readonly<Record<string, (rest: Rest) => Promise<void>>>;

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
    const beside = new Map<number, StoredPayload>();
    for (const payload of kept) beside.set(payload.position, payload);
    const page: SourceRow[] = [];
    for (const row of rows) {
      const payload = beside.get(row.position);
      // Waiting for what is at hand would cost more than the rest of this loop.
      const isOdd = !isPlain(row.text) || (payload !== undefined && !isPlain(payload.body));
      page.push(isOdd ? await this.#readOdd(row, payload) : asRead(row, payload));
    }
    return page;
  }

  async texts(digests: readonly string[]): Promise<ReadonlyMap<string, SourceText>> {
    const found = new Map<string, SourceText>();
    const select = 'SELECT digest, salt, text FROM texts WHERE digest';
    for (const row of await this.among<Row>('texts', select, [...new Set(digests)])) {
      const { text } = isPlain(row.text) ? row : await this.#exact('texts', 'digest', row, ['text']);
      found.set(String(row.digest), { salt: textOf(row.salt), text: textOf(text) });
    }
    return found;
  }

  async states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const found = new Map<number, string>();
    const select = `SELECT ${table.facts.join(', ')} FROM ${table.name} WHERE id`;
    for (const row of await this.among<Row>(table.name, select, ids)) {
      const text = stateText(table, row);
      const exact = async () => rowText(table, await this.#exact(table.name, 'id', row, table.facts));
      found.set(Number(row.id), isPlain(text) ? text : await exact());
    }
    return found;
  }

  /** A row with something in it that may not be what it reads as. */
  async #readOdd(row: StoredRow, payload: StoredPayload | undefined): Promise<SourceRow> {
    const { text } = await this.#exact('actions', 'position', { ...row }, ['text']);
    const { body = null } =
      payload === undefined ? {} : await this.#exact('action_payloads', 'position', { ...payload }, ['body']);
    const read = asRead(row, payload === undefined ? undefined : { ...payload, body });
    return { ...read, text: typeof text === 'string' && text !== NO_TEXT ? text : undefined };
  }

  /** The row with NO_TEXT for whatever no call could have written, so that these columns can be told from the others. */
  async #exact(table: string, key: string, row: Row, columns: readonly string[]): Promise<Row> {
    const odd: Record<string, string> = {};
    for (const column of columns) {
      const value = row[column] ?? null;
      if (isPlain(value) || isFact(value)) continue;
      // The engine compares bytes, and what it is given here is UTF-8.
      const sql = `SELECT 1 AS same FROM ${table} WHERE ${key} = ? AND ${column} = ?`;
      const isText = typeof value === 'string';
      if (isText && (await this.from(table).get(sql, row[key] ?? null, value)) !== undefined) continue;
      odd[column] = NO_TEXT;
    }
    return { ...row, ...odd };
  }
}

export interface StoredPayload {
  readonly position: number;
  readonly salt: SqlValue;
  readonly body: SqlValue;
}

function asRead(
  { position, text, content_hash, chain_hash }: StoredRow,
  payload: StoredPayload | undefined,
): SourceRow {
  return {
    position,
    text: textOf(text),
    content_hash: textOf(content_hash),
    chain_hash: textOf(chain_hash),
    ...(payload && { payload: { salt: textOf(payload.salt), body: textOf(payload.body) } }),
  };
}

/** Undefined where there is a blob, or a number that has no JSON text. */
function stateText(table: StateTable, row: Row): string | undefined {
  try {
    return rowText(table, row);
  } catch {
    return undefined;
  }
}

/** Whether it is nothing, or a number that has a JSON text. */
function isFact(value: SqlValue): boolean {
  if (value === null) return true;
  return (
    typeof value === 'number' &&
    (Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value))
  );
}

/** Stands for what is not a text. No digest is that of this one: it is never written. */
const NO_TEXT = '\u0000';

/** A text as it is stored. Bytes that only read the same are none. */
export function textOf(value: SqlValue | undefined): string {
  return typeof value === 'string' ? value : NO_TEXT;
}

/** What stands in a decoded text for bytes that are not UTF-8, and for itself. Only then is it worth asking for them. */
const REPLACEMENT = '\ufffd';

function isPlain(text: SqlValue | undefined): text is string {
  return typeof text === 'string' && !text.includes(REPLACEMENT);
}

export function* pagesOf<T>(items: readonly T[], size = PAGE): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}

/** Lists of a few lengths only, the rest filled with NULL: each length is a statement to be compiled. */
const WIDTHS = [8, 32, 128, 256, PAGE].map((width) => ({
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
