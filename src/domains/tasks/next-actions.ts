import { ERASED } from '../../log/texts.ts';
import type { Reader, SqlValue } from '../../storage/engine.ts';
import type { TaskRow } from '../facts.ts';
import { QUEUE } from './workflows.ts';

export type NextAction = Pick<
  TaskRow,
  'id' | 'title' | 'priority' | 'assignee' | 'estimate_hours' | 'parent_id'
> & { readonly unmet: number };

export type BlockedTask = Pick<TaskRow, 'id' | 'title' | 'blocked_reason'>;

/** As the index has it, word for word: only then does SQLite walk along it. */
const URGENCY = "CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END";

/** Ready ones first, then the most urgent, then the oldest: a walk along an index that finished tasks are not in. */
const ORDER = `ORDER BY unmet > 0, ${URGENCY}, id LIMIT ?`;

export async function nextActions(
  tx: Reader,
  project: string | undefined,
  limit: number,
): Promise<NextAction[]> {
  const [where, params] = inQueue(QUEUE.next, project);
  return await tx.all<NextAction>(
    `SELECT id, ${text('title')}, priority, assignee, estimate_hours, parent_id, unmet FROM tasks ${where} ${ORDER}`,
    ...params,
    limit,
  );
}

export async function blockedTasks(
  tx: Reader,
  project: string | undefined,
  limit: number,
): Promise<BlockedTask[]> {
  const [where, params] = inQueue(QUEUE.blocked, project);
  return await tx.all<BlockedTask>(
    `SELECT id, ${text('title')}, ${text('blocked_reason')} FROM tasks ${where} ${ORDER}`,
    ...params,
    limit,
  );
}

/** A text of a task in the place of its digest. */
function text(column: 'title' | 'blocked_reason'): string {
  return `coalesce((SELECT text FROM texts WHERE digest = tasks.${column}), '${ERASED}') AS ${column}`;
}

/** The number stands in the text so that SQLite sees the partial index fits. */
function inQueue(queue: number, project: string | undefined): [sql: string, params: SqlValue[]] {
  if (project === undefined) return [`WHERE queue = ${queue} AND queue > 0`, []];
  return [`WHERE project = ? AND queue = ${queue} AND queue > 0`, [project]];
}
