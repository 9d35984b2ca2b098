import type { Database } from '../driver/database.ts';
import type { Cells, Change } from './copies.ts';
import { type Column, nameOf, type Table } from './schema.ts';

/** One thing somebody did to one table, and the names of the rows a finding may speak of. */
export interface Tampering {
  readonly what: string;
  readonly change: Change;
  readonly records: readonly (string | undefined)[];
}

/** All rows of a table as they are stored, in the order of its key. */
export function rowsOf(db: Database, table: Table): Cells[] {
  const columns = table.stored.map(({ name }) => name).join(', ');
  const keys = table.keys.map(({ name }) => name).join(', ');
  return db.prepare(`SELECT ${columns} FROM ${table.name} ORDER BY ${keys}`).all() as Cells[];
}

/** First, middle and last; each once. */
export function spread<T>(rows: readonly T[]): T[] {
  return [...new Set([rows[0], rows[rows.length >> 1], rows.at(-1)])].filter(
    (row) => row !== undefined,
  ) as T[];
}

/** Every other value that a column takes as the schema stands, for one row. */
export function otherValues(table: Table, column: Column, row: Cells): Tampering[] {
  return valuesFor(column, row[column.name] ?? null).map((value) => assign(table, column, row, value));
}

/** Values that only a table without STRICT and NOT NULL takes: the same bytes as another type, and nothing at all. */
export function forbiddenValues(table: Table, column: Column, row: Cells): Tampering[] {
  if (column.isKey && (table.keys.length === 1 || table.isVirtual)) return [];
  const other = `CAST(coalesce(${column.name}, 'x') AS ${column.type === 'BLOB' ? 'TEXT' : 'BLOB'})`;
  const values = column.isKey || row[column.name] === null ? [other] : [other, 'NULL'];
  return values.map((value) => assign(table, column, row, value));
}

function valuesFor({ name, isNullable, type }: Column, value: Cells[string]): string[] {
  const nothing = isNullable && value !== null ? ['NULL'] : [];
  if (value instanceof Uint8Array)
    return [
      `CAST(${name} || x'00' AS BLOB)`,
      `x'ff'`,
      `x''`,
      ...(value.length > 0 ? [`CAST(${name} AS TEXT)`, lastByteOf(name, value)] : []),
      ...nothing,
    ].filter((sql) => sql !== `x'${Buffer.from(value).toString('hex')}'`);
  if (typeof value === 'string' || (value === null && type === 'TEXT'))
    return [
      `'x' || coalesce(${name}, '')`,
      `coalesce(${name}, 'y') || ' '`,
      `coalesce(${name}, 'y') || char(0)`,
      `CAST(CAST(coalesce(${name}, 'y') AS BLOB) || x'ff' AS TEXT)`,
      ...(value?.includes('\ufffd')
        ? [`CAST(replace(CAST(${name} AS BLOB), x'efbfbd', x'ff') AS TEXT)`]
        : []),
      ...(value === '' ? [] : [`''`]),
      ...nothing,
    ];
  if (type === 'REAL')
    return [`coalesce(${name}, 0) + 1`, `coalesce(${name}, 0) + 0.0000001`, '9e999', '-9e999', ...nothing];
  const loose = type === '' ? [`CAST(${name} AS TEXT)`] : [];
  return [
    `coalesce(${name}, 0) + 1000`,
    `-7 - coalesce(${name}, 0)`,
    '9007199254740993',
    ...loose,
    ...nothing,
  ];
}

function lastByteOf(name: string, value: Uint8Array): string {
  const last = ((value.at(-1) ?? 0) ^ 1).toString(16).padStart(2, '0');
  return `CAST(substr(${name}, 1, length(${name}) - 1) || x'${last}' AS BLOB)`;
}

function assign(table: Table, column: Column, row: Cells, sql: string): Tampering {
  const { where, keys } = whereKey(table, row);
  let after: Cells = row;
  return {
    what: `${column.name} = ${sql} in ${describe(table, row)}`,
    change: (db) => {
      after = {
        ...row,
        ...(db.prepare(`SELECT ${sql} AS ${column.name} FROM ${table.name} ${where}`).get(...keys) as Cells),
      };
      db.prepare(`UPDATE ${table.name} SET ${column.name} = ${sql} ${where}`).run(...keys);
    },
    // A changed key has two names: the one that is gone and the one that is new.
    get records() {
      return [row, after, rounded(after)].map((cells) => nameOf(table, cells));
    },
  };
}

/** The exact number does not always survive; that something is wrong must be told all the same. */
function rounded(row: Cells): Cells {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  );
}

/** What can be done to whole rows. */
export function rowTamperings(table: Table, rows: readonly Cells[]): Tampering[] {
  const some = spread(rows);
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined)
    throw new Error(`${table.name} is empty: the board must fill it`);
  const [key] = table.keys.slice(-1);
  if (key === undefined) throw new Error(`${table.name} has no key`);
  const fresh = (row: Cells): Cells => ({ ...row, [key.name]: freshKey(rows, key, row) });
  return [
    ...deletions(table, rows, some),
    ...some.map((row) => of(table, 'duplicate', [fresh(row)], (db) => add(db, table, fresh(row)))),
    of(table, 'make up', [madeUp(table, fresh(last))], (db) => add(db, table, madeUp(table, fresh(last)))),
    ...(typeof first[key.name] === 'bigint' ? oddNumbers(table, key, rows) : []),
    ...swaps(table, rows),
    ...(rows.length > 1 ? [renumber(table, key, rows)] : []),
    moveLast(table, key, last, fresh(last)),
  ];
}

