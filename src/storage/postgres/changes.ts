import type { SqlList, SqlValue } from '../engine.ts';

/** A new row of one table, with nothing said about conflicts. */
const PLAIN_INSERT = /^INSERT INTO (\w+) \(([\w, ]+)\) VALUES \((?:\?, )*\?\)$/;

/** A change of one row of state by values alone. */
const PLAIN_UPDATE = /^UPDATE (\w+) SET \w+ = \?(?:, \w+ = \?)* WHERE id = \? AND position = \?$/;

/** What a change is, as far as it matters for what it can leave with. */
interface Kind {
  /** A change that neither sees nor touches what others of a group do, unless they name its table. */
  readonly isIndependent: boolean;
  /** The table that it updates: in one statement, no row may be changed by two parts. */
  readonly updated: string | undefined;
  /** The tables that it names. */
  readonly tables: readonly string[];
  /** What a plain insert fills. */
  readonly insert: { readonly table: string; readonly columns: string } | undefined;
}

const kinds = new Map<string, Kind>();
const KINDS_MAX = 500;

function kindOf(sql: string): Kind {
  const known = kinds.get(sql);
  if (known !== undefined) return known;
  const [, table, columns] = PLAIN_INSERT.exec(sql) ?? [];
  const [, updated] = PLAIN_UPDATE.exec(sql) ?? [];
  const made: Kind = {
    isIndependent: updated !== undefined || /^(?:INSERT|DELETE) /.test(sql),
    updated,
    tables: [...sql.matchAll(/(?:INTO|FROM|UPDATE|JOIN) (\w+)/g)].map(([, name = '']) => name),
    insert: table === undefined || columns === undefined ? undefined : { table, columns },
  };
  if (kinds.size < KINDS_MAX) kinds.set(sql, made);
  return made;
}

interface Change {
  readonly sql: string;
  readonly params: SqlList;
}

/**
 * Changes of one row each that leave as few statements, each of which fails unless every change of it changed one row. The
 * server must object itself: the commit may be on its way before the answer is here. Until they leave, they can be dropped.
 */
export class Changes {
  #list: Change[] = [];

  get length(): number {
    return this.#list.length;
  }

  add(sql: string, params: SqlList): void {
    this.#list.push({ sql, params });
  }

  /** Forgets all but the first of them. */
  keep(length: number): void {
    this.#list.length = length;
  }

  /** The statements for the first of them, which are not among these any more. */
  take(length = this.#list.length): Change[] {
    const statements: Change[] = [];
    let group = new Group();
    for (const { sql, params } of this.#list.splice(0, length)) {
      if (!group.takes(sql)) {
        statements.push(group.statement());
        group = new Group();
      }
      group.add(sql, params);
    }
    if (!group.isEmpty) statements.push(group.statement());
    return statements;
  }
}

/** Changes that are parts of one statement. It sees nothing of what its parts do. */
class Group {
  readonly #parts = new Map<string, SqlList[]>();

  get isEmpty(): boolean {
    return this.#parts.size === 0;
  }

  takes(sql: string): boolean {
    if (this.isEmpty) return true;
    const { isIndependent, updated, tables, insert } = kindOf(sql);
    if (!isIndependent) return false;
    for (const other of this.#parts.keys()) {
      if (other === sql && insert === undefined) return false;
      const kind = kindOf(other);
      if (!kind.isIndependent) return false;
      if (updated !== undefined && kind.tables.includes(updated)) return false;
      if (kind.updated !== undefined && tables.includes(kind.updated)) return false;
    }
    return true;
  }

  add(sql: string, params: SqlList): void {
    const rows = this.#parts.get(sql);
    if (rows === undefined) this.#parts.set(sql, [params]);
    else rows.push(params);
  }

  statement(): Change {
    const parts: string[] = [];
    const conditions: string[] = [];
    const params: SqlValue[] = [];
    const counts: number[] = [];
    for (const [sql, rows] of this.#parts) {
      const name = `c${parts.length}`;
      const { insert } = kindOf(sql);
      if (insert === undefined || rows.length === 1) {
        parts.push(`${name} AS (${sql} RETURNING 1)`);
        conditions.push(`(SELECT count(*) FROM ${name}) = 1`);
        params.push(...(rows[0] ?? []));
      } else {
        // For any number of rows the same text: prepared once, it is not read and planned each time.
        const { table, columns } = insert;
        const records = `SELECT ${columns} FROM json_populate_recordset(NULL::${table}, ?)`;
        parts.push(`${name} AS (INSERT INTO ${table} (${columns}) ${records} RETURNING 1)`);
        conditions.push(`(SELECT count(*) FROM ${name}) = ?`);
        params.push(recordsOf(columns.split(', '), rows));
        counts.push(rows.length);
      }
    }
    // Division by zero is an error that needs no function of ours.
    const sql = `WITH ${parts.join(', ')} SELECT 1 / (CASE WHEN ${conditions.join(' AND ')} THEN 1 ELSE 0 END)`;
    return { sql, params: [...params, ...counts] };
  }
}

function recordsOf(columns: readonly string[], rows: readonly SqlList[]): string {
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, jsonOf(row[i] ?? null)]))),
  );
}

function jsonOf(value: SqlValue): string | number | null {
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return typeof value === 'string' ? value.toWellFormed() : value;
}
