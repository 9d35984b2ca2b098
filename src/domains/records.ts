import { ColibriError } from '../errors.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { formatId, parseId, type StateTable, TASKS } from '../log/tables.ts';
import type { SessionRecordRow, SessionRow } from './facts.ts';
import { ask, type Call, type HashedThought, type Steps, type Written } from './rule.ts';

// What the rules of several domains share. Pure, like the rules.

/** The number inside an id. Whether there is such a record, only a lookup can tell. */
export function numberOf(table: StateTable, text: string, field = `${table.noun}_id`): number {
  const id = parseId(table, text);
  if (id === undefined) throw notFound(table, text, field);
  return id;
}

/** An id that leads nowhere. `ruled` and `requireRow` add the nearest that exist. */
export function notFound(table: StateTable, id: string, field = `${table.noun}_id`): ColibriError {
  const code = table === TASKS ? 'ERR_TASK_NOT_FOUND' : 'ERR_SESSION_NOT_FOUND';
  return new ColibriError(code, `There is no ${table.noun} ${JSON.stringify(id)} (${field}).`, { field, id });
}

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

/** The published formula: six fields in this order, as JSON without spaces. `content` is the text itself here. */
export function thoughtHash(thought: HashedThought): string {
  const { type, content, previous_hash, recorded_at, recorded_by } = thought;
  const task_id = formatId(TASKS, thought.task_id);
  return sha256Hex(JSON.stringify({ task_id, type, content, previous_hash, recorded_at, recorded_by }));
}

/** These columns of a row. */
export function pick<T extends object, const K extends keyof T>(row: T, ...columns: readonly K[]) {
  // A loop: the verifier runs it for each call, and entries would take three times as long.
  const picked: Partial<Pick<T, K>> = {};
  for (const column of columns) picked[column] = row[column];
  return picked as Pick<T, K>;
}

/** Those of these columns that have a value. */
export function given<T extends object, const K extends keyof T>(row: T, ...columns: readonly K[]) {
  const found: Partial<Pick<T, K>> = {};
  for (const column of columns)
    if (row[column] !== null && row[column] !== undefined) found[column] = row[column];
  return found as { [N in K]?: NonNullable<T[N]> };
}
