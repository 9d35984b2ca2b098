import { formatId, type StateTable } from '../../log/state.ts';
import { SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import { checkRows, type StateRow } from '../../log/verify/state.ts';
import type { Reader } from '../../storage/engine.ts';
import {
  type ProofFacts,
  projectNote,
  type SessionFacts,
  sessionNote,
  type TaskFacts,
  type ThoughtFacts,
  taskNote,
} from './notes.ts';
import type { Note } from './vault.ts';

type TaskRecord = Omit<TaskFacts, 'labels' | 'depends_on'> & {
  readonly labels: string;
  readonly depends_on: string;
};
type SessionRecord = Omit<SessionFacts, 'skills'> & { readonly skills: string };

/** One note a task, a session and a project, from one snapshot. `checkpointedThrough` is how far a signed head reaches. */
export async function renderNotes(tx: Reader, checkpointedThrough: number): Promise<Note[]> {
  const tasks = (await tx.all<TaskRecord>('SELECT * FROM tasks ORDER BY id')).map(readTask);
  const sessions = (await tx.all<SessionRecord>('SELECT * FROM sessions ORDER BY id')).map(
    (session): SessionFacts => ({ ...session, skills: JSON.parse(session.skills) as SessionFacts['skills'] }),
  );
  const proofs = await proveAll(tx, checkpointedThrough);
  const children = groupBy(tasks, (task) => task.parent_id ?? 0);
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const dependents = groupPairs(
    tasks.flatMap((task) => task.depends_on.map((other) => [other, task] as const)),
  );
  const sessionsOf = groupBy(sessions, (session) => session.task_id);
  const notes: Note[] = [];
  for (const task of tasks) {
    const thoughts = await tx.all<ThoughtFacts>(
      'SELECT * FROM thoughts WHERE task_id = ? ORDER BY chain_position',
      task.id,
    );
    const around = {
      children: children.get(task.id) ?? [],
      dependencies: task.depends_on.flatMap((id) => byId.get(id) ?? []),
      dependents: dependents.get(task.id) ?? [],
      sessions: sessionsOf.get(task.id) ?? [],
    };
    notes.push(
      taskNote(
        task,
        thoughts,
        around,
        proofs(
          TASKS,
          task.id,
          thoughts.map((thought) => [THOUGHTS, thought.id] as const),
        ),
      ),
    );
  }
  for (const session of sessions)
    notes.push(sessionNote(session, await recordsOf(tx, session.id), proofs(SESSIONS, session.id, [])));
  for (const [project, own] of groupBy(tasks, (task) => task.project)) notes.push(projectNote(project, own));
  return notes;
}

type Prover = (table: StateTable, id: number, also: readonly (readonly [StateTable, number])[]) => ProofFacts;

/** Checks every row once and remembers what was found against which record. */
async function proveAll(tx: Reader, checkpointedThrough: number): Promise<Prover> {
  const found = new Map<string, string[]>();
  const positions = new Map<string, number>();
  for (const table of [TASKS, THOUGHTS, SESSIONS]) {
    const columns = (await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', table.name)).map(
      (column) => column.name,
    );
    const rows = await tx.all<StateRow>(`SELECT ${columns.join(', ')} FROM ${table.name}`);
    for (const row of rows) positions.set(formatId(table, row.id), row.position);
    await checkRows(tx, table, rows, ({ record, message }) =>
      found.set(record, [...(found.get(record) ?? []), message]),
    );
  }
  return (table, id, also) => {
    const records = [formatId(table, id), ...also.map(([other, otherId]) => formatId(other, otherId))];
    return {
      findings: records.flatMap((record) => found.get(record) ?? []),
      checkpointed: records.every((record) => (positions.get(record) ?? 0) <= checkpointedThrough),
    };
  };
}

async function recordsOf(tx: Reader, session: number): Promise<{ name: string; hash: string }[]> {
  const rows = await tx.all<{ kind: string; ref: number; hash: string | null }>(
    `SELECT r.kind, r.ref, CASE r.kind WHEN 'thought' THEN (SELECT hash FROM thoughts WHERE id = r.ref)
       ELSE (SELECT content_hash FROM actions WHERE position = r.ref) END AS hash
     FROM session_records r WHERE r.session_id = ? ORDER BY r.id`,
    session,
  );
  return rows.map(({ kind, ref, hash }) => ({
    name: kind === 'thought' ? formatId(THOUGHTS, ref) : `audit row ${ref}`,
    hash: hash ?? 'gone',
  }));
}

function readTask(record: TaskRecord): TaskFacts {
  return {
    ...record,
    labels: JSON.parse(record.labels) as string[],
    depends_on: JSON.parse(record.depends_on) as number[],
  };
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  return groupPairs(items.map((item) => [keyOf(item), item] as const));
}

function groupPairs<T, K>(pairs: readonly (readonly [K, T])[]): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const [key, item] of pairs) {
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
