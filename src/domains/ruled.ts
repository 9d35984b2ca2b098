import { ColibriError } from '../errors.ts';
import {
  formatId,
  parseId,
  rowHash,
  SESSIONS,
  STATE_TABLES,
  type StateTable,
  TASKS,
  tableNamed,
} from '../log/tables.ts';
import { wordsOf } from '../log/texts.ts';
import { after, type Sooner } from '../sooner.ts';
import { changeOne, type Reader, type SqlValue, type Transaction } from '../storage/engine.ts';
import type { Effect, WritingContext } from '../tool.ts';
import type { TaskRow } from './facts.ts';
import { idsFrom, learn, REMEMBERED, TransactionLookup } from './lookup.ts';
import { notFound } from './records.ts';
import { foresee, settleAsync, type WritingRule, type Written } from './rule.ts';
import { isFinal, queueOf } from './tasks/workflows.ts';

/** The handler of a tool that writes by a rule: what it needs is fetched, the rule decides, what it wrote is stored. */
export function ruled<R extends object>({ rule, texts }: WritingRule<R>) {
  return {
    effect: 'writes' as const,
    texts,
    async foresee(
      args: Readonly<Record<string, unknown>>,
      call: WritingContext,
      tx: Transaction,
    ): Promise<void> {
      await foresee(rule(args as never, call), new TransactionLookup(tx, call), REMEMBERED);
    },
    async handle(args: Readonly<Record<string, unknown>>, call: WritingContext, tx: Transaction): Promise<R> {
      try {
        const lookup = new TransactionLookup(tx, call);
        const ruling = settleAsync(rule(args as never, call), lookup);
        const { rows, result } = ruling instanceof Promise ? await ruling : ruling;
        for (const written of rows) {
          const effect = applyRow(tx, written, lookup.texts, lookup.seen);
          call.effects.push(effect instanceof Promise ? await effect : effect);
        }
        return result;
      } catch (error) {
        throw await withNearest(tx, error);
      }
    },
  };
}

/** What a query by id answers, or an error that names the nearest ids there are. */
export async function requireRow<T extends object>(
  tx: Reader,
  table: StateTable,
  text: string,
  sql: string,
): Promise<T> {
  const id = parseId(table, text);
  const row = id && (await tx.get<T>(sql, id));
  if (row) return row;
  throw await withNearest(tx, notFound(table, text));
}

/** For an id that leads nowhere: the existing ones nearest to it, so that the next try can be right. */
async function withNearest(tx: Reader, error: unknown): Promise<unknown> {
  if (!(error instanceof ColibriError)) return error;
  const table = [TASKS, SESSIONS].find(({ noun }) => error.code === `ERR_${noun.toUpperCase()}_NOT_FOUND`);
  const { id, field } = error.details;
  if (table === undefined || typeof id !== 'string' || typeof field !== 'string') return error;
  const wanted = Number(/\d{1,15}/.exec(id)?.[0] ?? Number.MAX_SAFE_INTEGER);
  const numbers = await idsFrom(
    tx,
    `SELECT id FROM (SELECT id FROM ${table.name} WHERE id <= ? ORDER BY id DESC LIMIT 3) AS below
     UNION SELECT id FROM (SELECT id FROM ${table.name} WHERE id > ? ORDER BY id LIMIT 2) AS above ORDER BY id`,
    wanted,
    wanted,
  );
  const nearest = numbers.map((number) => formatId(table, number));
  const hint =
    nearest.length === 0
      ? `There is none yet; ${table.createdBy} creates one.`
      : `The nearest are: ${nearest.join(', ')}.`;
  return new ColibriError(error.code, `${error.message} ${hint}`, { field, id, nearest });
}

/** Writes a row and answers what the log says of it. The seal is said in plain text: the log alone proves it. */
export function applyRow(
  tx: Transaction,
  written: Written,
  known: ReadonlyMap<string, string> = new Map(),
  seen: ReadonlyMap<number, TaskRow> = new Map(),
): Sooner<Effect> {
  const { table, row, previous } = written;
  if (written.table === 'tasks')
    return after(writeTask(tx, written.row, previous, known, seen), () => effectOf(tx, written));
  writeRow(tx, table, row, previous);
  return effectOf(tx, written);
}

