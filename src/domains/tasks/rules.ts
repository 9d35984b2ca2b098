import { ColibriError } from '../../errors.ts';
import { formatId } from '../../log/state.ts';
import { TASKS } from '../../log/tables.ts';
import { nearest } from '../../nearest.ts';
import type { Reader, Transaction } from '../../storage/engine.ts';
import type { CallContext } from '../../tool.ts';
import { hasFinalizedSession, hasThought, noteTaskChange } from '../trail/index.ts';
import {
  assertNoCircle,
  countUnfinished,
  countUnmet,
  resolveDependencies,
  shiftWaiting,
} from './dependencies.ts';
import {
  insertTask,
  projectExists,
  projectNames,
  requireTask,
  type TaskRow,
  updateTask,
} from './repository.ts';
import type { CreateArgs, UpdateArgs } from './schema.ts';
import { assertArrow, INITIAL, isDone, isFinal, queueOf, type Status, type Workflow } from './workflows.ts';

/** What the owner decided for all tasks. */
export interface TaskSettings {
  /** Used where a tool's `project` is optional. */
  readonly project: string | undefined;
  /** When set, only these exist. */
  readonly projects: readonly string[] | undefined;
  readonly workflow: Workflow;
}

export async function createTask(
  tx: Transaction,
  call: CallContext,
  args: CreateArgs,
  settings: TaskSettings,
): Promise<TaskRow> {
  assertProjectAllowed(args.project, settings);
  const parent =
    args.parent_id === undefined ? undefined : await requireTask(tx, args.parent_id, 'parent_id');
  const dependsOn = await resolveDependencies(tx, args.depends_on ?? []);
  // The parent waits for the new task, so the new task must not wait for the parent.
  if (parent !== undefined) await assertNoCircle(tx, parent.id, dependsOn, 'the new task');
  const workflow = args.workflow ?? settings.workflow;
  const status = INITIAL[workflow];
  const task = await insertTask(tx, call, {
    project: args.project,
    title: args.title,
    description: args.description ?? '',
    workflow,
    ...standingIn(workflow, status, call),
    unmet: await countUnfinished(tx, dependsOn),
    blocked_reason: null,
    progress: 0,
    priority: args.priority ?? 'normal',
    type: args.type ?? null,
    proof_grade: args.proof_grade === true ? 1 : 0,
    assignee: args.assignee ?? 'unassigned',
    labels: JSON.stringify([...new Set(args.labels)]),
    estimate_hours: args.estimate_hours ?? null,
    parent_id: parent?.id ?? null,
    depends_on: JSON.stringify(dependsOn),
    created_at: call.at,
    created_by: call.actor,
    updated_at: call.at,
    updated_by: call.actor,
  });
  if (parent !== undefined) await updateTask(tx, call, parent, { unmet: parent.unmet + 1 });
  await noteTaskChange(tx, call, task.id);
  return task;
}

export interface Updated {
  readonly before: TaskRow;
  readonly after: TaskRow;
  readonly warnings: readonly string[];
}

/** Changes what was asked and nothing else, so that two agents who change different fields both keep their change. */
export async function changeTask(tx: Transaction, call: CallContext, args: UpdateArgs): Promise<Updated> {
  const before = await requireTask(tx, args.task_id);
  const warnings: string[] = [];
  const moved = args.status === undefined ? {} : await move(tx, call, before, args.status, args, warnings);
  const rewired = args.depends_on === undefined ? {} : await rewire(tx, before, args.depends_on);
  const changes: Partial<TaskRow> = {
    ...plainChanges(args),
    ...moved,
    ...rewired,
    updated_at: call.at,
    updated_by: call.actor,
  };
  const after = await updateTask(tx, call, before, changes);
  if (after.is_final === 1 && before.is_final === 0) await shiftWaiting(tx, call, after, -1);
  await noteTaskChange(tx, call, after.id);
  return { before, after, warnings: [...warnings, ...afterthoughts(args, after)] };
}

