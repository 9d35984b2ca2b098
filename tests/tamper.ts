import { copyFileSync, rmSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { catalogue } from '../src/catalogue.ts';
import type { Clock } from '../src/clock.ts';
import { createAuditLog } from '../src/log/audit-log.ts';
import type { Finding } from '../src/log/verify/finding.ts';
import { verifyDatabase } from '../src/log/verify/verify.ts';
import { composeCall } from '../src/middleware/compose.ts';
import { createToolLock } from '../src/middleware/tool-lock.ts';
import type { StorageEngine } from '../src/storage/engine.ts';
import { openSqlite } from '../src/storage/sqlite/engine.ts';
import type { Random } from './driver/random.ts';

type Value = string | number | bigint | null | Buffer;
export type StoredRow = Readonly<Record<string, Value>>;

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly pk: number;
  readonly hidden: number;
}

/** A table that keeps rows of its own. Virtual tables keep theirs in others, which are tables too. */
export interface Table {
  readonly name: string;
  /** What tells one row from another. */
  readonly key: readonly string[];
  /** Those with a value of their own. */
  readonly columns: readonly Column[];
  /** Those computed from others: there is nothing to change. */
  readonly generated: readonly string[];
  readonly isStrict: boolean;
}

/** Every table of the file, found by asking it: one that is added tomorrow is in the list. */
export function tablesOf(path: string): Table[] {
  return looking(path, (db) => {
    const list = db.prepare("SELECT name, wr, strict FROM pragma_table_list WHERE schema = 'main'").all();
    return (list as { name: string; wr: number; strict: number }[])
      .filter(({ name }) => name !== 'sqlite_schema' && !isVirtual(db, name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, strict }) => {
        const columns = db.pragma(`table_xinfo(${name})`) as Column[];
        return {
          name,
          key: columns.filter(({ pk }) => pk > 0).map((column) => column.name),
          columns: columns.filter(({ hidden }) => hidden === 0),
          generated: columns.filter(({ hidden }) => hidden !== 0).map((column) => column.name),
          isStrict: strict === 1,
        };
      });
  });
}

function isVirtual(db: Sqlite.Database, name: string): boolean {
  const sql = db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').pluck().get(name) as string;
  return /^CREATE VIRTUAL/i.test(sql);
}

/** The stored values of every row, in the order of the key, each as a literal: text is not a blob, 1 is not 1.0. */
export function rowsOf(path: string, table: Table): StoredRow[] {
  return looking(path, (db) => readRows(db, table));
}

function readRows(db: Sqlite.Database, { name, key, columns }: Table): StoredRow[] {
  // quote() would end a text at its first NUL.
  const spelled = columns.map(
    ({ name: c }) =>
      `CASE typeof(${c}) WHEN 'text' THEN 'CAST(x''' || hex(${c}) || ''' AS TEXT)' ELSE quote(${c}) END AS ${c}`,
  );
  const order = key.map((column) => `${name}.${column}`).join(', ');
  return db.prepare(`SELECT ${spelled.join(', ')} FROM ${name} ORDER BY ${order}`).all() as StoredRow[];
}

/** Everything the file says, row by row. Two equal dumps: nobody who reads the two files can tell them apart. */
export function dump(path: string, tables: readonly Table[]): string {
  return looking(path, (db) => {
    const rows = tables.map((table) => [table.name, readRows(db, table)] as const);
    return JSON.stringify(rows);
  });
}

function looking<T>(path: string, look: (db: Sqlite.Database) => T): T {
  const db = new Sqlite(path, { readonly: true, fileMustExist: true });
  try {
    return look(db);
  } finally {
    db.close();
  }
}

/** Which row of a table, as the end of a statement. */
export function whereIs(table: Table, row: StoredRow): string {
  return `WHERE ${table.key.map((column) => `${column} IS ${row[column]}`).join(' AND ')}`;
}

/**
 * Changes the file as somebody with an editor would: triggers out of the way and back with the same words, nothing left
 * in a write-ahead log. With `loose` a strict table takes any type meanwhile.
 */
export function tamper(path: string, sql: string, loose: readonly Table[] = []): void {
  const original = looseSchema(path, loose);
  const db = new Sqlite(path);
  try {
    prepare(db);
    const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
      name: string;
      sql: string;
    }[];
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    const before = changesIn(db);
    db.exec(sql);
    if (changesIn(db) === before) throw new Error(`this changes nothing: ${sql}`);
    for (const trigger of triggers) db.exec(trigger.sql);
  } finally {
    db.close();
  }
  for (const { name, sql: strict } of original) writeSchema(path, name, strict);
  settle(path);
}

