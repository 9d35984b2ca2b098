import { rowsAt, runAt } from './postgres.ts';

type Value = string | number | null | Uint8Array;

/**
 * A database on a server, with the part of a file's interface that the tests of both engines use. Each statement is a
 * transaction of its own. While `unguarded`, no trigger and no foreign key is in the way.
 */
export function onServer(url: string) {
  const database = {
    unguarded: false,
    prepare(sql: string) {
      const filled = (params: readonly Value[]) => fill(translated(sql), params);
      const all = (...params: Value[]) => rowsAt(url, filled(params)).map(withBytes);
      const plucked = (...params: Value[]) => all(...params).map((row) => Object.values(row)[0]);
      const run = (...params: Value[]) => ({ changes: runAt(url, filled(params), database.unguarded) });
      return {
        all,
        run,
        get: (...params: Value[]) => all(...params)[0],
        pluck: () => ({ all: plucked, get: (...params: Value[]) => plucked(...params)[0] }),
      };
    },
    exec: (sql: string) => void runAt(url, translated(sql), database.unguarded),
    /** Columns are told; settings of a file mean nothing here. */
    pragma(said: string) {
      const table = /^table_x?info\((\w+)\)$/.exec(said)?.[1];
      return table === undefined ? [] : rowsAt(url, columnsOf(table));
    },
    transaction(work: () => unknown) {
      return Object.assign(work, { immediate: work });
    },
    close: () => undefined,
  };
  return database;
}

function columnsOf(table: string): string {
  return `SELECT column_name AS name, CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'double precision' THEN 'REAL' WHEN 'bytea' THEN 'BLOB' ELSE 'TEXT' END AS type,
      CASE is_nullable WHEN 'NO' THEN 1 ELSE 0 END AS notnull, 0 AS hidden
    FROM information_schema.columns WHERE table_schema = 'colibri' AND table_name = '${table}' AND is_generated = 'NEVER' ORDER BY ordinal_position`;
}

/** The little of SQLite's own SQL that the tests use. */
function translated(sql: string): string {
  return sql
    .replaceAll('instr(', 'strpos(')
    .replaceAll(/\bx'((?:[0-9a-f]{2})*)'/g, "'\\x$1'::bytea")
    .replaceAll(/substr\((\w+), -(\d+), /g, 'substr($1, length($1) - $2 + 1, ')
    .replace('FROM sqlite_schema', `FROM ${COLUMNS} AS columns`)
    .replace(/WHERE 1(?=\s|$)/, 'WHERE TRUE');
}

const COLUMNS = `(SELECT 'column' AS type, table_name || '.' || column_name AS name, data_type AS sql
  FROM information_schema.columns WHERE table_schema = 'colibri')`;

/** Puts values in the place of each `?`, or of each `@name` where they come as one object. */
function fill(sql: string, params: readonly (Value | Record<string, Value>)[]): string {
  const [named] = params;
  const literals = params.map((value) => (isNamed(value) ? '' : sqlLiteral(value))).values();
  return sql.replace(/'(?:[^']|'')*'|\?|@(\w+)/g, (part, name?: string) => {
    if (part === '?') return String(literals.next().value);
    return name !== undefined && isNamed(named) ? sqlLiteral(named[name] ?? null) : part;
  });
}

function isNamed(value: Value | Record<string, Value> | undefined): value is Record<string, Value> {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
}

/** A value as it is written in a statement. */
export function sqlLiteral(value: Value): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : `'${value}'::float8`;
  return typeof value === 'string'
    ? `'${value.replaceAll("'", "''")}'`
    : `'\\x${Buffer.from(value).toString('hex')}'::bytea`;
}

const OF_BYTES: readonly string[] = ['content', 'chain'];

/** JSON shows bytes as `\x` and hex. In any other column, a text like that is a text. */
function withBytes(row: Record<string, unknown>): Record<string, unknown> {
  const read = ([name, value]: [string, unknown]) =>
    OF_BYTES.includes(name) && typeof value === 'string' && /^\\x(?:[0-9a-f]{2})+$/.test(value)
      ? [name, Buffer.from(value.slice(2), 'hex')]
      : [name, value];
  return Object.fromEntries(Object.entries(row).map(read));
}
