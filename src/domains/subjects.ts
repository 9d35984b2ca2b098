import { parseId, SESSIONS, TASKS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import type { SessionRow } from './facts.ts';
import { columnsOf } from './lookup.ts';
import { notFound } from './ruled.ts';

/** The session with this id, or an error that names the nearest there are. */
export async function requireSession(tx: Reader, text: string): Promise<SessionRow> {
  const id = parseId(SESSIONS, text);
  const sql = `SELECT ${columnsOf(SESSIONS)} FROM sessions WHERE id = ?`;
  const session = id === undefined ? undefined : await tx.get<SessionRow>(sql, id);
  if (session !== undefined) return session;
  throw await notFound(tx, SESSIONS, text, 'session_id');
}

/** The number of the task with this id, or an error that names the nearest there are. */
export async function requireTaskNumber(tx: Reader, text: string): Promise<number> {
  const id = parseId(TASKS, text);
  const found = id === undefined ? undefined : await tx.get('SELECT 1 AS found FROM tasks WHERE id = ?', id);
  if (id !== undefined && found !== undefined) return id;
  throw await notFound(tx, TASKS, text, 'task_id');
}
