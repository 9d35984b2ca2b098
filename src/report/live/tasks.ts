import { parseId, TASKS } from '../../log/tables.ts';
import type { Condition, Reader } from '../../storage/engine.ts';
import { type ColumnCount, columnsOf, standingOf } from '../columns.ts';
import { CARDS_PAGE, type Filter, idIn, wordsOf } from '../filter.ts';

type Found = Readonly<Record<'id' | 'position', number>>;

/** The columns of the board with their counts, and the first cards of each. */
export async function readBoard(tx: Reader, filter: Filter) {
  const { sql, params } = conditionOf(tx, filter, 'updated_at');
  const counts = await tx.all<ColumnCount>(
    `SELECT workflow, status, count(*) AS count FROM tasks WHERE ${sql} GROUP BY workflow, status`,
    ...params,
  );
  const columns: (ColumnCount & { readonly tasks: readonly Found[] })[] = [];
  for (const column of columnsOf(counts))
    columns.push({ ...column, tasks: column.count === 0 ? [] : await readCards(tx, filter, column, 0) });
  return columns;
}

/** The most urgent tasks of a column, from one on. */
export async function readCards(
  tx: Reader,
  filter: Filter,
  column: Pick<ColumnCount, 'workflow' | 'status'>,
  from: number,
): Promise<Found[]> {
  const { sql, params } = conditionOf(tx, filter, 'updated_at');
  return await tx.all<Found>(
    `SELECT id, position FROM tasks WHERE workflow = ? AND status = ? AND ${sql} ORDER BY urgency, id LIMIT ? OFFSET ?`,
    ...[column.workflow, column.status, ...params, CARDS_PAGE, from],
  );
}

/** How many tasks are finished, open and cancelled, and those that came to it last. */
export async function readStanding(tx: Reader, filter: Filter, recentMax: number) {
  const all = conditionOf(tx, { ...filter, since: '', until: '', words: '' });
  const counts = await tx.all<{ status: string; count: number }>(
    `SELECT status, count(*) AS count FROM tasks WHERE ${all.sql} GROUP BY status`,
    ...all.params,
  );
  const { sql, params } = conditionOf(tx, { ...filter, words: '' }, 'status_since');
  const latest = (which: string) =>
    tx.all<Found>(
      `SELECT id, position FROM tasks WHERE status ${which} AND ${sql} ORDER BY status_since DESC, id DESC LIMIT ?`,
      ...[...params, recentMax],
    );
  return {
    tasks: standingOf(counts),
    finished: await latest("IN ('done', 'DONE')"),
    moving: await latest("NOT IN ('done', 'DONE', 'cancelled', 'CANCELLED')"),
  };
}

/** Tasks that this one belongs to, needs, holds or is needed by. */
export async function readRelated(tx: Reader, id: number, max: number) {
  const lists = {
    'part of': 'SELECT t.id, t.position FROM tasks c JOIN tasks t ON t.id = c.parent_id WHERE c.id = ?',
    'depends on':
      'SELECT t.id, t.position FROM task_dependencies d JOIN tasks t ON t.id = d.depends_on WHERE d.task_id = ?',
    'has the part': 'SELECT t.id, t.position FROM tasks t WHERE t.parent_id = ?',
    'needed by':
      'SELECT t.id, t.position FROM task_dependencies d JOIN tasks t ON t.id = d.task_id WHERE d.depends_on = ?',
  } as const;
  const related: (Found & { readonly how: string })[] = [];
  for (const [how, sql] of Object.entries(lists))
    for (const found of await tx.all<Found>(`${sql} ORDER BY t.id LIMIT ?`, id, max))
      related.push({ ...found, how });
  return related;
}

/** `period` is the column that dates are compared with. */
function conditionOf(tx: Reader, filter: Filter, period?: 'updated_at' | 'status_since'): Condition {
  const parts: Condition[] = [{ sql: '1 = 1', params: [] }];
  const { project, agent, since, until } = filter;
  if (project !== '') parts.push({ sql: 'project = ?', params: [project] });
  if (agent !== '')
    parts.push({
      sql: '(assignee = ? OR held_by = ? OR status_by = ? OR created_by = ?)',
      params: [agent, agent, agent, agent],
    });
  if (period !== undefined && since !== '') parts.push({ sql: `${period} >= ?`, params: [since] });
  // Behind the last moment of that day, and before the first of the next.
  if (period !== undefined && until !== '') parts.push({ sql: `${period} < ?`, params: [`${until}U`] });
  const id = idIn(filter);
  if (id !== undefined) parts.push({ sql: 'id = ?', params: [parseId(TASKS, id) ?? 0] });
  else for (const word of wordsOf(filter)) parts.push(wordCondition(tx, word));
  return { sql: parts.map(({ sql }) => sql).join(' AND '), params: parts.flatMap(({ params }) => params) };
}

/** A word of the title or the description, or a part of a name or a label. */
function wordCondition({ dialect }: Reader, word: string): Condition {
  const inNames = ['assignee', 'labels'].map((column) => ({
    sql: dialect.containsInAnyCase(column),
    params: [word],
  }));
  // What has no letter and no digit is in no index of words.
  const inTexts = /[\p{L}\p{N}]/u.test(word) ? [dialect.findTasks([word]).fetched] : [];
  const ways = [...inTexts, ...inNames];
  return {
    sql: `(${ways.map(({ sql }) => sql).join(' OR ')})`,
    params: ways.flatMap(({ params }) => params),
  };
}
