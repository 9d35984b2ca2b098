import { parseInstant } from '../../instant.ts';
import { LIMITS } from '../../limits.ts';
import { TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Condition, Dialect, Reader, SqlValue, TaskSearch } from '../../storage/engine.ts';
import type { TaskRow, ThoughtRow } from '../facts.ts';
import { erasedAmong, idsFrom, isTextIn, marks, numberFrom, shown, shownColumns } from '../lookup.ts';
import { type ListArgs, PAGE_DEFAULT } from './schema.ts';
import { QUEUE } from './workflows.ts';

const PRIORITIES = ['critical', 'high', 'normal', 'low'];
/** Ready ones first, then the most urgent, then the oldest. */
export const IN_ORDER =
  "ORDER BY unmet > 0, CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END, id";

/** Column and direction come from these tables only; nothing a caller sends becomes SQL. */
const ORDERS = {
  created: { asc: 'id ASC', desc: 'id DESC' },
  updated: { asc: 'updated_at ASC, id ASC', desc: 'updated_at DESC, id DESC' },
  priority: { asc: 'urgency DESC, id ASC', desc: 'urgency ASC, id ASC' },
  progress: { asc: 'progress ASC, id ASC', desc: 'progress DESC, id ASC' },
} as const;

type ListedTask = Pick<
  ShownTask,
  | 'id'
  | 'title'
  | 'project'
  | 'status'
  | 'priority'
  | 'progress'
  | 'assignee'
  | 'created_at'
  | 'updated_at'
  | 'erased'
>;

/** What a person may ask for beyond that: who holds a task, and when it was changed last, both ends included. */
export interface PersonFilters {
  readonly id?: number | undefined;
  readonly held_by?: string | undefined;
  readonly changed?: { readonly since: string; readonly until: string };
}

/** One page and the number of all that match. */
export async function listTasks(tx: Reader, args: ListArgs & PersonFilters) {
  const conditions = conditionsOf(args, tx.dialect);
  const { limit = PAGE_DEFAULT, offset = 0, sort_by = 'updated', sort_order = 'desc' } = args;
  const plan = await planSearch(tx, conditions, sort_by, offset + limit);
  const where = conditions.length === 0 ? '' : `WHERE ${plan.conditions.map(({ sql }) => sql).join(' AND ')}`;
  const params = plan.conditions.flatMap((condition) => condition.params);
  const rows = await tx.all<ListedTask>(
    `SELECT id, ${shown(TASKS, 'title')}, project, status, priority, progress, assignee, created_at, updated_at,
       ${erasedAmong(TASKS, 'title')}
     FROM tasks ${where} ORDER BY ${ORDERS[sort_by][sort_order]} LIMIT ? OFFSET ?`,
    ...params,
    limit,
    offset,
  );
  // A page that is not full is the last one: its end is the count.
  const isLast = rows.length < limit && (rows.length > 0 || offset === 0);
  const count = () => numberFrom(tx, `SELECT count(*) AS value FROM tasks ${where}`, ...params);
  const total_count = plan.total ?? (isLast ? offset + rows.length : await count());
  return { rows, total_count, offset, limit };
}

/**
 * A search for words alone is counted in their index, without a look at the tasks. And where so many match that a page of
 * them is met soon, it is faster to walk the tasks in their order and ask of each whether it matches than to fetch all that
 * match and sort them: at 100,000 tasks and 2,000 matches a third of the time.
 */
async function planSearch(tx: Reader, conditions: readonly Asked[], sortBy: string, needed: number) {
  const [first, ...others] = conditions;
  if (first?.search === undefined || others.length > 0) return { conditions };
  const { count, asked } = first.search;
  const total = await numberFrom(tx, count.sql, ...count.params);
  const last = await numberFrom(tx, 'SELECT max(id) AS value FROM tasks');
  const walk = (sortBy === 'updated' || sortBy === 'created') && total * total > last * needed;
  return { conditions: walk ? [asked] : conditions, total };
}