/** The step itself, behind its gates. */
async function move(
  tx: Transaction,
  call: CallContext,
  task: TaskRow,
  to: Status,
  args: UpdateArgs,
  warnings: string[],
): Promise<Partial<TaskRow>> {
  const task_id = formatId(TASKS, task.id);
  assertArrow(
    {
      task_id,
      workflow: task.workflow,
      status: task.status,
      held_by: task.status_by,
      since: task.status_since,
    },
    to,
  );
  if (isDone(to)) await assertMayFinish(tx, task);
  if (isDone(to) && args.progress !== undefined && args.progress !== 100)
    warnings.push(`Finishing sets progress to 100, not ${args.progress}.`);
  return {
    ...standingIn(task.workflow, to, call),
    blocked_reason: args.blocked_reason ?? null,
    ...(isDone(to) && { progress: 100 }),
  };
}

async function assertMayFinish(tx: Reader, task: TaskRow): Promise<void> {
  const task_id = formatId(TASKS, task.id);
  if (!(await hasThought(tx, task.id))) {
    throw new ColibriError(
      'ERR_WRITEBACK_REQUIRED',
      `${task_id} cannot be finished before its reasons are written down. Call thought_record for it, then set this status again.`,
      { task_id, missing_fields: ['thought_record'] },
    );
  }
  if (task.proof_grade === 1 && !(await hasFinalizedSession(tx, task.id))) {
    throw new ColibriError(
      'ERR_PROOF_REQUIRED',
      `${task_id} is proof-grade and has no finalized session. Call merkle_finalize for its session (audit_session_start opens one), then set this status again.`,
      { task_id, missing_fields: ['merkle_finalize'] },
    );
  }
}

async function rewire(tx: Transaction, task: TaskRow, ids: readonly string[]): Promise<Partial<TaskRow>> {
  const dependsOn = await resolveDependencies(tx, ids);
  await assertNoCircle(tx, task.id, dependsOn);
  return { depends_on: JSON.stringify(dependsOn), unmet: await countUnmet(tx, task.id, dependsOn) };
}

function standingIn(workflow: Workflow, status: Status, call: CallContext) {
  return {
    status,
    status_since: call.at,
    status_by: call.actor,
    is_final: isFinal(workflow, status) ? 1 : 0,
    queue: queueOf(workflow, status),
  };
}

function plainChanges(args: UpdateArgs): Partial<TaskRow> {
  return {
    ...(args.progress !== undefined && { progress: args.progress }),
    ...(args.title !== undefined && { title: args.title }),
    ...(args.description !== undefined && { description: args.description }),
    ...(args.priority !== undefined && { priority: args.priority }),
    ...(args.assignee !== undefined && { assignee: args.assignee }),
    ...(args.labels !== undefined && { labels: JSON.stringify([...new Set(args.labels)]) }),
    ...(args.blocked_reason !== undefined && { blocked_reason: args.blocked_reason }),
    ...(args.estimate_hours !== undefined && { estimate_hours: args.estimate_hours }),
  };
}

/** What was done as asked but may not be what was meant. */
function afterthoughts(args: UpdateArgs, task: TaskRow): string[] {
  const said: string[] = [];
  if (args.progress === 100 && !isDone(task.status))
    said.push(`Progress is 100 but the status is ${task.status}, not finished.`);
  if (args.blocked_reason !== undefined && task.status !== 'blocked')
    said.push(`blocked_reason was stored, but the status is ${task.status}, not blocked.`);
  if (args.status !== undefined && isDone(task.status) && task.unmet > 0)
    said.push(`Finished although ${task.unmet} of its children or dependencies are not.`);
  return said;
}

function assertProjectAllowed(project: string, settings: TaskSettings): void {
  if (settings.projects === undefined || settings.projects.includes(project)) return;
  throw projectNotFound(project, settings.projects);
}

/** The project a reading tool speaks of: the one named, else the active one, else all. */
export async function resolveProject(
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

function projectNotFound(project: string, known: readonly string[]): ColibriError {
  const meant = nearest(project, known);
  const hint =
    known.length === 0
      ? 'There are none yet; task_create opens one.'
      : `${meant === undefined ? '' : `Did you mean ${meant}? `}The projects are: ${known.join(', ')}.`;
  return new ColibriError(
    'ERR_PROJECT_NOT_FOUND',
    `There is no project ${JSON.stringify(project)}. ${hint}`,
    { project, projects: known },
  );
}
