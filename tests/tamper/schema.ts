import { SCHEMA } from '../../src/storage/sqlite/schema.ts';
import { type Database, openDatabase } from '../driver/database.ts';

export interface Column {
  readonly name: string;
  /** As declared; empty where nothing is. */
  readonly type: string;
  readonly isNullable: boolean;
  readonly isKey: boolean;
  readonly isGenerated: boolean;
}

export interface Table {
  readonly name: string;
  readonly isVirtual: boolean;
  readonly isStrict: boolean;
  readonly columns: readonly Column[];
  /** What can be written, in order. */
  readonly stored: readonly Column[];
  readonly keys: readonly Column[];
}

/** The pages of the word index. The verifier checks what is found by them, not their bytes (tamper-words, tasks-tamper). */
export const WORD_PAGES: readonly string[] = ['task_words_data', 'task_words_idx'];

/** Every table the schema makes, found and not listed: a new one cannot be forgotten. */
export function tablesOfSchema(): readonly Table[] {
  return inFreshSchema(tablesIn);
}

export function triggersOfSchema(): readonly string[] {
  return inFreshSchema(
    (db) => db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").pluck().all() as string[],
  );
}

function inFreshSchema<T>(read: (db: Database) => T): T {
  const db = openDatabase(':memory:');
  try {
    db.exec(SCHEMA);
    return read(db);
  } finally {
    db.close();
  }
}

export function tablesIn(db: Database): readonly Table[] {
  const tables = db
    .prepare("SELECT name, type, strict FROM pragma_table_list WHERE schema = 'main' AND type <> 'view'")
    .all() as { name: string; type: string; strict: number }[];
  return (
    tables
      // task_terms shows the words of task_words and stores nothing.
      .filter(({ name }) => name !== 'sqlite_schema' && name !== 'task_terms')
      .map(({ name, type, strict }) => {
        const columns = columnsIn(db, name, type === 'virtual');
        return {
          name,
          isVirtual: type === 'virtual',
          isStrict: strict === 1,
          columns,
          stored: columns.filter(({ isGenerated }) => !isGenerated),
          keys: columns.filter(({ isKey }) => isKey),
        };
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  );
}

interface Info {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly pk: number;
  readonly hidden: number;
}

function columnsIn(db: Database, table: string, isVirtual: boolean): Column[] {
  const infos = db.pragma(`table_xinfo("${table}")`) as Info[];
  // The hidden columns of a virtual table take commands and hold nothing.
  const holding = isVirtual ? infos.filter(({ hidden }) => hidden === 0) : infos;
  const named = holding.map((info) => ({
    name: info.name,
    type: info.type,
    isNullable: info.notnull === 0 && info.pk === 0,
    isKey: info.pk > 0,
    isGenerated: info.hidden > 1,
  }));
  const rowid = { name: 'rowid', type: 'INTEGER', isNullable: false, isKey: true, isGenerated: false };
  return named.some(({ isKey }) => isKey) ? named : [rowid, ...named];
}

type Cells = Readonly<Record<string, unknown>>;

const audit = (row: Cells) => `#${row.position}`;
const task = (id: unknown) => `T-${String(id).padStart(4, '0')}`;
const keyId = (key: unknown) => String(key).split('+')[1] ?? String(key).slice(0, DIGEST_SHOWN);

/** As much of a digest as a finding shows. */
export const DIGEST_SHOWN = 16;

/** How findings name a row. Undefined where rows have no name of their own: the only row of log, the inside of the word index. */
const NAMES: Readonly<Record<string, ((row: Cells) => string) | undefined>> = {
  actions: audit,
  action_payloads: audit,
  open_calls: audit,
  log_blocks: (row) => `block ${row.block}`,
  log: undefined,
  log_heads: (row) => `the head of key ${keyId(row.key)}`,
  checkpoints: (row) => `the kept checkpoint ${row.size} of key ${keyId(row.key)}`,
  texts: (row) => String(row.digest).slice(0, DIGEST_SHOWN),
  erased_texts: (row) => String(row.digest).slice(0, DIGEST_SHOWN),
  processes: (row) => `${row.process} ${row.actor}`,
  task_calls: (row) => task(row.task_id),
  tasks: (row) => task(row.id),
  task_labels: (row) => task(row.task_id),
  task_dependencies: (row) => task(row.task_id),
  task_words: (row) => task(row.rowid),
  task_words_content: (row) => task(row.id),
  task_words_config: undefined,
  task_words_data: undefined,
  task_words_idx: undefined,
  thoughts: (row) => `Θ-${String(row.id).padStart(4, '0')}`,
  sessions: (row) => `A-${String(row.id).padStart(4, '0')}`,
  session_records: (row) => `R-${String(row.id).padStart(4, '0')}`,
};

export function nameOf(table: Table, row: Cells): string | undefined {
  if (!Object.hasOwn(NAMES, table.name)) throw new Error(`how does a finding name a row of ${table.name}?`);
  return NAMES[table.name]?.(row);
}