function conditionsOf(args: ListArgs & PersonFilters, dialect: Dialect): Asked[] {
  const conditions: Asked[] = [];
  const add = (sql: string, ...params: SqlValue[]) => conditions.push({ sql, params });
  if (args.project !== undefined) add('project = ?', args.project);
  if (args.status !== undefined) add(`status IN (${marks(args.status)})`, ...args.status);
  if (args.priority !== undefined) add(`priority IN (${marks(args.priority)})`, ...args.priority);
  if (args.assignee !== undefined) add('assignee = ?', args.assignee);
  if (args.label !== undefined) add('id IN (SELECT task_id FROM task_labels WHERE label = ?)', args.label);
  // In UTC with milliseconds, as times are stored: text order is then time order.
  const [after, before] = [args.created_after, args.created_before].map((text) => parseInstant(text ?? ''));
  if (after !== undefined) add('created_at > ?', after);
  if (before !== undefined) add('created_at < ?', before);
  if (args.id !== undefined) add('id = ?', args.id);
  if (args.held_by !== undefined) add('held_by = ?', args.held_by);
  if (args.changed !== undefined) add('updated_at BETWEEN ? AND ?', args.changed.since, args.changed.until);
  return [...conditions, ...searchConditions(args.search ?? '', dialect)];
}

/** A condition on `tasks`; where it asks the index of words, with the search that it is. */
interface Asked extends Condition {
  readonly search?: TaskSearch;
}

/** Scripts that write words without spaces between them, and the long vowel two of them share: an index of words knows nothing of their parts. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc\uff70\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=New_Tai_Lue}\p{Script=Tai_Tham}\p{Script=Javanese}\p{Script=Balinese}]/u;
const HAS_WORD = /[\p{L}\p{N}]/u;

/**
 * Tasks whose title or description holds every word of `text`, or begins a word with it. Any character is safe. What the
 * index cannot know (signs, emoji, unspaced scripts) is looked for as it stands.
 */
export function searchConditions(text: string, dialect: Dialect): Asked[] {
  const words = [...new Set(text.split(/[\s\p{Cc}]+/u))].filter((word) => word !== '');
  const wanted = words.slice(0, LIMITS.searchWordsMax);
  const isIndexed = (word: string) => HAS_WORD.test(word) && !UNSPACED.test(word);
  const indexed = wanted.filter(isIndexed);
  const search = dialect.findTasks(indexed);
  const holds = (column: string) =>
    `EXISTS (SELECT 1 FROM texts WHERE ${isTextIn(TASKS, column)} AND ${dialect.containsInAnyCase('texts.text')})`;
  const asIs = `(${holds('title')} OR ${holds('description')})`;
  return [
    ...(indexed.length === 0 ? [] : [{ ...search.fetched, search }]),
    ...wanted.filter((word) => !isIndexed(word)).map((word) => ({ sql: asIs, params: [word, word] })),
  ];
}

/**
 * Thoughts on the tasks that match: those that hold every word of `search`, or the one with the number `thought`; the newest
 * first, and how many there are. No index knows their words, so each text is looked at.
 */
export async function searchThoughts(
  tx: Reader,
  { id: _, search = '', thought, changed, limit = PAGE_DEFAULT, ...filters }: ThoughtFilters,
) {
  const words = search.split(/[\s\p{Cc}]+/u).filter((word) => word !== '');
  const conditions: Condition[] = [
    ...conditionsOf(filters, tx.dialect).map(({ sql, params }) => ({
      sql: `task_id IN (SELECT id FROM tasks WHERE ${sql})`,
      params,
    })),
    ...words.slice(0, LIMITS.searchWordsMax).map((word) => holdsWord(word, tx.dialect)),
    ...(thought === undefined ? [] : [{ sql: 'id = ?', params: [thought] }]),
    ...(changed === undefined
      ? []
      : [{ sql: 'recorded_at BETWEEN ? AND ?', params: [changed.since, changed.until] }]),
  ];
  const where = conditions.map(({ sql }) => sql).join(' AND ') || 'TRUE';
  const params = conditions.flatMap((condition) => condition.params);
  const rows = await tx.all<ThoughtRow>(
    `SELECT ${shownColumns(THOUGHTS)} FROM thoughts WHERE ${where} ORDER BY id DESC LIMIT ?`,
    ...[...params, limit],
  );
  const count = () => numberFrom(tx, `SELECT count(*) AS value FROM thoughts WHERE ${where}`, ...params);
  return { rows, total_count: rows.length < limit ? rows.length : await count() };
}

