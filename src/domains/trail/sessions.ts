import { formatId, insertState, nextId, notFound, parseId, updateState } from '../../log/state.ts';
import { SESSION_RECORDS, SESSIONS, TASKS } from '../../log/tables.ts';
import type { Reader, Transaction } from '../../storage/engine.ts';
import type { CallContext } from '../../tool.ts';

/** A row of `sessions` as it is stored. */
export interface SessionRow {
  readonly id: number;
  readonly task_id: number;
  readonly auditor_id: string;
  readonly reason: string | null;
  readonly scope: 'shallow' | 'deep';
  readonly status: 'open' | 'finalized';
  readonly started_at: string;
  readonly started_by: string;
  readonly skills: string;
  readonly sealed_task_id: number | null;
  readonly merkle_root: string | null;
  readonly tree_depth: number | null;
  readonly leaf_count: number | null;
  readonly finalized_at: string | null;
  readonly finalized_by: string | null;
}

export type StoredSession = SessionRow & { readonly salt: string; readonly position: number };

type Writable = Record<string, string | number | null>;

/** A record of a session: a thought, or a task change by the position of its exit row. */
export interface SessionRecord {
  readonly kind: 'thought' | 'change';
  readonly ref: number;
  readonly task_id: number;
}

export async function insertSession(
  tx: Transaction,
  call: CallContext,
  session: Omit<SessionRow, 'id'>,
): Promise<SessionRow> {
  const row = { id: await nextId(tx, SESSIONS), ...session };
  await insertState(tx, call, SESSIONS, row as unknown as Writable & { id: number });
  return row;
}

export async function updateSession(
  tx: Transaction,
  call: CallContext,
  before: SessionRow,
  changes: Partial<SessionRow>,
): Promise<SessionRow> {
  const after = await updateState(
    tx,
    call,
    SESSIONS,
    before as unknown as Writable & { id: number },
    changes as Writable,
  );
  return after as unknown as SessionRow;
}

async function findSession(tx: Reader, text: string): Promise<StoredSession | undefined> {
  const id = parseId(SESSIONS, text);
  return id === undefined
    ? undefined
    : await tx.get<StoredSession>('SELECT * FROM sessions WHERE id = ?', id);
}

/** The session with this id, or an error that names the nearest there are. */
export async function requireSession(tx: Reader, text: string): Promise<StoredSession> {
  const session = await findSession(tx, text);
  if (session !== undefined) return session;
  throw await notFound(tx, SESSIONS, 'ERR_SESSION_NOT_FOUND', text, 'session_id');
}

export async function openSessionOf(tx: Reader, taskId: number): Promise<StoredSession | undefined> {
  return await tx.get<StoredSession>("SELECT * FROM sessions WHERE task_id = ? AND status = 'open'", taskId);
}

export async function hasFinalizedSession(tx: Reader, taskId: number): Promise<boolean> {
  const sql = "SELECT 1 AS found FROM sessions WHERE task_id = ? AND status = 'finalized' LIMIT 1";
  return (await tx.get(sql, taskId)) !== undefined;
}

/** Every open session that covers the task: its own, and deep ones of the tasks above it. */
export async function coveringSessions(tx: Reader, taskId: number): Promise<StoredSession[]> {
  if ((await tx.get("SELECT 1 AS found FROM sessions WHERE status = 'open' LIMIT 1")) === undefined)
    return [];
  return await tx.all<StoredSession>(
    `WITH RECURSIVE above (id, distance) AS (
       SELECT CAST(? AS INTEGER), 0
       UNION ALL
       SELECT t.parent_id, above.distance + 1 FROM tasks t JOIN above ON t.id = above.id WHERE t.parent_id IS NOT NULL
     )
     SELECT s.* FROM sessions s JOIN above ON s.task_id = above.id
     WHERE s.status = 'open' AND (above.distance = 0 OR s.scope = 'deep') ORDER BY s.id`,
    taskId,
  );
}

/** Whether the session is about the task: its own, or one below it where it is deep. */
export async function coversTask(tx: Reader, session: SessionRow, taskId: number): Promise<boolean> {
  if (session.task_id === taskId) return true;
  if (session.scope !== 'deep') return false;
  const found = await tx.get(
    `WITH RECURSIVE above (id) AS (
       SELECT CAST(? AS INTEGER) UNION SELECT t.parent_id FROM tasks t JOIN above ON t.id = above.id
     )
     SELECT 1 AS found FROM above WHERE id = ?`,
    taskId,
    session.task_id,
  );
  return found !== undefined;
}

/** Adds a record to every open session that covers its task. */
export async function addRecord(tx: Transaction, call: CallContext, record: SessionRecord): Promise<void> {
  for (const session of await coveringSessions(tx, record.task_id)) {
    const { kind, ref, task_id } = record;
    await insertState(tx, call, SESSION_RECORDS, {
      id: await nextId(tx, SESSION_RECORDS),
      session_id: session.id,
      task_id,
      kind,
      ref,
    });
  }
}

/** A change of a task is recorded by the exit row of the call that makes it. */
export async function noteTaskChange(tx: Transaction, call: CallContext, taskId: number): Promise<void> {
  await addRecord(tx, call, { kind: 'change', ref: call.position, task_id: taskId });
}

/** A record with the hash that is its leaf. A missing hash means the record itself is gone. */
export interface Leaf {
  readonly id: number;
  readonly kind: SessionRecord['kind'];
  readonly ref: number;
  readonly task_id: number;
  readonly hash: string | null;
}

/** The session's records in the order written, a page at a time. */
export async function sessionLeaves(
  tx: Reader,
  sessionId: number,
  onlyTask: number | null,
  after: number,
  limit: number,
): Promise<Leaf[]> {
  return await tx.all<Leaf>(
    `SELECT r.id, r.kind, r.ref, r.task_id,
       CASE r.kind WHEN 'thought' THEN (SELECT hash FROM thoughts WHERE id = r.ref)
                   ELSE (SELECT content_hash FROM actions WHERE position = r.ref) END AS hash
     FROM session_records r WHERE r.session_id = ? AND r.id > ? AND r.task_id = coalesce(?, r.task_id) ORDER BY r.id LIMIT ?`,
    sessionId,
    after,
    onlyTask,
    limit,
  );
}

export function sessionId(session: { readonly id: number }): string {
  return formatId(SESSIONS, session.id);
}

/** What a task must be known by here, without reaching into the domain that owns it. */
export interface TaskReference {
  readonly id: number;
  readonly proof_grade: number;
}

export async function requireTaskReference(tx: Reader, text: string): Promise<TaskReference> {
  const id = parseId(TASKS, text);
  const task =
    id === undefined
      ? undefined
      : await tx.get<TaskReference>('SELECT id, proof_grade FROM tasks WHERE id = ?', id);
  if (task !== undefined) return task;
  throw await notFound(tx, TASKS, 'ERR_TASK_NOT_FOUND', text, 'task_id');
}

/** When the last record joined the session, or when it began. */
export async function lastChangeOf(tx: Reader, session: SessionRow): Promise<string> {
  const row = await tx.get<{ at: string }>(
    `SELECT a.at FROM actions a WHERE a.position =
       (SELECT position FROM session_records WHERE session_id = ? ORDER BY id DESC LIMIT 1)`,
    session.id,
  );
  return row?.at ?? session.started_at;
}
