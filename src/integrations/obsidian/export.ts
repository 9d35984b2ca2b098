import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../../log/tables.ts';
import { ERASED, readTexts } from '../../log/texts.ts';
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

/** What verification said of the log: findings by record (`T-0001`), and how far a signed head reaches. */
export interface LogProof {
  readonly findings: ReadonlyMap<string, readonly string[]>;
  readonly checkpointedThrough: number;
}

type Stored<T> = T & { readonly position: number };
type TaskRecord = Stored<
  Omit<TaskFacts, 'labels' | 'depends_on' | 'description'> & {
    readonly labels: string;
    readonly depends_on: string;
    readonly description: string | null;
  }
>;
type SessionRecord = Stored<Omit<SessionFacts, 'skills'> & { readonly skills: string }>;

/** One note per task, session and project, from one snapshot. */
export async function renderNotes(tx: Reader, proof: LogProof): Promise<Note[]> {
  const tasks = await readTasks(tx);
  const sessions = await readSessions(tx);
  const children = groupBy(tasks, (task) => task.parent_id ?? 0);
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const dependents = groupPairs(
    tasks.flatMap((task) => task.depends_on.map((other) => [other, task] as const)),
  );
  const sessionsOf = groupBy(sessions, (session) => session.task_id);
  const notes: Note[] = [];
  for (const task of tasks) {
    const thoughts = await readThoughts(tx, task.id);
    const around = {
      children: children.get(task.id) ?? [],
      dependencies: task.depends_on.flatMap((id) => byId.get(id) ?? []),
      dependents: dependents.get(task.id) ?? [],
      sessions: sessionsOf.get(task.id) ?? [],
    };
    const records = [proved(TASKS, task), ...thoughts.map((thought) => proved(THOUGHTS, thought))];
    notes.push(taskNote(task, thoughts, around, proofOf(records, proof)));
  }
  for (const session of sessions) {
    const records = await recordsOf(tx, session.id);
    notes.push(sessionNote(session, records, proofOf([proved(SESSIONS, session)], proof)));
  }
  for (const [project, own] of groupBy(tasks, (task) => task.project)) notes.push(projectNote(project, own));
  return notes;
}

interface ProvedRecord {
  readonly name: string;
  readonly position: number;
}

function proved(table: StateTable, { id, position }: { id: number; position: number }): ProvedRecord {
  return { name: formatId(table, id), position };
}

function proofOf(records: readonly ProvedRecord[], proof: LogProof): ProofFacts {
  return {
    findings: records.flatMap(({ name }) => proof.findings.get(name) ?? []),
    checkpointed: records.every(({ position }) => position <= proof.checkpointedThrough),
  };
}

async function readTasks(tx: Reader): Promise<Stored<TaskFacts>[]> {
  const rows = await tx.all<TaskRecord>('SELECT * FROM tasks ORDER BY id');
  const texts = await readTexts(
    tx,
    rows.flatMap((row) => [row.title, row.description, row.blocked_reason]),
  );
  return rows.map((row) => ({
    ...row,
    title: textOf(row.title, texts),
    description: row.description === null ? '' : textOf(row.description, texts),
    blocked_reason: row.blocked_reason === null ? null : textOf(row.blocked_reason, texts),
    labels: JSON.parse(row.labels) as string[],
    depends_on: JSON.parse(row.depends_on) as number[],
  }));
}

async function readThoughts(tx: Reader, task: number): Promise<Stored<ThoughtFacts>[]> {
  const rows = await tx.all<Stored<ThoughtFacts>>(
    'SELECT * FROM thoughts WHERE task_id = ? ORDER BY chain_position',
    task,
  );
  const texts = await readTexts(
    tx,
    rows.map(({ content }) => content),
  );
  return rows.map((row) => ({ ...row, content: textOf(row.content, texts) }));
}

async function readSessions(tx: Reader): Promise<Stored<SessionFacts>[]> {
  const rows = await tx.all<SessionRecord>('SELECT * FROM sessions ORDER BY id');
  const texts = await readTexts(
    tx,
    rows.map(({ reason }) => reason),
  );
  return rows.map((row) => ({
    ...row,
    reason: row.reason === null ? null : textOf(row.reason, texts),
    skills: JSON.parse(row.skills) as SessionFacts['skills'],
  }));
}

function textOf(digest: string, texts: ReadonlyMap<string, string>): string {
  return texts.get(digest) ?? ERASED;
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