type ThoughtFilters = ListArgs & PersonFilters & { readonly thought?: number | undefined };

/** Engines change the case of A to Z only, so a word is looked for in every way that people write it. */
function holdsWord(word: string, dialect: Dialect): Condition {
  const [lower, upper] = [word.toLowerCase(), word.toUpperCase()];
  const forms = [...new Set([word, lower, upper, `${[...upper][0]}${[...lower].slice(1).join('')}`])];
  const ways = forms.map(() => dialect.containsInAnyCase('texts.text')).join(' OR ');
  return {
    sql: `EXISTS (SELECT 1 FROM texts WHERE ${isTextIn(THOUGHTS, 'content')} AND (${ways}))`,
    params: forms,
  };
}

/** A task as people and agents see it: its texts in place of their digests, and what is derived. */
export interface ShownTask extends TaskRow {
  readonly unmet: number;
  /** 1 if the owner has erased one of its texts. */
  readonly erased: number;
}

/** The columns of a `ShownTask`. */
export const SHOWN = `${shownColumns(TASKS)}, unmet, ${erasedAmong(TASKS, ...TASKS.texts)}`;

export type NextAction = Pick<
  ShownTask,
  'id' | 'title' | 'priority' | 'assignee' | 'estimate_hours' | 'parent_id' | 'unmet' | 'status' | 'erased'
>;

export const nextActions = queued<NextAction>(
  QUEUE.next,
  `id, ${shown(TASKS, 'title')}, priority, assignee, estimate_hours, parent_id, unmet, status, ${erasedAmong(TASKS, 'title')}`,
);

export const blockedTasks = queued<Pick<ShownTask, 'id' | 'title' | 'blocked_reason' | 'erased'>>(
  QUEUE.blocked,
  `id, ${shown(TASKS, 'title')}, ${shown(TASKS, 'blocked_reason')}, ${erasedAmong(TASKS, 'title', 'blocked_reason')}`,
);

/** The same order as that of the queues. */
export function byUrgency(a: NextAction, b: NextAction): number {
  const urgency = ({ priority }: NextAction) => PRIORITIES.indexOf(priority);
  return Number(a.unmet > 0) - Number(b.unmet > 0) || urgency(a) - urgency(b) || a.id - b.id;
}

/** What there is where nothing is ready: how many tasks of each kind, and which one of those that can be brought forward comes first. */
export async function idleTasks(tx: Reader, project: string | undefined) {
  const own = project === undefined ? '' : 'project = ? AND ';
  const params = project === undefined ? [] : [project];
  const count = (what: string) =>
    numberFrom(tx, `SELECT count(*) AS value FROM tasks WHERE ${own}${what}`, ...params);
  const standing = async (status: 'backlog' | 'review') => {
    const [first] = await idsFrom(
      tx,
      `SELECT id FROM tasks WHERE ${own}status = '${status}' ${IN_ORDER} LIMIT 1`,
      ...params,
    );
    return { first, count: first === undefined ? 0 : await count(`status = '${status}'`) };
  };
  return {
    backlog: await standing('backlog'),
    review: await standing('review'),
    waiting: await count(`queue = ${QUEUE.next} AND queue > 0`),
    blocked: await count(`queue = ${QUEUE.blocked} AND queue > 0`),
    isEmpty: (await tx.get(`SELECT 1 AS found FROM tasks WHERE ${own}TRUE LIMIT 1`, ...params)) === undefined,
  };
}

/**
 * Ready ones first, then the most urgent, then the oldest: a walk along an index that finished tasks are not in. SQLite
 * sees that the index fits only if the urgency is as the index has it, word for word, and the number is in the text.
 */
function queued<T extends object>(queue: number, columns: string) {
  const rest = `queue = ${queue} AND queue > 0 ${IN_ORDER} LIMIT ?`;
  return async (tx: Reader, project: string | undefined, limit: number): Promise<T[]> =>
    project === undefined
      ? await tx.all<T>(`SELECT ${columns} FROM tasks WHERE ${rest}`, limit)
      : await tx.all<T>(`SELECT ${columns} FROM tasks WHERE project = ? AND ${rest}`, project, limit);
}
