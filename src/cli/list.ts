import type { Config } from '../config.ts';
import type { ThoughtRow } from '../domains/facts.ts';
import { numberFrom } from '../domains/lookup.ts';
import { type FoundTask, findTasks, searchThoughts } from '../domains/tasks/tools.ts';
import { formatId, parseId, SESSIONS, TASKS, THOUGHTS } from '../log/tables.ts';
import { normalRecordId } from './brought.ts';
import { command, UsageError } from './command.ts';
import { ageOf } from './dates.ts';
import { FINISHED_ONLY, OPEN_ONLY, TASK_FILTERS, taskQuery } from './filters.ts';
import { readProjects, withDatabase, withLog } from './open.ts';
import type { Colour, Output } from './output.ts';
import { type Column, LIST_OPTIONS, partOf, printListing, readLimit } from './table.ts';
import { shownBy } from './text.ts';
import { viewRow } from './views.ts';

const OPTIONS = { ...TASK_FILTERS, ...LIST_OPTIONS } as const;

/** Tasks in lines, the most recently changed first. */
export const list = command({
  name: 'list',
  usage: '[FILTERS]',
  summary: 'list tasks, the most recently changed first',
  details:
    'Finished and cancelled tasks are left out unless you add --status or --all. --since and --until refer to the last change. --json prints each task as task_get shows it.',
  options: OPTIONS,
  async run({ values, out, config }) {
    const { all } = values;
    const query = taskQuery(values, config);
    return await listTasks(config, out, values, {
      ...(query.status === undefined && all !== true && OPEN_ONLY),
      ...query,
    });
  },
});

/** Tasks and thoughts by words, or one by its id. */
export const search = command({
  name: 'search',
  usage: 'WORDS|ID [FILTERS]',
  summary: 'find tasks by the words in their title and description, and thoughts by theirs; or one by its id',
  details:
    'Finds tasks that contain every word, or a word that begins with it, including finished tasks, and thoughts that contain every word. The most recent come first. T-1, TH-1 or A-1 alone finds that task or thought, or the task of that session. The filters are those of "colibri list"; for thoughts, they apply to the task. --csv prints the tasks.',
  options: OPTIONS,
  positionals: [1, 99],
  async run({ values, positionals, out, config }) {
    const words = positionals.join(' ');
    const query = { ...taskQuery(values, config), ...(await subjectOf(config, words)) };
    const limit = readLimit(values, out);
    const { rows, total_count: total } = await withDatabase(config, (storage) =>
      storage.read((tx) => searchThoughts(tx, { ...query, limit })),
    );
    const name = 'thoughts';
    const data = rows.map((row) => viewRow(THOUGHTS, { ...row }));
    const part = { name, rows, columns: THOUGHT_COLUMNS, data, total, nothing: '', counts: 'thoughts_' };
    return await listTasks(config, out, values, query, [partOf(part, out)]);
  },
});

/** What is searched for: words, or one record. Numbers begin at 1, so nothing has the number 0. */
async function subjectOf(config: Config, words: string) {
  const id = normalRecordId(words.trim());
  const [task, thought, session] = [TASKS, THOUGHTS, SESSIONS].map((table) => parseId(table, id));
  if (task !== undefined) return { id: task, thought: 0 };
  if (thought !== undefined) return { id: 0, thought };
  if (session === undefined) return { search: words };
  const sql = 'SELECT task_id AS value FROM sessions WHERE id = ?';
  const its = await withDatabase(config, (storage) => storage.read((tx) => numberFrom(tx, sql, session)));
  return { id: its, thought: 0 };
}

type Query = Parameters<typeof findTasks>[1];