function prepare(db: Sqlite.Database): void {
  db.unsafeMode(true);
  db.pragma('synchronous = OFF');
  db.pragma('foreign_keys = OFF');
  db.pragma('writable_schema = ON');
}

function changesIn(db: Sqlite.Database): number {
  return db.prepare('SELECT total_changes()').pluck().get() as number;
}

function looseSchema(path: string, tables: readonly Table[]): { name: string; sql: string }[] {
  const strict = tables.filter(({ isStrict }) => isStrict);
  return strict.map(({ name }) => {
    const sql = looking(path, (db) =>
      db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").pluck().get(name),
    ) as string;
    writeSchema(path, name, sql.replace(/\) STRICT(, WITHOUT ROWID)?$/, (_, rest: string) => `)${rest?.slice(1) ?? ''}`));
    return { name, sql };
  });
}

function writeSchema(path: string, name: string, sql: string): void {
  const db = new Sqlite(path);
  try {
    prepare(db);
    db.prepare("UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?").run(sql, name);
    db.pragma(`schema_version = ${(db.pragma('schema_version', { simple: true }) as number) + 1}`);
  } finally {
    db.close();
  }
}

function settle(path: string): void {
  const db = new Sqlite(path);
  db.pragma('synchronous = OFF');
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}

/** What the verifier finds in the file. A file it cannot even open is found to be damaged. */
export async function findingsAt(path: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  let storage: StorageEngine | undefined;
  try {
    storage = await openSqlite({ path });
    await verifyDatabase(storage, { report: (finding) => findings.push(finding) });
  } catch (error) {
    findings.push({ kind: 'damaged', table: 'file', record: path, message: `THROWN ${String(error)}` });
  } finally {
    await storage?.close();
  }
  return findings;
}

/** One file to work on at a time, always from the same beginning. */
export class Copies {
  readonly #original: string;
  readonly #path: string;

  constructor(original: string) {
    this.#original = original;
    this.#path = `${original}.copy`;
  }

  fresh(): string {
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${this.#path}${suffix}`, { force: true });
    copyFileSync(this.#original, this.#path);
    return this.#path;
  }

  async findingsAfter(sql: string, loose: readonly Table[] = []): Promise<Finding[]> {
    const path = this.fresh();
    tamper(path, sql, loose);
    return await findingsAt(path);
  }
}

/** Time that goes on by itself, and salts and ids from a seed: the same seed, the same file. */
export function seededClock(random: Random): Clock {
  const hex = (digits: number) => Array.from({ length: digits }, () => random.between(0, 15).toString(16)).join('');
  let now = Date.UTC(2026, 0, 1);
  return {
    now: () => (now += 1),
    monotonic: () => performance.now(),
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`,
    salt: () => hex(32),
  };
}

export interface Workshop {
  call(name: string, args: object, actor?: string): Promise<Record<string, unknown>>;
  /** Begins a writing call and never ends it, as a process that is killed does. */
  begin(name: string, args: object): Promise<void>;
  close(): Promise<void>;
}

/** The five stages on a real file, in this process. */
export async function openWorkshop(path: string, clock: Clock): Promise<Workshop> {
  const engine = await openSqlite({ path });
  const storage: StorageEngine = {
    facts: engine.facts,
    read: (work) => engine.read(work),
    write: (work) => engine.write(work),
    sync: async () => undefined,
    selfCheck: (tx) => engine.selfCheck(tx),
    close: () => engine.close(),
  };
  const sink = createAuditLog({ storage, clock, process: 'workshop.boot.1.x' });
  const tools = catalogue({
    tasks: { project: undefined, projects: undefined, workflow: 'kanban' },
    trail: {
      evidence: {
        current: async () => ({ branch: 'main', commitSha: 'c0ffee' }),
        commitExists: async () => undefined,
      },
      monotonic: () => clock.monotonic(),
    },
    proof: { skillsInForce: async () => [{ name: 'a-skill', digest: 'd1'.repeat(32) }] },
    system: { version: '0', mode: 'FULL', uptimeMs: () => 0, now: () => clock.now() },
    skills: {},
  } as unknown as Parameters<typeof catalogue>[0]);
  const compose = composeCall({
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    lock: createToolLock(),
    clock,
    admission: { mode: 'FULL', degraded: () => undefined },
    log: console.error,
    ready: async () => ({ storage, sink }),
  });
  return {
    async call(name, args, actor = 'ada') {
      const envelope = (await compose(name, args, actor)) as { ok: boolean; data?: Record<string, unknown> };
      return envelope.data ?? {};
    },
    async begin(tool, args) {
      await sink.enter({
        tool,
        args,
        timestamp: 0,
        correlationId: clock.uuid(),
        actor: 'ada',
        mutates: true,
        schemaValid: true,
        repaired: [],
      });
    },
    close: () => engine.close(),
  };
}