function deletions(table: Table, rows: readonly Cells[], some: readonly Cells[]): Tampering[] {
  // Behind the end of the index of words, a search looks at the tasks themselves: what is taken from there hides nothing.
  if (['task_words', 'task_words_content'].includes(table.name))
    return some
      .filter((row) => row !== rows.at(-1))
      .map((row) => of(table, 'delete', [row], (db) => remove(db, table, row)));
  return [
    ...some.map((row) => of(table, 'delete', [row], (db) => remove(db, table, row))),
    of(table, 'delete all', rows, (db) => db.prepare(`DELETE FROM ${table.name}`).run()),
  ];
}

/** Numbers before the first and beyond what JavaScript counts. */
function oddNumbers(table: Table, key: Column, rows: readonly Cells[]): Tampering[] {
  const row = rows.at(-1) ?? {};
  const free = [0n, -1n, -(2n ** 63n), 2n ** 63n - 1n].filter(
    (number) => !rows.some((other) => other[key.name] === number),
  );
  return free.map((number) => {
    const odd = { ...row, [key.name]: number };
    return of(table, `insert at ${number}`, [odd, rounded(odd)], (db) => add(db, table, odd));
  });
}

/** The first row and the last that says anything else. */
function swaps(table: Table, rows: readonly Cells[]): Tampering[] {
  const [first] = rows;
  const contents = (row: Cells) =>
    table.stored.filter(({ isKey }) => !isKey).map(({ name }) => show(row[name] ?? null));
  const isAllKey = table.keys.length === table.stored.length;
  const other = rows.findLast(
    (row) => row !== first && (isAllKey || `${contents(row)}` !== `${contents(first ?? {})}`),
  );
  return first === undefined || other === undefined ? [] : [swap(table, first, other)];
}

function swap(table: Table, a: Cells, b: Cells): Tampering {
  // Where everything is key, the first part of it changes hands.
  const moving = table.stored.filter((column) => !column.isKey);
  const names = (moving.length > 0 ? moving : table.keys.slice(0, 1)).map(({ name }) => name);
  const take = (from: Cells) => Object.fromEntries(names.map((name) => [name, from[name] ?? null]));
  const rows = [
    { ...a, ...take(b) },
    { ...b, ...take(a) },
  ];
  return of(table, 'swap', [a, b, ...rows], (db) => {
    for (const row of [a, b]) remove(db, table, row);
    for (const row of rows) add(db, table, row);
  });
}

/** Every row one further, so that order and contents stay. */
function renumber(table: Table, key: Column, rows: readonly Cells[]): Tampering {
  const moved = rows.map((row) => ({ ...row, [key.name]: following(row[key.name] ?? null) }));
  return of(table, 'renumber', [...rows, ...moved], (db) => {
    for (const row of rows) remove(db, table, row);
    for (const row of moved) add(db, table, row);
  });
}

function moveLast(table: Table, key: Column, last: Cells, moved: Cells): Tampering {
  return of(table, `move the last ${key.name}`, [last, moved], (db) => {
    remove(db, table, last);
    add(db, table, moved);
  });
}

function of(table: Table, what: string, rows: readonly Cells[], change: Change): Tampering {
  const records = rows.map((row) => nameOf(table, row));
  return { what: `${what} ${describe(table, rows[0] ?? {})}`, change, records };
}

function freshKey(rows: readonly Cells[], key: Column, row: Cells): Cells[string] {
  const value = row[key.name] ?? null;
  if (typeof value !== 'bigint') return following(value);
  const largest = rows.map((other) => BigInt(other[key.name] as bigint)).reduce((a, b) => (a > b ? a : b));
  return largest + 1n;
}

function following(value: Cells[string]): Cells[string] {
  if (typeof value === 'bigint') return value + 1n;
  if (typeof value === 'number') return value + 1;
  if (value instanceof Uint8Array) return Buffer.concat([value, Buffer.from('z')]);
  return `${value}z`;
}

function madeUp(table: Table, row: Cells): Cells {
  const invented = table.stored
    .filter(({ isKey }) => !isKey)
    .map(({ name }) => {
      const value = row[name] ?? null;
      return [name, value === null ? null : following(value)];
    });
  return { ...row, ...Object.fromEntries(invented) };
}

function remove(db: Database, table: Table, row: Cells): void {
  const { where, keys } = whereKey(table, row);
  db.prepare(`DELETE FROM ${table.name} ${where}`).run(...keys);
}

/** Where another key than the first forbids the row, the nearest one it allows. */
function add(db: Database, table: Table, row: Cells): void {
  const names = table.stored.map(({ name }) => name);
  const insert = db.prepare(
    `INSERT INTO ${table.name} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
  );
  const values = (cells: Cells) => names.map((name) => cells[name] ?? null);
  try {
    insert.run(...values(row));
  } catch (error) {
    const column = /UNIQUE constraint failed: .*\.(\w+)$/.exec(String(error))?.[1];
    if (column === undefined || table.keys.some(({ name }) => name === column)) throw error;
    const value = row[column] ?? null;
    const other = typeof value === 'bigint' ? value + 1000n : following(value);
    insert.run(...values({ ...row, [column]: other }));
  }
}

function whereKey(table: Table, row: Cells): { where: string; keys: Cells[string][] } {
  const where = `WHERE ${table.keys.map(({ name }) => `${name} = ?`).join(' AND ')}`;
  return { where, keys: table.keys.map(({ name }) => row[name] ?? null) };
}

function describe(table: Table, row: Cells): string {
  return `${table.name} ${table.keys.map(({ name }) => show(row[name] ?? null)).join('/')}`;
}

function show(value: Cells[string]): string {
  return value instanceof Uint8Array ? `x'${Buffer.from(value).toString('hex')}'` : String(value);
}
