import { formatId, rowHash, type StateTable, tableNamed } from '../log/tables.ts';
import type { SqlValue, Transaction } from '../storage/engine.ts';
import type { Effect } from '../tool.ts';
import type { TaskRow } from './facts.ts';
import { marks } from './lookup.ts';
import type { Written } from './rule.ts';
import { isFinal, queueOf } from './tasks/workflows.ts';

/** Writes the rows of a ruling, keeps the derived columns current, and answers the effects for the exit row. */
export async function applyRows(tx: Transaction, rows: readonly Written[]): Promise<Effect[]> {
  const effects: Effect[] = [];
  for (const written of rows) {
    await (written.table === 'tasks' ? writeTask(tx, written.row, written.previous) : writeRow(tx, written));
    effects.push(effectOf(written));
  }
  return effects;
}

/** What the log says of a row that a call wrote. The seal is said in plain text, so that the log alone proves it. */
function effectOf({ table: name, row, previous }: Written): Effect {
  const table = tableNamed(name);
  const effect = { table: name, id: formatId(table, row.id), hash: rowHash(table, { ...row }), previous };
  const isSeal = 'merkle_root' in row && row.merkle_root !== null && row.leaf_count !== null;
  if (!isSeal) return effect;
  return { ...effect, seal: { leaf_count: row.leaf_count ?? 0, merkle_root: row.merkle_root ?? '' } };
}

async function writeRow(tx: Transaction, { table: name, row, previous }: Written): Promise<void> {
  const table = tableNamed(name);
  if (previous === 0) await insert(tx, table, { ...row });
  else await update(tx, table, { ...row }, previous);
}

/** A task's own counters are counted; those of the tasks that wait for it move by one. */
async function writeTask(tx: Transaction, task: TaskRow, previous: number): Promise<void> {
  const table = tableNamed('tasks');
  const derived = {
    is_final: isFinal(task.workflow, task.status) ? 1 : 0,
    queue: queueOf(task.workflow, task.status),
  };
  if (previous === 0) {
    const unmet = await countUnfinished(tx, dependenciesOf(task));
    await insert(tx, table, { ...task, ...derived, unmet });
    if (task.parent_id !== null)
      await tx.run('UPDATE tasks SET unmet = unmet + 1 WHERE id = ?', task.parent_id);
    return;
  }
  const before = await tx.get<{ is_final: number; depends_on: string }>(
    'SELECT is_final, depends_on FROM tasks WHERE id = ?',
    task.id,
  );
  await update(tx, table, { ...task, ...derived }, previous);
  if (before?.depends_on !== task.depends_on) await recountUnmet(tx, task);
  if (before?.is_final === 0 && derived.is_final === 1)
    await tx.run(
      `UPDATE tasks SET unmet = unmet - 1
       WHERE id = ? OR id IN (SELECT task_id FROM task_dependencies WHERE depends_on = ?)`,
      task.parent_id,
      task.id,
    );
}

function dependenciesOf(task: TaskRow): number[] {
  return JSON.parse(task.depends_on) as number[];
}

/** How many of these tasks are unfinished. Cancelled counts as finished. */
async function countUnfinished(tx: Transaction, ids: readonly number[]): Promise<number> {
  if (ids.length === 0) return 0;
  const sql = `SELECT count(*) AS count FROM tasks WHERE is_final = 0 AND id IN (${marks(ids)})`;
  return (await tx.get<{ count: number }>(sql, ...ids))?.count ?? 0;
}

async function recountUnmet(tx: Transaction, task: TaskRow): Promise<void> {
  await tx.run(
    `UPDATE tasks SET unmet = (
       SELECT count(*) FROM tasks c WHERE c.is_final = 0 AND
         (c.parent_id = ? OR c.id IN (SELECT depends_on FROM task_dependencies WHERE task_id = ?))
     ) WHERE id = ?`,
    task.id,
    task.id,
    task.id,
  );
}

type Values = Readonly<Record<string, SqlValue>>;

async function insert(tx: Transaction, table: StateTable, row: Values): Promise<void> {
  const columns = Object.keys(row);
  const sql = `INSERT INTO ${table.name} (${columns.join(', ')}) VALUES (${marks(columns)})`;
  const { changes } = await tx.run(sql, ...Object.values<SqlValue>(row));
  if (changes !== 1) throw new Error(`a row of ${table.name} was not stored`);
}

/** Only a row that is as the rule saw it is changed. */
async function update(tx: Transaction, table: StateTable, row: Values, previous: number): Promise<void> {
  const columns = Object.keys(row).filter((column) => column !== 'id');
  const { changes } = await tx.run(
    `UPDATE ${table.name} SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE id = ? AND position = ?`,
    ...columns.map((column): SqlValue => row[column] ?? null),
    row.id ?? null,
    previous,
  );
  if (changes !== 1) throw new Error(`row ${row.id} of ${table.name} vanished inside a transaction`);
}
