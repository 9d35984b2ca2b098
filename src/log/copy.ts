import type { Reader, Row, SqlValue, StorageEngine, Transaction } from '../storage/engine.ts';
import { SESSION_RECORDS, SESSIONS, type StateTable, TASKS, THOUGHTS } from './tables.ts';
import { WORDED, type WordedTask, wordsOf } from './texts.ts';

/** A table as it is copied: its columns, of which the first ones are its key. What an engine derives itself is not here. */
interface Copied {
  readonly name: string;
  readonly columns: readonly string[];
  readonly keys: number;
}

const table = (name: string, columns: string, keys = 1): Copied => ({
  name,
  columns: columns.split(' '),
  keys,
});

function stateTable({ name, facts, derived }: StateTable): Copied {
  return { name, columns: ['id', ...facts.filter((column) => column !== 'id'), ...derived], keys: 1 };
}

/** Every table that is stored, each before those that refer to it. A test compares the list with the schema. */
export const COPIED: readonly Copied[] = [
  table('log', 'id origin'),
  table('actions', 'position text content chain'),
  table('action_payloads', 'position salt body'),
  table('erased_texts', 'digest task_id position'),
  table('texts', 'id digest salt text'),
  table('log_heads', 'key size chain_hash at frontier checkpoint'),
  table('checkpoints', 'size key note', 2),
  table('open_calls', 'position process'),
  table('processes', 'process actor last_seen', 2),
  table('task_calls', 'task_id position', 2),
  table('log_blocks', 'block hash'),
  ...[TASKS, THOUGHTS, SESSIONS, SESSION_RECORDS].map(stateTable),
];

/** Rows that are read, and written by one statement, at once. */
const PAGE = 250;

/**
 * Copies a whole log into an empty database, in one transaction of it: all of it or nothing. Nobody may write to the first
 * meanwhile. Every value is taken over as it is stored, so that every hash, signature and proof holds there as it did here.
 */
export async function copyLog(
  from: Pick<StorageEngine, 'read'>,
  to: StorageEngine,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const counts = new Map<string, number>();
  for (const { name } of COPIED) counts.set(name, await countOf(from, name));
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let done = 0;
  await to.write(async (tx) => {
    if ((await tx.get('SELECT 1 AS found FROM actions LIMIT 1')) !== undefined)
      throw new Error('the database that the log was to be copied into is no longer empty');
    for (const copied of COPIED) {
      const count = counts.get(copied.name) ?? 0;
      for await (const rows of pagesOf(from, copied)) {
        await insertRows(tx, copied, rows);
        if (copied.name === TASKS.name) await indexTasks(tx, rows);
        done += rows.length;
        onProgress(Math.min(done, total), total);
      }
      if ((await countIn(tx, copied.name)) !== count)
        throw new Error(`${copied.name} was written to while it was copied, so nothing was copied`);
    }
  });
}

async function countOf(from: Pick<StorageEngine, 'read'>, name: string): Promise<number> {
  return await from.read((tx) => countIn(tx, name));
}

async function countIn(tx: Reader, name: string): Promise<number> {
  return (await tx.get<{ count: number }>(`SELECT count(*) AS count FROM ${name}`))?.count ?? 0;
}

/** The rows of a table in the order of its key, in short reads. */
async function* pagesOf(
  from: Pick<StorageEngine, 'read'>,
  { name, columns, keys }: Copied,
): AsyncGenerator<readonly Row[]> {
  const key = columns.slice(0, keys);
  const select = `SELECT ${columns.join(', ')} FROM ${name}`;
  const order = `ORDER BY ${key.join(', ')} LIMIT ${PAGE}`;
  const behind = `WHERE (${key.join(', ')}) > (${key.map(() => '?').join(', ')})`;
  let rows = await from.read((tx) => tx.all<Row>(`${select} ${order}`));
  while (rows.length > 0) {
    yield rows;
    if (rows.length < PAGE) return;
    const last = valuesOf(key, rows.at(-1));
    rows = await from.read((tx) => tx.all<Row>(`${select} ${behind} ${order}`, ...last));
  }
}

function valuesOf(columns: readonly string[], row: Row | undefined): SqlValue[] {
  return columns.map((column) => row?.[column] ?? null);
}

async function insertRows(tx: Transaction, { name, columns }: Copied, rows: readonly Row[]): Promise<void> {
  const marks = `(${columns.map(() => '?').join(', ')})`;
  const values = rows.map(() => marks).join(', ');
  const sql = `INSERT INTO ${name} (${columns.join(', ')}) VALUES ${values}`;
  await tx.run(sql, ...rows.flatMap((row) => valuesOf(columns, row)));
}

/** The words of tasks, where an engine does not keep its index itself. Of an erased text, nothing is left to be found by. */
async function indexTasks(tx: Transaction, rows: readonly Row[]): Promise<void> {
  const sql = `SELECT ${WORDED} FROM tasks WHERE id BETWEEN ? AND ?`;
  const tasks = await tx.all<WordedTask>(sql, rows[0]?.id ?? null, rows.at(-1)?.id ?? null);
  for (const task of tasks) await tx.indexWords(task.id, true, () => wordsOf(tx, task));
}
