import { TASKS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import type { TaskRow } from '../facts.ts';
import { shown, shownColumns } from '../lookup.ts';
import { requireRow } from '../ruled.ts';
import { QUEUE } from './workflows.ts';

/** A task as people and agents see it: its texts in place of their digests, and what is derived. */
export interface ShownTask extends TaskRow {
  readonly unmet: number;
  /** 1 if the owner has erased its title. */
  readonly erased: number;
}

/** The task with this id, or an error that names the nearest ones there are. */
export async function requireTask(tx: Reader, text: string): Promise<ShownTask> {
  return await requireRow(tx, TASKS, text, (id) => tx.get<ShownTask>(SELECT_SHOWN, id));
}

const SELECT_SHOWN = `SELECT ${shownColumns(TASKS)}, unmet,
  NOT EXISTS (SELECT 1 FROM texts WHERE digest = tasks.title) AS erased FROM tasks WHERE id = ?`;

export async function projectExists(tx: Reader, project: string): Promise<boolean> {
  return (await tx.get('SELECT 1 AS found FROM tasks WHERE project = ? LIMIT 1', project)) !== undefined;
}

export async function projectNames(tx: Reader): Promise<string[]> {
  const sql = 'SELECT DISTINCT project FROM tasks ORDER BY project LIMIT 50';
  return (await tx.all<{ project: string }>(sql)).map((row) => row.project);
}

export type NextAction = Pick<
  ShownTask,
  'id' | 'title' | 'priority' | 'assignee' | 'estimate_hours' | 'parent_id' | 'unmet'
>;

export const nextActions = queued<NextAction>(
  QUEUE.next,
  `id, ${shown(TASKS, 'title')}, priority, assignee, estimate_hours, parent_id, unmet`,
);

export const blockedTasks = queued<Pick<ShownTask, 'id' | 'title' | 'blocked_reason'>>(
  QUEUE.blocked,
  `id, ${shown(TASKS, 'title')}, ${shown(TASKS, 'blocked_reason')}`,
);

/**
 * Ready ones first, then the most urgent, then the oldest: a walk along an index that finished tasks are not in. SQLite
 * sees that the index fits only if the urgency is as the index has it, word for word, and the number is in the text.
 */
function queued<T extends object>(queue: number, columns: string) {
  const urgency = "CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END";
  const rest = `queue = ${queue} AND queue > 0 ORDER BY unmet > 0, ${urgency}, id LIMIT ?`;
  return async (tx: Reader, project: string | undefined, limit: number): Promise<T[]> =>
    project === undefined
      ? await tx.all<T>(`SELECT ${columns} FROM tasks WHERE ${rest}`, limit)
      : await tx.all<T>(`SELECT ${columns} FROM tasks WHERE project = ? AND ${rest}`, project, limit);
}
