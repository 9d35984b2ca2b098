import type * as z from 'zod';
import { formatId, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { ruled } from '../ruled.ts';
import { listTasks } from './list.ts';
import { blockedTasks, type NextAction, nextActions } from './next-actions.ts';
import {
  childIds,
  projectExists,
  projectNames,
  requireTask,
  type ShownTask,
  thoughtIds,
} from './repository.ts';
import { projectNotFound, TASK_RULES } from './rules.ts';
import * as schema from './schema.ts';
import type { Workflow } from './workflows.ts';

/** What the owner decided for all tasks. */
export interface TaskSettings {
  /** Used where a tool's `project` is optional. */
  readonly project: string | undefined;
  /** When set, only these exist. */
  readonly projects: readonly string[] | undefined;
  readonly workflow: Workflow;
}

const NEXT_DEFAULT = 20;
const ALL_PROJECTS = '*';

export function taskTools(settings: TaskSettings): Tool[] {
  return [
    defineTool({
      name: 'task_create',
      title: 'Create task',
      summary: 'Create a task. Kanban tasks start in backlog, pipeline tasks in INIT.',
      family: 'tasks',
      effect: 'writes',
      input: schema.CreateInput,
      output: schema.CreateOutput,
      prepare: (args) =>
        Promise.resolve({
          args: { workflow: settings.workflow, ...args },
          outside: settings.projects === undefined ? {} : { projects: settings.projects },
        }),
      ...ruled(TASK_RULES.task_create),
    }),
    defineTool({
      name: 'task_get',
      title: 'Get task',
      summary: 'One task with all its fields; on request its thought ids and child ids.',
      family: 'tasks',
      effect: 'reads',
      input: schema.GetInput,
      output: schema.GetOutput,
      async handle(args, _call, tx) {
        const task = await requireTask(tx, args.task_id);
        return {
          ...viewTask(task),
          ...(args.include_thought_trail && {
            thought_trail: (await thoughtIds(tx, task.id)).map((id) => formatId(THOUGHTS, id)),
          }),
          ...(args.include_dependents && { dependents: (await childIds(tx, task.id)).map(taskId) }),
        };
      },
    }),
    defineTool({
      name: 'task_update',
      title: 'Update task',
      summary:
        'Change fields or move a task one step; a refused step lists the allowed ones. Setting in_progress claims it: of two agents one is refused.',
      family: 'tasks',
      effect: 'writes',
      input: schema.UpdateInput,
      output: schema.UpdateOutput,
      ...ruled(TASK_RULES.task_update),
    }),
    defineTool({
      name: 'task_list',
      title: 'List tasks',
      summary: 'Find tasks by filters and words; newest change first, one page at a time.',
      family: 'tasks',
      effect: 'reads',
      input: schema.ListInput,
      output: schema.ListOutput,
      async handle(args, _call, tx) {
        const project = args.project ?? settings.project;
        const page = await listTasks(tx, { ...args, ...(project !== undefined && { project }) });
        return {
          tasks: page.rows.map(({ id, ...row }) => ({ task_id: taskId(id), ...row })),
          total_count: page.total,
          returned_count: page.rows.length,
          offset: page.offset,
          limit: page.limit,
        };
      },
    }),
    defineTool({
      name: 'task_next_actions',
      title: 'Next actions',
      summary: 'What to do next: ready tasks first, then by priority, then oldest.',
      family: 'tasks',
      effect: 'reads',
      input: schema.NextInput,
      output: schema.NextOutput,
      async handle(args, _call, tx) {
        const project = await resolveProject(tx, args.project, settings);
        const limit = args.limit ?? NEXT_DEFAULT;
        const actions = await nextActions(tx, project, limit);
        return {
          next_actions: actions.map(viewAction),
          count: actions.length,
          project: project ?? ALL_PROJECTS,
          ...(args.include_blocked && {
            blocked: (await blockedTasks(tx, project, limit)).map(({ id, title, blocked_reason }) => ({
              task_id: taskId(id),
              title,
              blocked_reason: blocked_reason ?? '',
            })),
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

/** Every field of a task; what has no value is left out. */
function viewTask(task: ShownTask) {
  return {
    task_id: taskId(task.id),
    title: task.title,
    description: task.description,
    project: task.project,
    status: task.status,
    priority: task.priority,
    progress: task.progress,
    assignee: task.assignee,
    labels: JSON.parse(task.labels) as string[],
    ...(task.estimate_hours !== null && { estimate_hours: task.estimate_hours }),
    created_at: task.created_at,
    updated_at: task.updated_at,
    created_by: task.created_by,
    updated_by: task.updated_by,
    ...(task.parent_id !== null && { parent_id: taskId(task.parent_id) }),
    ...(task.blocked_reason !== null && { blocked_reason: task.blocked_reason }),
    sequence: task.sequence,
    workflow: task.workflow,
    ...(task.type !== null && { type: task.type }),
    proof_grade: task.proof_grade === 1,
    depends_on: (JSON.parse(task.depends_on) as number[]).map(taskId),
    dependencies_unmet: task.unmet,
    status_since: task.status_since,
    status_by: task.status_by,
    ...(task.erased && { erased: true }),
  };
}

/** The project a reading tool speaks of: the one named, else the active one, else all. */
async function resolveProject(
  tx: Reader,
  named: string | undefined,
  settings: TaskSettings,
): Promise<string | undefined> {
  const project = named ?? settings.project;
  if (project === undefined) return undefined;
  const known = settings.projects?.includes(project) ?? (await projectExists(tx, project));
  if (!known) throw projectNotFound(project, settings.projects ?? (await projectNames(tx)));
  return project;
}
