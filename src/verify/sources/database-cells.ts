import { asError } from '../../errors.ts';
import { HASH_CHARS } from '../../integrity/digest.ts';
import { rowText, type StateTable, textOfFacts } from '../../log/tables.ts';
import type { Dialect, Reader, Row, SqlList, SqlValue } from '../../storage/engine.ts';
import { callOfText, type NamedText, textId, textIdsOf } from '../../storage/text-ids.ts';
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

/** Where calls lie further apart on average, their texts are looked up one by one instead of read with those between them. */
const SPREAD_MAX = 16;

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
  async among(table: string, select: string, values: readonly SqlValue[]): Promise<SqlList[]> {
    const found: SqlList[] = [];
    for (const page of pagesOf(values)) {
      const { width, marks } = WIDTHS.find((one) => one.width >= page.length) ?? { width: PAGE, marks: '' };
      const padding = Array.from({ length: width - page.length }, () => null);
      found.push(...(await this.from(table).lists(`${select} IN (${marks})`, ...page, ...padding)));
    }
    return found;
  }

  get dialect(): Dialect {
    return this.#tx.dialect;
  }

  /** Audit rows with their payloads. `read` asks for them with `rowsIn`. */
  async rows(read: (actions: Reader) => Promise<readonly SqlList[]>): Promise<SourceRow[]> {
    const page: SourceRow[] = [];
    // Waiting for what is at hand would cost more than the rest of this loop.
    for (const row of await read(this.from('actions')).catch((thrown) => this.#blame(thrown))) {
      const isPlainRow = isPlain(row[1]) && (row[3] === null || isPlain(row[5]));
      page.push(isPlainRow ? asRead(row) : await this.#readOdd(row));
    }
    return page;
  }

  /** Of two tables that are read at once, throws for the one that cannot be read. */
  async #blame(thrown: unknown): Promise<never> {
    const sql = 'SELECT sum(length(salt) + length(body)) AS chars FROM action_payloads';
    await this.from('action_payloads').get(sql);
    throw thrown;
  }

  /** The texts of the calls that these are named by, by id, in their order. */
  async texts(named: readonly NamedText[]): Promise<ReadonlyMap<number, SourceText>> {
    const calls = new Set(named.map(({ call }) => call));
    const found = new Map<number, SourceText>();
    for (const [id = null, digest, salt, stored = null] of await this.#textsAround(calls)) {
      if (!calls.has(callOfText(Number(id)))) continue;
      const odd = () => this.#exact('texts', 'id', { id, text: stored }, ['text']);
      const text = isPlain(stored) ? stored : textOf((await odd()).text);
      found.set(Number(id), { digest: textOf(digest), salt: textOf(salt), text });
    }
    return found;
  }

  async #textsAround(calls: ReadonlySet<number>): Promise<SqlList[]> {
    const [first, last] = [Math.min(...calls), Math.max(...calls)];
    const select = 'SELECT id, digest, salt, text FROM texts WHERE id';
    // Most pages of rows name the texts of one piece of the table.
    return calls.size > 0 && last - first < SPREAD_MAX * calls.size
      ? await this.from('texts').lists(`${select} BETWEEN ? AND ?`, textId(first, 0), textId(last + 1, 0) - 1)
      : await this.among('texts', select, [...calls].flatMap(textIdsOf));
  }

  async states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const found = new Map<number, string>();
    const select = `SELECT ${table.facts.join(', ')} FROM ${table.name} WHERE id`;
    const idAt = table.facts.indexOf('id');
    // Ids are given one after the other, and calls are read in their order: most pages are one piece of the table.
    const [first = 0, last = 0] = [ids[0], ids.at(-1)];
    const rows = ids.every((id, i) => id === first + i)
      ? await this.from(table.name).lists(`${select} BETWEEN ? AND ?`, first, last)
      : await this.among(table.name, select, ids);
    for (const values of rows) {
      const text = stateText(table, values);
      found.set(Number(values[idAt]), isPlain(text) ? text : await this.#exactState(table, values));
    }
    return found;
  }

  /** A row with something in it that may not be what it reads as. */
  async #readOdd(row: SqlList): Promise<SourceRow> {
    const [position = null, stored = null, , , , kept = null] = row;
    const { text } = await this.#exact('actions', 'position', { position, text: stored }, ['text']);
    const payload = { position, body: kept };
    const { body = null } = await this.#exact('action_payloads', 'position', payload, ['body']);
    const read = asRead([...row.slice(0, 5), body]);
    return { ...read, text: typeof text === 'string' && text !== NO_TEXT ? text : undefined };
  }

  async #exactState(table: StateTable, values: SqlList): Promise<string> {
    const row = Object.fromEntries(table.facts.map((column, i) => [column, values[i] ?? null]));
    return rowText(table, await this.#exact(table.name, 'id', row, table.facts));
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

/** Audit rows with their hashes and payloads, up to the condition on their positions. */
export function rowsIn({ hexOfTwo }: Dialect): string {
  return `SELECT a.position, text, ${hexOfTwo('content', 'chain')}, p.position, salt, body
    FROM actions a LEFT JOIN action_payloads p ON p.position = a.position WHERE a.position`;
}

function asRead(row: SqlList): SourceRow {
  const [position, text, hashes] = [Number(row[0]), textOf(row[1]), textOf(row[2])];
  const [content_hash = '', chain_hash = ''] = hashes.startsWith(' ')
    ? hashes.slice(1).split(' ')
    : [hashes.slice(0, HASH_CHARS), hashes.slice(HASH_CHARS)];
  if (row[3] === null) return { position, text, content_hash, chain_hash };
  const payload = { salt: textOf(row[4]), body: textOf(row[5]) };
  return { position, text, content_hash, chain_hash, payload };
}

/** Undefined where there is a blob, or a number that has no JSON text. */
function stateText(table: StateTable, values: SqlList): string | undefined {
  try {
    return textOfFacts(table, values);
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
const REPLACEMENT = /\ufffd/;

export function isPlain(text: SqlValue | undefined): text is string {
  return typeof text === 'string' && !REPLACEMENT.test(text);
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
    lists: (sql, ...params) => noticing(tx.lists(sql, ...params)),
    all: (sql, ...params) => noticing(tx.all(sql, ...params)),
    isPresent: (process) => tx.isPresent(process),
    dialect: tx.dialect,
  };
}
