import type { SqlList, SqlValue } from '../engine.ts';

/** A new row of one table, with nothing said about conflicts. */
const PLAIN_INSERT = /^(INSERT INTO \w+ \([\w, ]+\) VALUES) (\((?:\?, )*\?\))$/;

/** A change that neither sees nor touches what others of a group do. One statement sees nothing of what its parts do. */
const INDEPENDENT = /^(?:INSERT|DELETE) /;

/**
 * Changes of one row each that leave as one statement, which fails unless every one of them changed one row. The server
 * must object itself: the commit may be on its way before the answer is here.
 */
export class Changes {
  readonly #parts = new Map<string, SqlList[]>();
  #isAlone = false;

  /** Whether a change can be one of this group. */
  takes(sql: string): boolean {
    if (this.#parts.size === 0) return true;
    if (this.#isAlone || !INDEPENDENT.test(sql)) return false;
    return !this.#parts.has(sql) || PLAIN_INSERT.test(sql);
  }

  add(sql: string, params: SqlList): void {
    this.#isAlone = !INDEPENDENT.test(sql);
    const rows = this.#parts.get(sql);
    if (rows === undefined) this.#parts.set(sql, [params]);
    else rows.push(params);
  }

  /** The statement, '' where there is nothing to change, and an empty group again. */
  take(): { readonly sql: string; readonly params: SqlList } {
    const parts: string[] = [];
    const counts: string[] = [];
    const params: SqlValue[] = [];
    for (const [sql, rows] of this.#parts) {
      const name = `c${parts.length}`;
      const [, insert, values = ''] = PLAIN_INSERT.exec(sql) ?? [];
      const all = insert === undefined ? sql : `${insert} ${rows.map(() => values).join(', ')}`;
      parts.push(`${name} AS (${all} RETURNING 1)`);
      counts.push(`(SELECT count(*) FROM ${name}) = ${rows.length}`);
      for (const row of rows) params.push(...row);
    }
    this.#parts.clear();
    if (parts.length === 0) return { sql: '', params };
    // Division by zero is an error that needs no function of ours.
    const sql = `WITH ${parts.join(', ')} SELECT 1 / (CASE WHEN ${counts.join(' AND ')} THEN 1 ELSE 0 END)`;
    return { sql, params };
  }
}
