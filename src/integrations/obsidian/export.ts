import type { SessionRow, TaskRow, ThoughtRow } from '../../domains/facts.ts';
import { type Leaf, sessionRecords, shownColumns } from '../../domains/lookup.ts';
import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import { dependsOn, type ProofFacts, projectNote, sessionNote, taskNote } from './notes.ts';
import type { Note } from './vault.ts';

/** What verification said of the log: findings by record (`T-0001`), and how far a signed head reaches. */
export interface LogProof {
  readonly findings: ReadonlyMap<string, readonly string[]>;
  readonly checkpointedThrough: number;
}

/** One note per task, session and project, from one snapshot. */
export async function renderNotes(tx: Reader, proof: LogProof): Promise<Note[]> {
  const tasks = await tx.all<TaskRow>(`SELECT ${shownColumns(TASKS)} FROM tasks ORDER BY id`);
  const sessions = await tx.all<SessionRow>(`SELECT ${shownColumns(SESSIONS)} FROM sessions ORDER BY id`);
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const children = groupBy(tasks, (task) => task.parent_id);
  const waits = tasks.flatMap((task) => dependsOn(task).map((other) => ({ task, other })));
  const dependents = groupBy(waits, ({ other }) => other);
  const sessionsOf = groupBy(sessions, (session) => session.task_id);
  const notes: Note[] = [];
  for (const task of tasks) {
    const thoughts = await tx.all<ThoughtRow>(
      `SELECT ${shownColumns(THOUGHTS)} FROM thoughts WHERE task_id = ? ORDER BY chain_position`,
      task.id,
    );
    const around = {
      children: children.get(task.id) ?? [],
      dependencies: dependsOn(task).flatMap((id) => byId.get(id) ?? []),
      dependents: (dependents.get(task.id) ?? []).map((wait) => wait.task),
      sessions: sessionsOf.get(task.id) ?? [],
    };
    const records = [named(TASKS, task), ...thoughts.map((thought) => named(THOUGHTS, thought))];
    notes.push(taskNote(task, thoughts, around, proofOf(records, proof)));
  }
  for (const session of sessions) {
    const leaves: Leaf[] = [];
    for await (const page of sessionRecords(tx, session.id)) leaves.push(...page);
    notes.push(sessionNote(session, leaves, proofOf([named(SESSIONS, session)], proof)));
  }
  for (const [project, own] of groupBy(tasks, (task) => task.project)) notes.push(projectNote(project, own));
  return notes;
}

function named(table: StateTable, { id, position }: Pick<TaskRow, 'id' | 'position'>) {
  return { name: formatId(table, id), position };
}

function proofOf(records: readonly ReturnType<typeof named>[], proof: LogProof): ProofFacts {
  return {
    findings: records.flatMap(({ name }) => proof.findings.get(name) ?? []),
    checkpointed: records.every(({ position }) => position <= proof.checkpointedThrough),
  };
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
