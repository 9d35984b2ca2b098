import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { openUnguarded } from '../tamper/copies.ts';

/** Every kind of text that does something where it is shown: on a terminal, in a vault, in a page. */
export const HOSTILE = [
  'a\u001b[2J\u001b]0;title\u0007\u009b31m\u0085\u007f\u202eb\u2066c\u2028d\u001b[32mFORGED\u0000',
  'FORGED',
  '```dataviewjs',
  'alert(1)',
  '```',
  '`$= alert(1)` `= this` <script>alert(1)</script><img src=x onerror=alert(1)> <% tp.x %>',
  'key:: value [key:: value] (key:: value) [[evil]] ![[evil]] #tag %%hidden%% ^block [x](obsidian://run)',
  'obsidian://run',
  '| a | b |',
  '| - | - |',
  '---',
  '✓ Nothing is wrong.',
].join('\n');

/** The same as a tool takes it: without U+0000, and without what is refused anywhere. */
export const HOSTILE_GIVEN = HOSTILE.replaceAll('\u0000', '');

type Cell = string | number | bigint | Uint8Array | null;
type Cells = Readonly<Record<string, Cell>>;

/** Gives each column of a row a new value; a column that is left out stays. */
export type Edit = (table: string, row: Cells, columns: readonly string[]) => Record<string, Cell>;

interface Shape {
  readonly name: string;
  readonly sql: string;
}

/**
 * A copy of a database with other cells. The schema is put back exactly as it was, so that nothing but the values is
 * strange; meanwhile, columns take any type.
 */
export function forgeDatabase(from: string, to: string, edit: Edit): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(to + suffix, { force: true });
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  const strict = define(to, (sql) =>
    sql
      .replace(') STRICT, WITHOUT', ') WITHOUT')
      .replace(/\) STRICT$/, ')')
      .replaceAll(' NOT NULL', '')
      .replaceAll(/json_extract\(text, '[^']+'\)/g, 'NULL'),
  );
  const db = openUnguarded(to);
  const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as Shape[];
  db.exec('BEGIN');
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  for (const { name } of strict) {
    const columns = (db.prepare(`PRAGMA table_info(${name})`).all() as { name: string }[]).map((c) => c.name);
    const rows = db.prepare(`SELECT * FROM ${name}`).all() as Cells[];
    for (const row of rows) {
      const changed = Object.entries(edit(name, row, columns));
      if (changed.length === 0) continue;
      const where = columns.map((column) => `"${column}" IS ?`).join(' AND ');
      const set = changed.map(([column]) => `"${column}" = ?`).join(', ');
      const before = columns.map((column) => row[column] ?? null);
      db.prepare(`UPDATE OR IGNORE ${name} SET ${set} WHERE ${where}`).run(
        ...changed.map(([, cell]) => cell),
        ...before,
      );
    }
  }
  for (const { sql } of triggers) db.exec(sql);
  db.exec('COMMIT');
  db.close();
  const sqlOf = new Map(strict.map(({ name, sql }) => [name, sql]));
  define(to, (_, name) => sqlOf.get(name) ?? '');
}

/** Edits the definition of every table in place and answers what stood there. */
function define(path: string, edit: (sql: string, name: string) => string): Shape[] {
  const db = openUnguarded(path);
  const sql =
    "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' AND name NOT LIKE 'task\\_words%' ESCAPE '\\'";
  const tables = db.prepare(sql).all() as Shape[];
  db.exec('PRAGMA writable_schema = ON');
  for (const { name, sql } of tables)
    db.prepare('UPDATE sqlite_schema SET sql = ? WHERE name = ?').run(edit(sql, name), name);
  db.close();
  return tables;
}

/** JSON with the hostile text in the place of every text and number, except under the names in `kept`. */
export function hostileJson(json: string, kept: RegExp): string {
  const value: unknown = JSON.parse(json, (name, part: unknown) => {
    if (typeof part === 'object' || typeof part === 'boolean' || kept.test(name)) return part;
    return /^[TAΘ]-\d+$/u.test(String(part)) ? part : HOSTILE;
  });
  return JSON.stringify(value);
}
