import { formatId, rowHash, tableNamed } from '../log/tables.ts';
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
    if (written.table === 'tasks') await writeTask(tx, written.row, written.previous);
    else await writeRow(tx, written.table, { ...written.row }, written.previous);
    effects.push(effectOf(written));
  }
  return effects;
}

/** What the log says of a row that a call wrote. The seal is said in plain text, so that the log alone proves it. */
function effectOf({ table: name, row, previous }: Written): Effect {
  const table = tableNamed(name);
  const effect = { table: name, id: formatId(table, row.id), hash: rowHash(table, { ...row }), previous };
  if (!('merkle_root' in row) || row.merkle_root === null || row.leaf_count === null) return effect;
  return { ...effect, seal: { leaf_count: row.leaf_count, merkle_root: row.merkle_root } };
}

/** A task's own counters are counted; those of the tasks that wait for it move by one. */
async function writeTask(tx: Transaction, task: TaskRow, previous: number): Promise<void> {
  const is_final = isFinal(task.workflow, task.status) ? 1 : 0;
  const row = { ...task, is_final, queue: queueOf(task.workflow, task.status) };
  const before =
    previous === 0
      ? { is_final: 0, depends_on: '[]' }
      : await tx.get<{ is_final: number; depends_on: string }>(
          'SELECT is_final, depends_on FROM tasks WHERE id = ?',
          task.id,
        );
  await writeRow(tx, 'tasks', previous === 0 ? { ...row, unmet: 0 } : row, previous);
  if (previous === 0 && task.parent_id !== null)
    await tx.run('UPDATE tasks SET unmet = unmet + 1 WHERE id = ?', task.parent_id);
  if (before?.depends_on !== task.depends_on)
    await tx.run(
      `UPDATE tasks SET unmet = (
         SELECT count(*) FROM tasks c WHERE c.is_final = 0 AND
           (c.parent_id = tasks.id OR c.id IN (SELECT depends_on FROM task_dependencies WHERE task_id = tasks.id))
       ) WHERE id = ?`,
      task.id,
    );
  if (before?.is_final === 0 && is_final === 1)
    await tx.run(
      `UPDATE tasks SET unmet = unmet - 1
       WHERE id = ? OR id IN (SELECT task_id FROM task_dependencies WHERE depends_on = ?)`,
      task.parent_id,
      task.id,
    );
}

/** Stores a new row, or changes one that is still as the rule saw it. */
async function writeRow(
  tx: Transaction,
  table: Written['table'],
  { id, ...row }: Readonly<Record<string, SqlValue>>,
  previous: number,
): Promise<void> {
  const columns = Object.keys(row);
  const sql =
    previous === 0
      ? `INSERT INTO ${table} (${columns.join(', ')}, id) VALUES (${marks(columns)}, ?)`
      : `UPDATE ${table} SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE id = ? AND position = ?`;
  const values: SqlValue[] = [...Object.values(row), id ?? null, ...(previous === 0 ? [] : [previous])];
  const { changes } = await tx.run(sql, ...values);
  if (changes !== 1) throw new Error(`row ${id} of ${table} was not stored`);
}
