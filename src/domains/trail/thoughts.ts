import { THOUGHTS } from '../../log/tables.ts';
import { ERASED } from '../../log/texts.ts';
import type { Reader } from '../../storage/engine.ts';
import type { ThoughtRow } from '../facts.ts';
import { numberFrom, shownColumns } from '../lookup.ts';

/** A thought with its texts. */
export interface ShownThought extends Omit<ThoughtRow, 'tests_run' | 'blockers' | 'metadata'> {
  readonly tests_run: string[];
  readonly blockers: string[];
  readonly metadata: Record<string, unknown> | undefined;
  readonly erased: boolean;
}

/** Which thoughts a listing is about: those of a task, those that are records of a session, both, or all. */
export interface ThoughtFilter {
  readonly task: number | undefined;
  readonly session: number | undefined;
  readonly type: string | undefined;
}

/** By the session's records, so that a child's thought in a deep session is included. */
const IN_SESSION = "id IN (SELECT ref FROM session_records WHERE session_id = ? AND kind = 'thought')";

export async function listThoughts(
  tx: Reader,
  { task, session, type }: ThoughtFilter,
  limit: number,
  offset: number,
): Promise<{ thoughts: ShownThought[]; count: number }> {
  const given = (
    [
      ['task_id = ?', task],
      [IN_SESSION, session],
      ['type = ?', type],
    ] as const
  ).flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  const where = given.length === 0 ? '' : `WHERE ${given.map(({ sql }) => sql).join(' AND ')}`;
  const params = given.map(({ value }) => value);
  const order = session === undefined && task !== undefined ? 'chain_position' : 'id';
  const rows = await tx.all<ThoughtRow & { readonly erased: number }>(
    `SELECT ${shownColumns(THOUGHTS)}, NOT EXISTS (SELECT 1 FROM texts WHERE digest = thoughts.content) AS erased
     FROM thoughts ${where} ORDER BY ${order} LIMIT ? OFFSET ?`,
    ...params,
    limit,
    offset,
  );
  const count = await numberFrom(tx, `SELECT count(*) AS value FROM thoughts ${where}`, ...params);
  const thoughts = rows.map((row) => ({
    ...row,
    tests_run: parsed<string[]>(row.tests_run, []),
    blockers: parsed<string[]>(row.blockers, []),
    metadata: parsed<ShownThought['metadata']>(row.metadata, undefined),
    erased: row.erased === 1,
  }));
  return { thoughts, count };
}

/** What stands for an erased text is not JSON. */
function parsed<T>(text: string | null, otherwise: T): T {
  return text === null || text === ERASED ? otherwise : (JSON.parse(text) as T);
}
