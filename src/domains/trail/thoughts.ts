import { THOUGHTS } from '../../log/tables.ts';
import { ERASED, readTexts } from '../../log/texts.ts';
import type { Reader } from '../../storage/engine.ts';
import type { ThoughtRow } from '../facts.ts';
import { columnsOf } from '../lookup.ts';

/** A thought with its texts. */
export interface ShownThought extends Omit<ThoughtRow, 'tests_run' | 'blockers' | 'metadata'> {
  readonly tests_run: readonly string[];
  readonly blockers: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly erased: boolean;
}

/** Which thoughts a listing speaks of: those of a task, those that are records of a session, both, or all. */
export interface ThoughtFilter {
  readonly task: number | undefined;
  readonly session: number | undefined;
  readonly type: string | undefined;
}

export async function listThoughts(
  tx: Reader,
  filter: ThoughtFilter,
  limit: number,
  offset: number,
): Promise<{ thoughts: ShownThought[]; count: number }> {
  const { where, params } = conditionsOf(filter);
  const order = filter.session === undefined && filter.task !== undefined ? 'chain_position' : 'id';
  const rows = await tx.all<ThoughtRow>(
    `SELECT ${columnsOf(THOUGHTS)} FROM thoughts ${where} ORDER BY ${order} LIMIT ? OFFSET ?`,
    ...params,
    limit,
    offset,
  );
  const total = await tx.get<{ count: number }>(`SELECT count(*) AS count FROM thoughts ${where}`, ...params);
  return { thoughts: await withTexts(tx, rows), count: total?.count ?? 0 };
}

function conditionsOf({ task, session, type }: ThoughtFilter): {
  where: string;
  params: (string | number)[];
} {
  const conditions: string[] = [];
  const params: (string | number)[] = [];
  const add = (sql: string, value: string | number | undefined) => {
    if (value === undefined) return;
    conditions.push(sql);
    params.push(value);
  };
  add('task_id = ?', task);
  // By the session's records, so that a child's thought in a deep session is included.
  add("id IN (SELECT ref FROM session_records WHERE session_id = ? AND kind = 'thought')", session);
  add('type = ?', type);
  return { where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, params };
}

async function withTexts(tx: Reader, rows: readonly ThoughtRow[]): Promise<ShownThought[]> {
  const digests = rows.flatMap((row) => [row.content, row.tests_run, row.blockers, row.metadata]);
  const texts = await readTexts(tx, digests);
  return rows.map((row) => showThought(row, texts));
}

function showThought(row: ThoughtRow, texts: ReadonlyMap<string, string>): ShownThought {
  const list = (digest: string | null) => JSON.parse(texts.get(digest ?? '') ?? '[]') as string[];
  const metadata = row.metadata === null ? undefined : texts.get(row.metadata);
  return {
    ...row,
    content: texts.get(row.content) ?? ERASED,
    tests_run: list(row.tests_run),
    blockers: list(row.blockers),
    metadata: metadata === undefined ? undefined : (JSON.parse(metadata) as Record<string, unknown>),
    erased: !texts.has(row.content),
  };
}
