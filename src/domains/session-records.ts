import type { SessionRecordRow, SessionRow } from './facts.ts';
import { ask, type Call, type Steps, type Written } from './rule.ts';

/** Adds a record to each of these open sessions. */
export function* recordIn(
  sessions: readonly SessionRow[],
  record: Pick<SessionRecordRow, 'kind' | 'ref' | 'task_id'>,
  call: Call,
): Steps<Written[]> {
  if (sessions.length === 0) return [];
  const { first } = yield* ask({ first: ['nextId', 'session_records'] });
  return sessions.map(
    (session, i): Written => ({
      table: 'session_records',
      row: { id: first + i, session_id: session.id, ...record, position: call.position },
      previous: 0,
    }),
  );
}
