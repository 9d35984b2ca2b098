import { ColibriError } from '../../errors.ts';
import { formatId } from '../../log/state.ts';
import { TASKS } from '../../log/tables.ts';
import type { Reader, Transaction } from '../../storage/engine.ts';
import type { CallContext } from '../../tool.ts';
import { findTask, requireTask, type TaskRow, updateTask } from './repository.ts';

/** The tasks named, each once, in the order given; an unknown one is an error. */
export async function resolveDependencies(tx: Reader, ids: readonly string[]): Promise<number[]> {
  const found: number[] = [];
  for (const text of new Set(ids)) found.push((await requireTask(tx, text, 'depends_on')).id);
  return found;
}

/**
 * A task waits for its children and for what it depends on. Refuses what would make `task` wait for itself, and spells
 * the circle out. Walks breadth first, so that the circle named is the shortest. `via` names a task between `task` and
 * its dependencies that does not exist yet.
 */
export async function assertNoCircle(
  tx: Reader,
  task: number,
  dependsOn: readonly number[],
  via?: string,
): Promise<void> {
  const cameFrom = new Map<number, number>();
  let edge = [...dependsOn];
  for (const id of edge) cameFrom.set(id, task);
  while (edge.length > 0) {
    if (cameFrom.has(task)) throw circle(task, cameFrom, via);
    const next: number[] = [];
    for (const id of edge) {
      for (const awaited of await awaitedBy(tx, id)) {
        if (cameFrom.has(awaited)) continue;
        cameFrom.set(awaited, id);
        next.push(awaited);
      }
    }
    edge = next;
  }
}

async function awaitedBy(tx: Reader, task: number): Promise<number[]> {
  const rows = await tx.all<{ id: number }>(
    'SELECT depends_on AS id FROM task_dependencies WHERE task_id = ? UNION SELECT id FROM tasks WHERE parent_id = ?',
    task,
    task,
  );
  return rows.map((row) => row.id);
}

function circle(task: number, cameFrom: ReadonlyMap<number, number>, via: string | undefined): ColibriError {
  const path = [task];
  for (let id = cameFrom.get(task); id !== undefined && id !== task; id = cameFrom.get(id)) path.unshift(id);
  const cycle = [task, ...path].map((id) => formatId(TASKS, id));
  if (via !== undefined) cycle.splice(1, 0, via);
  return new ColibriError(
    'ERR_CIRCULAR_DEPENDENCY',
    `${cycle[0]} would wait for itself: ${cycle.join(' waits for ')}. Leave one of these dependencies out.`,
    { cycle },
  );
}

/** How many of these tasks are unfinished. Cancelled counts as met. */
export async function countUnfinished(tx: Reader, ids: readonly number[]): Promise<number> {
  const row = await tx.get<{ count: number }>(
    'SELECT count(*) AS count FROM tasks WHERE is_final = 0 AND id IN (SELECT value FROM json_each(?))',
    JSON.stringify(ids),
  );
  return row?.count ?? 0;
}

/** What `task` still waits for, counted from the rows themselves. */
export async function countUnmet(tx: Reader, task: number, dependsOn: readonly number[]): Promise<number> {
  const row = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM tasks
     WHERE is_final = 0 AND (parent_id = ? OR id IN (SELECT value FROM json_each(?)))`,
    task,
    JSON.stringify(dependsOn),
  );
  return row?.count ?? 0;
}

/** Tells everybody who waits for `task` that one more, or one less, is to be waited for. */
export async function shiftWaiting(
  tx: Transaction,
  call: CallContext,
  task: TaskRow,
  by: 1 | -1,
): Promise<void> {
  const rows = await tx.all<{ id: number }>(
    'SELECT task_id AS id FROM task_dependencies WHERE depends_on = ? UNION SELECT id FROM tasks WHERE id = ? ORDER BY id',
    task.id,
    task.parent_id,
  );
  for (const { id } of rows) {
    const waiting = await findTask(tx, id);
    if (waiting !== undefined) await updateTask(tx, call, waiting, { unmet: waiting.unmet + by });
  }
}
