import { parseId, TASKS } from '../../log/tables.ts';
import { ERASED } from '../../log/texts.ts';
import type { Reader } from '../../storage/engine.ts';
import type { TaskRow } from '../facts.ts';
import { columnsOf } from '../lookup.ts';
import { notFound } from '../ruled.ts';

/** A task as people and agents see it: its texts in full, and what is derived from others. */
export type ShownTask = Omit<TaskRow, 'title' | 'description' | 'blocked_reason'> & {
  readonly title: string;
  readonly description: string;
  readonly blocked_reason: string | null;
  readonly unmet: number;
  readonly erased: boolean;
};

type FoundTask = TaskRow & {
  readonly unmet: number;
  readonly title_text: string | null;
  readonly description_text: string | null;
  readonly reason_text: string | null;
};

/** The task with this id, or an error that names the nearest ones there are. */
export async function requireTask(tx: Reader, text: string): Promise<ShownTask> {
  const id = parseId(TASKS, text);
  const task = id === undefined ? undefined : await findTask(tx, id);
  if (task !== undefined) return task;
  throw await notFound(tx, TASKS, text, 'task_id');
}

async function findTask(tx: Reader, id: number): Promise<ShownTask | undefined> {
  const row = await tx.get<FoundTask>(
    `SELECT ${columnsOf(TASKS, 't.')}, t.unmet, a.text AS title_text, b.text AS description_text, c.text AS reason_text
     FROM tasks t LEFT JOIN texts a ON a.digest = t.title LEFT JOIN texts b ON b.digest = t.description
     LEFT JOIN texts c ON c.digest = t.blocked_reason WHERE t.id = ?`,
    id,
  );
  if (row === undefined) return undefined;
  const { title_text, description_text, reason_text, ...task } = row;
  return {
    ...task,
    title: title_text ?? ERASED,
    description: task.description === null ? '' : (description_text ?? ERASED),
    blocked_reason: task.blocked_reason === null ? null : (reason_text ?? ERASED),
    erased: title_text === null,
  };
}

export async function projectExists(tx: Reader, project: string): Promise<boolean> {
  return (await tx.get('SELECT 1 AS found FROM tasks WHERE project = ? LIMIT 1', project)) !== undefined;
}

export async function projectNames(tx: Reader): Promise<string[]> {
  const rows = await tx.all<{ project: string }>(
    'SELECT DISTINCT project FROM tasks ORDER BY project LIMIT 50',
  );
  return rows.map((row) => row.project);
}

export async function childIds(tx: Reader, parent: number): Promise<number[]> {
  return (await tx.all<{ id: number }>('SELECT id FROM tasks WHERE parent_id = ? ORDER BY id', parent)).map(
    (row) => row.id,
  );
}

export async function thoughtIds(tx: Reader, task: number): Promise<number[]> {
  const sql = 'SELECT id FROM thoughts WHERE task_id = ? ORDER BY chain_position';
  return (await tx.all<{ id: number }>(sql, task)).map((row) => row.id);
}