async function listTasks(
  config: Config,
  out: Output,
  values: ListValues,
  query: Query,
  more: Parameters<typeof printListing>[3] = [],
): Promise<number> {
  const limit = readLimit(values, out);
  const { tasks, total_count, hidden, projects } = await withLog(config, out, (storage) =>
    storage.read(async (tx) => ({
      ...(await findTasks(tx, { ...query, limit })),
      // Only a list that leaves out finished tasks by itself has to say so.
      hidden:
        query.status === OPEN_ONLY.status
          ? await findTasks(tx, { ...query, ...FINISHED_ONLY, limit: 1 })
          : undefined,
      projects: await readProjects(tx),
    })),
  );
  const { project } = query;
  if (project !== undefined && !projects.includes(project) && projects.length > 0)
    throw new UsageError(`There is no project "${project}". Projects: ${projects.join(', ')}.`);
  const finished = hidden?.total_count ?? 0;
  return printListing(
    {
      name: 'tasks',
      rows: tasks,
      columns: COLUMNS,
      data: tasks.map(({ held_by: _, ...task }) => task),
      total: total_count,
      nothing:
        projects.length === 0 ? NO_TASKS : `No task${more.length > 0 ? ' and no thought' : ''} matches.`,
      leftOut:
        finished === 0 ? undefined : `${finished} finished or cancelled: ${shownBy('--all', finished)}`,
    },
    values,
    out,
    more,
  );
}

type ListValues = Parameters<typeof readLimit>[0];

/** What is said where nobody has made a task yet. */
export const NO_TASKS = 'There are no tasks yet. Add one: colibri add "TITLE".';

const PRIORITIES = new Map<string, readonly [mark: string, Colour]>([
  ['critical', ['‼', 'red']],
  ['high', ['!', 'yellow']],
  ['low', ['↓', 'cyan']],
]);

/** How a priority is marked where there is little room. */
export function priorityMark(priority: string): readonly [mark: string, Colour | undefined] {
  return PRIORITIES.get(priority) ?? ['', undefined];
}

const COLUMNS: readonly Column<FoundTask>[] = [
  { name: 'id', text: ({ task_id }) => task_id, colour: () => 'bold' },
  {
    name: 'priority',
    head: '',
    text: ({ priority }) => priority,
    shown: ({ priority }) => priorityMark(priority)[0],
    colour: ({ priority }) => priorityMark(priority)[1],
  },
  { name: 'status', text: ({ status }) => status },
  {
    name: 'status_since',
    head: 'for',
    text: ({ status_since }) => status_since,
    shown: ({ status_since }) => ageOf(status_since),
  },
  { name: 'project', text: ({ project }) => project, colour: () => 'cyan' },
  {
    name: 'assignee',
    head: 'who',
    text: ({ assignee }) => assignee,
    shown: ({ assignee, held_by }) => held_by ?? (assignee === UNASSIGNED ? '' : assignee),
  },
  { name: 'held_by', text: ({ held_by }) => held_by ?? '', isData: true },
  { name: 'title', text: ({ title }) => title, shown: titleOf },
  { name: 'labels', text: ({ labels }) => labels.join(' '), isData: true },
  { name: 'blocked_reason', text: ({ blocked_reason = '' }) => blocked_reason, isData: true },
  { name: 'progress', text: ({ progress }) => String(progress), isData: true },
  { name: 'estimate_hours', text: ({ estimate_hours = '' }) => String(estimate_hours), isData: true },
  { name: 'created_at', text: ({ created_at }) => created_at, isData: true },
  { name: 'updated_at', text: ({ updated_at }) => updated_at, isData: true },
];

/** "colibri show" prints a thought whole. */
const CONTENT_CHARACTERS_MAX = 240;

const THOUGHT_COLUMNS: readonly Column<ThoughtRow>[] = [
  { name: 'id', text: ({ id }) => formatId(THOUGHTS, id), colour: () => 'bold' },
  { name: 'task', text: ({ task_id }) => formatId(TASKS, task_id) },
  { name: 'type', text: ({ type }) => type, colour: () => 'cyan' },
  { name: 'age', text: ({ recorded_at }) => ageOf(recorded_at) },
  { name: 'by', text: ({ recorded_by }) => recorded_by },
  {
    name: 'content',
    text: ({ content }) => {
      const start = [...content].slice(0, CONTENT_CHARACTERS_MAX).join('');
      return start.length < content.length ? `${start}…` : content;
    },
  },
];

/** Who a task is assigned to that is assigned to nobody. */
export const UNASSIGNED = 'unassigned';

/** The title, the labels, and what the blocked task waits for. */
function titleOf({ title, labels, blocked_reason, status, dependencies_unmet: unmet }: FoundTask): string {
  const waits = status === 'blocked' && blocked_reason !== undefined && `(blocked: ${blocked_reason})`;
  const unmetMark = unmet > 0 && `⧗${unmet}`;
  return [unmetMark, title, ...labels.map((label) => `#${label}`), waits].filter(Boolean).join(' ');
}
