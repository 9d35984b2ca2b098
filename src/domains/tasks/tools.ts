import type * as z from 'zod';
import type { Config } from '../../config.ts';
import { formatId, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import { type Tool, toolsOf } from '../../tool.ts';
import { listIn, textFrom } from '../../untrusted.ts';
import { idsFrom, marks } from '../lookup.ts';
import { given, pick } from '../records.ts';
import { requireRow, ruled } from '../ruled.ts';
import {
  blockedTasks,
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
export type TaskSettings = Pick<Config, 'project' | 'projects' | 'workflow'>;

const NEXT_DEFAULT = 20;
const ALL_PROJECTS = '*';
const CHILDREN = 'SELECT id FROM tasks WHERE parent_id = ? ORDER BY id';
const TRAIL = 'SELECT id FROM thoughts WHERE task_id = ? ORDER BY chain_position';

const tool = toolsOf('tasks');

export function taskTools(settings: TaskSettings): Tool[] {
  return [
    tool({
      name: 'task_create',
      title: 'Create task',
      summary: 'Create a task. Kanban tasks start in backlog, pipeline tasks in INIT.',
      input: schema.CreateInput,
      output: schema.CreateOutput,
      prepare: async (args) => ({
        args: { workflow: settings.workflow, ...args },
        outside: settings.projects === undefined ? {} : { projects: settings.projects },
      }),
      ...ruled(TASK_RULES.task_create),
    }),
    tool({
      name: 'task_get',
      title: 'Get task',
      summary: 'One task with all its fields; on request its thought ids and child ids.',
      effect: 'reads',
      kind: 'point',
      input: schema.GetInput,
      output: schema.GetOutput,
      async handle(args, _call, tx) {
        const task = await requireRow<ShownTask>(tx, TASKS, args.task_id, SHOWN);
        const trail = args.include_thought_trail && (await idsFrom(tx, TRAIL, task.id));
        const children = args.include_dependents && (await idsFrom(tx, CHILDREN, task.id));
        return {
          ...viewTask(task),
          ...(trail && { thought_trail: trail.map((id) => formatId(THOUGHTS, id)) }),
          ...(children && { dependents: children.map(taskId) }),
        };
      },
    }),
    tool({
      name: 'task_update',
      title: 'Update task',
      summary:
        'Change fields or move a task one step; a refused step lists the allowed ones. Setting in_progress claims it: of two agents one is refused.',
      input: schema.UpdateInput,
      output: schema.UpdateOutput,
      ...ruled(TASK_RULES.task_update),
    }),
    tool({
      name: 'task_list',
      title: 'List tasks',
      summary: 'Find tasks by filters and words; newest change first, one page at a time.',
      effect: 'reads',
      kind: 'snapshot',
      input: schema.ListInput,
      output: schema.ListOutput,
      async handle(args, _call, tx) {
        const { rows, ...page } = await listTasks(tx, { ...args, project: args.project ?? settings.project });
        const tasks = rows.map(({ id, ...row }) => ({ task_id: taskId(id), ...row }));
        return { tasks, returned_count: rows.length, ...page };
      },
    }),
    tool({
      name: 'task_next_actions',
      title: 'Next actions',
      summary: 'What to do next: ready tasks first, then by priority, then oldest.',
      effect: 'reads',
      kind: 'snapshot',
      input: schema.NextInput,
      output: schema.NextOutput,
      async handle(args, _call, tx) {
        const project = await resolveProject(tx, args.project ?? settings.project, settings.projects);
        const limit = args.limit ?? NEXT_DEFAULT;
        const actions = await nextActions(tx, project, limit);
        const blocked = args.include_blocked && (await blockedTasks(tx, project, limit));
        return {
          next_actions: actions.map(viewAction),
          count: actions.length,
          project: project ?? ALL_PROJECTS,
          ...(blocked && {
            blocked: blocked.map(({ id, title, blocked_reason: why }) => {
              return { task_id: taskId(id), title, blocked_reason: why ?? '' };
            }),
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
  return view;
}

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
async function resolveProject(tx: Reader, project: string | undefined, projects: TaskSettings['projects']) {
  if (project === undefined) return undefined;
  const found = 'SELECT 1 AS found FROM tasks WHERE project = ? LIMIT 1';
  if (projects?.includes(project) ?? (await tx.get(found, project)) !== undefined) return project;
  const sql = 'SELECT DISTINCT project FROM tasks ORDER BY project LIMIT 50';
  const known = projects ?? (await tx.all<{ project: string }>(sql)).map((row) => row.project);
  throw projectNotFound(project, known);
}
