import { insertState, nextId, notFound, parseId, updateState } from '../../log/state.ts';
import { TASKS } from '../../log/tables.ts';
import type { Reader, Transaction } from '../../storage/engine.ts';
import type { CallContext } from '../../tool.ts';
import type { PRIORITIES } from './schema.ts';
import type { Status, Workflow } from './workflows.ts';

/** A row of `tasks` as it is stored. */
export interface TaskRow {
  readonly id: number;
  readonly project: string;
  readonly sequence: number;
  readonly title: string;
  readonly description: string;
  readonly workflow: Workflow;
  readonly status: Status;
  readonly status_since: string;
  readonly status_by: string;
  readonly is_final: number;
  readonly queue: number;
  readonly unmet: number;
  readonly blocked_reason: string | null;
  readonly progress: number;
  readonly priority: (typeof PRIORITIES)[number];
  readonly type: string | null;
  readonly proof_grade: number;
  readonly assignee: string;
  readonly labels: string;
  readonly estimate_hours: number | null;
  readonly parent_id: number | null;
  readonly depends_on: string;
  readonly created_at: string;
  readonly created_by: string;
  readonly updated_at: string;
  readonly updated_by: string;
}

/** With what the state writer adds. */
type StoredTask = TaskRow & { readonly salt: string; readonly position: number };

type Writable = Record<string, string | number | null>;

// Named, not *: a generated column must not slip into the digest of the row.
const COLUMNS = `id, project, sequence, title, description, workflow, status, status_since, status_by, is_final, queue, unmet,
  blocked_reason, progress, priority, type, proof_grade, assignee, labels, estimate_hours, parent_id, depends_on,
  created_at, created_by, updated_at, updated_by, salt, position`;

export async function findTask(tx: Reader, id: number): Promise<StoredTask | undefined> {
  return await tx.get<StoredTask>(`SELECT ${COLUMNS} FROM tasks WHERE id = ?`, id);
}

/** The task with this id, or an error that names the nearest ones there are. */
export async function requireTask(tx: Reader, text: string, field = 'task_id'): Promise<StoredTask> {
  const id = parseId(TASKS, text);
  const task = id === undefined ? undefined : await findTask(tx, id);
  if (task !== undefined) return task;
  throw await notFound(tx, TASKS, 'ERR_TASK_NOT_FOUND', text, field);
}

export async function insertTask(
  tx: Transaction,
  call: CallContext,
  task: Omit<TaskRow, 'id' | 'sequence'>,
): Promise<TaskRow> {
  const id = await nextId(tx, TASKS);
  const last = await tx.get<{ sequence: number | null }>(
    'SELECT max(sequence) AS sequence FROM tasks WHERE project = ?',
    task.project,
  );
  const row: TaskRow = { id, sequence: (last?.sequence ?? 0) + 1, ...task };
  await insertState(tx, call, TASKS, row as unknown as Writable & { id: number });
  return row;
}

export async function updateTask(
  tx: Transaction,
  call: CallContext,
  before: TaskRow,
  changes: Partial<TaskRow>,
): Promise<TaskRow> {
  const after = await updateState(
    tx,
    call,
    TASKS,
    before as unknown as Writable & { id: number },
    changes as Writable,
  );
  return after as unknown as TaskRow;
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
