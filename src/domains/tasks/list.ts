import { ERASED } from '../../log/texts.ts';
import type { Reader, SqlValue } from '../../storage/engine.ts';
import type { TaskRow } from '../facts.ts';
import { utc } from '../fields.ts';
import type { ListArgs } from './schema.ts';
import { type Condition, searchCondition } from './search.ts';

const PAGE_DEFAULT = 50;

/** Column and direction come from these tables only; nothing a caller sends becomes SQL. */
const ORDERS = {
  created: { asc: 't.id ASC', desc: 't.id DESC' },
  updated: { asc: 't.updated_at ASC, t.id ASC', desc: 't.updated_at DESC, t.id DESC' },
  priority: { asc: 't.urgency DESC, t.id ASC', desc: 't.urgency ASC, t.id ASC' },
  progress: { asc: 't.progress ASC, t.id ASC', desc: 't.progress DESC, t.id ASC' },
} as const;

export type ListedTask = Pick<
  TaskRow,
  'id' | 'title' | 'project' | 'status' | 'priority' | 'progress' | 'assignee' | 'created_at' | 'updated_at'
>;

export interface Page {
  readonly rows: readonly ListedTask[];
  readonly total: number;
  readonly offset: number;
  readonly limit: number;
}

/** One page and the number of all that match. */
export async function listTasks(tx: Reader, args: ListArgs): Promise<Page> {
  const conditions = conditionsOf(args);
  const { limit = PAGE_DEFAULT, offset = 0, sort_by = 'updated', sort_order = 'desc' } = args;
  const plan = await planSearch(tx, conditions, sort_by, offset + limit);
  const where = conditions.length === 0 ? '' : `WHERE ${plan.conditions.map(({ sql }) => sql).join(' AND ')}`;
  const params = conditions.flatMap((condition) => condition.params);
  const rows = await tx.all<ListedTask>(
    `SELECT t.id, coalesce((SELECT text FROM texts WHERE digest = t.title), '${ERASED}') AS title, t.project, t.status,
       t.priority, t.progress, t.assignee, t.created_at, t.updated_at
     FROM tasks t ${where} ORDER BY ${ORDERS[sort_by][sort_order]} LIMIT ? OFFSET ?`,
    ...params,
    limit,
    offset,
  );
  const total = plan.total ?? (await countAll(tx, where, params, rows.length, offset, limit));
  return { rows, total, offset, limit };
}

interface SearchPlan {
  readonly conditions: readonly Condition[];
  /** How many match, where that was found out on the way. */
  readonly total?: number;
}

/**
 * A search for words alone is counted in their index, without a look at the tasks. And where so many match that a page of
 * them is met soon, it is faster to walk the tasks in their order and ask of each whether it matches than to fetch all that
 * match and sort them: at 100,000 tasks and 2,000 matches a third of the time. The plus sign is what makes SQLite do so.
 */
async function planSearch(
  tx: Reader,
  conditions: readonly Condition[],
  sortBy: string,
  needed: number,
): Promise<SearchPlan> {
  const [search, ...others] = conditions;
  if (search?.match === undefined || others.length > 0) return { conditions };
  const counted = await tx.get<{ count: number }>(
    'SELECT count(*) AS count FROM task_words WHERE task_words MATCH ?',
    search.match,
  );
  const total = counted?.count ?? 0;
  const last = (await tx.get<{ id: number | null }>('SELECT max(id) AS id FROM tasks'))?.id ?? 0;
  const walk = (sortBy === 'updated' || sortBy === 'created') && total * total > last * needed;
  return { conditions: walk ? [{ ...search, sql: `+${search.sql}` }] : conditions, total };
}

/** A page that is not full is the last one: its end is the count. */
async function countAll(
  tx: Reader,
  where: string,
  params: readonly SqlValue[],
  returned: number,
  offset: number,
  limit: number,
): Promise<number> {
  if (returned < limit && (returned > 0 || offset === 0)) return offset + returned;
  const row = await tx.get<{ count: number }>(`SELECT count(*) AS count FROM tasks t ${where}`, ...params);
  return row?.count ?? 0;
}

function conditionsOf(args: ListArgs): Condition[] {
  const conditions: Condition[] = [];
  const add = (sql: string, ...params: SqlValue[]) => conditions.push({ sql, params });
  if (args.project !== undefined) add('t.project = ?', args.project);
  if (args.status !== undefined) add(`t.status IN (${marks(args.status)})`, ...args.status);
  if (args.priority !== undefined) add(`t.priority IN (${marks(args.priority)})`, ...args.priority);
  if (args.assignee !== undefined) add('t.assignee = ?', args.assignee);
  if (args.label !== undefined) add('t.id IN (SELECT task_id FROM task_labels WHERE label = ?)', args.label);
  if (args.created_after !== undefined) add('t.created_at > ?', utc(args.created_after));
  if (args.created_before !== undefined) add('t.created_at < ?', utc(args.created_before));
  const search = args.search === undefined ? undefined : searchCondition(args.search);
  if (search !== undefined) conditions.push(search);
  return conditions;
}

/** An empty list is a filter that nothing passes, not one that is absent. */
function marks(values: readonly unknown[]): string {
  return values.length === 0 ? 'NULL' : values.map(() => '?').join(', ');
}