function effectOf(tx: Transaction, written: Written): Effect {
  const { table: name, row, previous } = written;
  learn(tx, written);
  const table = tableNamed(name);
  const effect = { table: name, id: formatId(table, row.id), hash: rowHash(table, row), previous };
  if (!('merkle_root' in row) || row.merkle_root === null || row.leaf_count === null) return effect;
  return { ...effect, seal: { leaf_count: row.leaf_count, merkle_root: row.merkle_root } };
}

/** A task's own counters are counted; those of the tasks that wait for it move by one. */
function writeTask(
  tx: Transaction,
  task: TaskRow,
  previous: number,
  known: ReadonlyMap<string, string>,
  seen: ReadonlyMap<number, TaskRow>,
): Sooner<void> {
  // What the rule saw of it.
  const before = previous === 0 ? undefined : seen.get(task.id);
  const derived = derivedFrom(task);
  if (previous === 0)
    writeRow(tx, 'tasks', task, 0, { unmet: 0, is_final: derived.is_final, queue: derived.queue });
  else writeRow(tx, 'tasks', task, previous, derived, before, before && derivedFrom(before));
  const isWorded = before?.title !== task.title || before.description !== task.description;
  const indexed = isWorded
    ? tx.indexWords(task.id, previous === 0, () => wordsOf(tx, task, known))
    : undefined;
  if (previous === 0 && task.parent_id !== null)
    changeOne(tx, 'UPDATE tasks SET unmet = unmet + 1 WHERE id = ?', task.parent_id);
  if ((before?.depends_on ?? '[]') !== task.depends_on)
    changeOne(
      tx,
      `UPDATE tasks SET unmet = (
         SELECT count(*) FROM tasks c WHERE c.is_final = 0 AND
           (c.parent_id = tasks.id OR c.id IN (SELECT depends_on FROM task_dependencies WHERE task_id = tasks.id))
       ) WHERE id = ?`,
      task.id,
    );
  if (derived.is_final === 0 || before === undefined || isFinal(before.workflow, before.status))
    return indexed;
  return after(indexed, () => countDown(tx, task));
}

/** A task that is finished is one less to wait for. */
async function countDown(tx: Transaction, task: TaskRow): Promise<void> {
  const waiting = await idsFrom(
    tx,
    'SELECT id FROM tasks WHERE id = ? OR id IN (SELECT task_id FROM task_dependencies WHERE depends_on = ?)',
    task.parent_id,
    task.id,
  );
  for (const id of waiting) changeOne(tx, 'UPDATE tasks SET unmet = unmet - 1 WHERE id = ?', id);
}

function derivedFrom({ workflow, status }: TaskRow) {
  return { is_final: isFinal(workflow, status) ? 1 : 0, queue: queueOf(status) };
}

/** Stores a new row, or changes one that is still as the rule saw it: only what differs, so that few indexes are touched. */
function writeRow(
  tx: Transaction,
  table: Written['table'],
  row: Columns,
  previous: number,
  derived: Columns = {},
  before: Columns = {},
  derivedBefore: Columns = {},
): void {
  const { facts, derived: counters } = tableNamed(table);
  if (previous === 0) {
    const values = facts.map((column) => row[column] ?? null);
    for (const column of counters) values.push(derived[column] ?? null);
    tx.insert(table, ALL_COLUMNS.get(table) ?? [], [values]);
    return;
  }
  const changed: string[] = [];
  const values: SqlValue[] = [];
  const compare = (column: string, value: SqlValue | undefined, old: SqlValue | undefined) => {
    if (value === undefined || value === old) return;
    changed.push(`${column} = ?`);
    values.push(value);
  };
  for (const column of facts) compare(column, row[column], before[column]);
  for (const column of counters) compare(column, derived[column], derivedBefore[column]);
  const sql = `UPDATE ${table} SET ${changed.join(', ')} WHERE id = ? AND position = ?`;
  changeOne(tx, sql, ...values, row.id ?? null, previous);
}

type Columns = { readonly [column: string]: SqlValue };

const ALL_COLUMNS = new Map(STATE_TABLES.map(({ name, facts, derived }) => [name, [...facts, ...derived]]));
