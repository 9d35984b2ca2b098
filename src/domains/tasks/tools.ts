import type * as z from 'zod';
import type { Config } from '../../config.ts';
import { formatId, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import { type CallContext, type Tool, toolsOf } from '../../tool.ts';
import { listIn, textFrom } from '../../untrusted.ts';
import { idsFrom, marks } from '../lookup.ts';
import { given, pick } from '../records.ts';
import { requireRow, ruled } from '../ruled.ts';
import { readHistory } from './history.ts';
import { type HeldTask, heldTasks, type Looker, viewHolder } from './holders.ts';
import {
  blockedTasks,
  byUrgency,
  idleTasks,
  listTasks,
  type NextAction,
  nextActions,
  type PersonFilters,
  SHOWN,
  type ShownTask,
} from './reads.ts';
import { projectNotFound, TASK_RULES } from './rules.ts';
import * as schema from './schema.ts';

/** What the owner decided for all tasks. */
export type TaskSettings = Pick<Config, 'project' | 'projects' | 'workflow' | 'leaseMinutes'>;

const SHOWN_TASK = `SELECT ${SHOWN} FROM tasks WHERE id = ?`;
const ALL_PROJECTS = '*';
const CHILDREN = 'SELECT id FROM tasks WHERE parent_id = ? ORDER BY id';
const TRAIL = 'SELECT id FROM thoughts WHERE task_id = ? ORDER BY chain_position';

const tool = toolsOf('tasks');

export function taskTools(settings: TaskSettings): Tool[] {
  const looker = ({ actor, process, at }: CallContext): Looker => {
    return { actor, process, at, leaseMinutes: settings.leaseMinutes };
  };
  return [
    tool({
      name: 'task_create',
      title: 'Create task',
      summary: 'Create a task. Kanban tasks start in backlog, pipeline tasks in INIT.',
      input: schema.CreateInput,
      output: schema.CreateOutput,
      example: { title: 'Fix the login', project: 'web' },
      prepare: (args) => ({
        args: { workflow: settings.workflow, ...args },
        outside: settings.projects === undefined ? {} : { projects: settings.projects },
      }),
      ...ruled(TASK_RULES.task_create),
    }),
    tool({
      name: 'task_get',
      title: 'Get task',
      summary:
        'Get one task with all its fields and its holder; optionally its thought ids, child ids and history.',
      effect: 'reads',
      kind: (sent) => (Reflect.has(Object(sent), 'include_history') ? 'snapshot' : 'point'),
      input: schema.GetInput,
      output: schema.GetOutput,
      example: { task_id: 'T-0001' },
      async handle(args, call, tx) {
        const task = await requireRow<ShownTask>(tx, TASKS, args.task_id, SHOWN_TASK);
        const holder = await viewHolder(tx, task, looker(call));
        const trail = args.include_thought_trail && (await idsFrom(tx, TRAIL, task.id));
        const children = args.include_dependents && (await idsFrom(tx, CHILDREN, task.id));
        return {
          ...viewTask(task),
          ...(holder && { holder }),
          ...(trail && { thought_trail: trail.map((id) => formatId(THOUGHTS, id)) }),
          ...(children && { dependents: children.map(taskId) }),
          ...(args.include_history && (await readHistory(tx, task))),
        };
      },
    }),
    tool({
      name: 'task_update',
      title: 'Update task',
      summary:
        'Change fields, or move a task one step; a refused step lists the allowed ones. Setting in_progress (pipeline: GATHER) claims the task: while you hold it, others cannot move it.',
      input: schema.UpdateInput,
      output: schema.UpdateOutput,
      example: { task_id: 'T-0001', status: 'todo' },
      ...ruled(TASK_RULES.task_update),
    }),
    tool({
      name: 'task_list',
      title: 'List tasks',
      summary: 'Find tasks by filters and words, most recently changed first, in pages.',
      effect: 'reads',
      kind: 'snapshot',
      input: schema.ListInput,
      output: schema.ListOutput,
      example: { search: 'login' },
      async handle(args, _call, tx) {
        const { rows, ...page } = await listTasks(tx, { ...args, project: args.project ?? settings.project });
        const tasks = rows.map(({ id, erased, ...row }) => ({
          ...{ task_id: taskId(id), ...row },
          ...(erased === 1 && { erased: true }),
        }));
        return { tasks, returned_count: rows.length, ...page };
      },
    }),
    tool({
      name: 'task_next_actions',
      title: 'Next actions',
      summary:
        'List what to do next: ready tasks first, then by priority, then oldest. Also lists tasks you hold, abandoned tasks, and a hint if nothing is ready.',
      effect: 'reads',
      kind: 'snapshot',
      input: schema.NextInput,
      output: schema.NextOutput,
      example: { project: 'web' },
      async handle(args, call, tx) {
        const project = await resolveProject(tx, args.project, settings);
        const limit = args.limit ?? schema.NEXT_DEFAULT;
        const { yours, piped, abandoned } = await heldTasks(tx, project, looker(call), limit);
        const queued = await nextActions(tx, project, limit);
        const actions = piped.length === 0 ? queued : [...piped, ...queued].sort(byUrgency).slice(0, limit);
        const isIdle = (actions[0]?.unmet ?? 1) > 0;
        const blocked = args.include_blocked && (await blockedTasks(tx, project, limit));
        return {
          next_actions: actions.map(viewAction),
          count: actions.length,
          project: project ?? ALL_PROJECTS,
          ...(blocked && {
            blocked: blocked.map(({ id, title, blocked_reason: why, erased }) => {
              const isErased = erased === 1 && { erased: true };
              return { task_id: taskId(id), title, blocked_reason: why ?? '', ...isErased };
            }),
          }),
          ...(yours.length > 0 && { yours: yours.map(viewHeld) }),
          ...(abandoned.length > 0 && { abandoned: abandoned.map(viewHeld) }),
          ...(isIdle && {
            hint: await hint(tx, project, { yours, abandoned }, settings, args.include_blocked === true),
          }),
        };
      },
    }),
  ];
}

function taskId(id: number): string {
  return formatId(TASKS, id);
}

/** Made field by field, because this is the answer agents wait for most: spreading rows took a tenth of the whole call. */
function viewAction(action: NextAction) {
  const view: z.input<typeof schema.NextOutput>['next_actions'][number] = {
    assignee: action.assignee,
    dependencies_unmet: action.unmet,
    priority: action.priority,
    task_id: taskId(action.id),
    title: action.title,
  };
  if (action.estimate_hours !== null) view.estimate_hours = action.estimate_hours;
  if (action.parent_id !== null) view.parent_id = taskId(action.parent_id);
  // Of a pipeline task only: what is next of the others is to be claimed from todo.
  if (action.status !== 'todo') view.status = action.status;
  if (action.erased === 1) view.erased = true;
  return view;
}

export { searchThoughts } from './reads.ts';

export type FoundTask = Awaited<ReturnType<typeof findTasks>>['tasks'][number];

const FOUND_PAGE = 500;

/** The tasks that match, for people: each as task_get shows it, and who holds it; and how many match in all. */
export async function findTasks(tx: Reader, args: schema.ListArgs & PersonFilters) {
  const { rows, total_count } = await listTasks(tx, args);
  const found = new Map<number, ShownTask>();
  for (let at = 0; at < rows.length; at += FOUND_PAGE) {
    const ids = rows.slice(at, at + FOUND_PAGE).map(({ id }) => id);
    const sql = `SELECT ${SHOWN} FROM tasks WHERE id IN (${marks(ids)})`;
    for (const task of await tx.all<ShownTask>(sql, ...ids)) found.set(task.id, task);
  }
  const tasks = rows.flatMap(({ id }) => {
    const task = found.get(id);
    return task === undefined ? [] : [{ held_by: task.held_by, ...viewTask(task) }];
  });
  return { tasks, total_count };
}

function viewHeld({ id, title, status, held_by, held_since, seen, erased }: HeldTask) {
  const shown = { ...given(seen, 'last_seen'), present: seen.present, ...(erased === 1 && { erased: true }) };
  return { task_id: taskId(id), title, status, held_by, since: held_since, ...shown };
}

/** What to do where nothing is ready, with the call that brings something forward. */
async function hint(
  tx: Reader,
  project: string | undefined,
  { yours: [own], abandoned: [left] }: Record<'yours' | 'abandoned', readonly HeldTask[]>,
  settings: TaskSettings,
  listsBlocked: boolean,
): Promise<string> {
  const { backlog, review, waiting, blocked, isEmpty } = await idleTasks(tx, project);
  const where = project === undefined ? '' : ` in project ${project}`;
  const call = (tool: string, args: object) => `${tool} ${JSON.stringify(args)}`;
  const move = (id: number, args: object) => call('task_update', { task_id: taskId(id), ...args });
  const named = project ?? settings.projects?.[0] ?? 'my-project';
  const said = [
    own && `You hold ${taskId(own.id)}: continue it.`,
    isEmpty &&
      `There are no tasks${where} yet. Create one: ${call('task_create', { title: 'What to do', project: named })}.`,
    waiting > 0 &&
      `${waiting} listed ${plural(waiting, 'task waits', 'tasks wait')} for others to be finished.`,
    left && `${taskId(left.id)} was abandoned. Take it over: ${move(left.id, { takeover: true })}.`,
    backlog.first !== undefined &&
      `${backlog.count} ${plural(backlog.count, 'task waits', 'tasks wait')} in backlog${where}. Plan one: ${move(backlog.first, { status: 'todo' })}, then claim it with status in_progress.`,
    review.first !== undefined &&
      `${review.count} ${plural(review.count, 'task is', 'tasks are')} in review${where}. Review one and finish it: ${move(review.first, { status: 'done' })}.`,
    blocked > 0 &&
      `${blocked} ${plural(blocked, 'task is', 'tasks are')} blocked. ${listsBlocked ? 'When what a blocked_reason says is over, set that task to todo.' : 'With include_blocked, you see what they wait for.'}`,
  ].filter((sentence) => typeof sentence === 'string');
  return (
    said.join(' ') || `Nothing${where} is left to claim: every task is finished or held by someone else.`
  );
}

function plural(count: number, one: string, several: string): string {
  return count === 1 ? one : several;
}

/** Every field of a task; what has no value is left out. */
function viewTask(task: ShownTask): z.input<typeof schema.GetOutput> {
  return {
    task_id: taskId(task.id),
    ...pick(task, 'title', 'project', 'status', 'priority', 'progress', 'assignee', 'sequence', 'workflow'),
    ...pick(task, 'created_at', 'created_by', 'updated_at', 'updated_by', 'status_since', 'status_by'),
    description: task.description ?? '',
    labels: listIn(task.labels).map(textFrom),
    ...given(task, 'estimate_hours', 'blocked_reason', 'type'),
    ...(task.parent_id !== null && { parent_id: taskId(task.parent_id) }),
    proof_grade: task.proof_grade === 1,
    depends_on: listIn(task.depends_on).map((id) => taskId(Number(id))),
    dependencies_unmet: task.unmet,
    ...(task.erased === 1 && { erased: true }),
  };
}

/** The project a reading tool is about, which must exist. None means all. */
async function resolveProject(
  tx: Reader,
  project: string | undefined,
  { project: active, projects }: TaskSettings,
) {
  // The active project is there from the start: the owner has named it.
  if (project === undefined || project === active) return project ?? active;
  const found = 'SELECT 1 AS found FROM tasks WHERE project = ? LIMIT 1';
  if (projects?.includes(project) ?? (await tx.get(found, project)) !== undefined) return project;
  const sql = 'SELECT DISTINCT project FROM tasks ORDER BY project LIMIT 50';
  const known = projects ?? (await tx.all<{ project: string }>(sql)).map((row) => row.project);
  throw projectNotFound(project, known);
}
