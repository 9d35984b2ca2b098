import { ColibriError, didYouMean } from '../../errors.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { formatId, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { TaskRow } from '../facts.ts';
import { given, notFound, numberOf, pick, recordIn } from '../records.ts';
import { ask, type Call, type Ruling, type SeenHolder, type Steps } from '../rule.ts';
import type { CreateArgs, Created, FormerHolder, UpdateArgs, Updated } from './schema.ts';
import {
  allowedFrom,
  assertArrow,
  INITIAL,
  isDone,
  isUnderWay,
  type Status,
  type Workflow,
} from './workflows.ts';

// Pure: all that these functions know of the world is in their arguments and in what they ask for. The writer runs them
// in a transaction, the verifier in memory.

/** Arguments as they are kept: digests in the place of texts, and the workflow always there. */
type KeptCreate = CreateArgs & { readonly workflow: Workflow };

function* createTask(args: KeptCreate, call: Call): Steps<Ruling<Created>> {
  const { projects } = call.outside;
  if (projects?.includes(args.project) === false) throw projectNotFound(args.project, projects);
  const dependsOn = numbers(args.depends_on ?? [], 'depends_on');
  const parent = args.parent_id === undefined ? null : numberOf(TASKS, args.parent_id, 'parent_id');
  const named = parent === null ? dependsOn : [parent, ...dependsOn];
  const { existing, id, sequence, above } = yield* ask({
    existing: ['existing', named],
    id: ['nextId', 'tasks'],
    sequence: ['nextSequence', args.project],
    above: ['coveringSessions', parent ?? 0],
  });
  if (parent !== null) assertExist([parent], existing, 'parent_id');
  assertExist(dependsOn, existing, 'depends_on');
  // The parent waits for the new task, so the new task must not wait for the parent.
  if (parent !== null) yield* assertNoCycle(parent, dependsOn, 'the new task');
  const row: TaskRow = {
    id,
    project: args.project,
    sequence,
    title: args.title,
    title_call: call.enter,
    description: args.description ?? null,
    description_call: args.description === undefined ? null : call.enter,
    blocked_reason: null,
    blocked_reason_call: null,
    workflow: args.workflow,
    status: INITIAL[args.workflow],
    status_since: call.at,
    status_by: call.actor,
    held_by: null,
    held_process: null,
    held_since: null,
    progress: 0,
    priority: args.priority ?? 'normal',
    type: args.type ?? null,
    proof_grade: args.proof_grade === true ? 1 : 0,
    assignee: args.assignee ?? 'unassigned',
    labels: labelsOf(args.labels ?? []),
    estimate_hours: args.estimate_hours ?? null,
    parent_id: parent,
    depends_on: canonicalJson(dependsOn),
    created_at: call.at,
    created_by: call.actor,
    updated_at: call.at,
    updated_by: call.actor,
    position: call.position,
  };
  const covering = above.filter(({ scope }) => scope === 'deep');
  const records = yield* recordIn(covering, { kind: 'change', ref: call.position, task_id: id }, call);
  const { status, created_at, created_by, workflow } = row;
  return {
    rows: [{ table: 'tasks', row, previous: 0 }, ...records],
    result: { task_id: formatId(TASKS, id), status, created_at, created_by, sequence, workflow },
  };
}

/** Arguments that take the place of a column as they are. */
const REPLACED = [
  ...(['progress', 'title', 'description', 'priority', 'assignee'] as const),
  ...(['blocked_reason', 'estimate_hours'] as const),
] as const;

/** Changes what was asked and nothing else, so that two agents who change different fields both keep their change. */
function* updateTask(args: UpdateArgs, call: Call): Steps<Ruling<Updated>> {
  const id = numberOf(TASKS, args.task_id);
  const { task, covering } = yield* ask({ task: ['task', id], covering: ['coveringSessions', id] });
  if (task === undefined) throw notFound(TASKS, args.task_id);
  const takeover = args.takeover === true;
  // A takeover with the status that the task has takes the hold and moves nothing.
  const to = takeover && task.held_by !== null && args.status === task.status ? undefined : args.status;
  if (to !== undefined) assertArrow(task, to, call);
  const taken = to === undefined && !takeover ? undefined : yield* takeHold(task, to, takeover, call);
  const moved = to === undefined ? {} : move(to, args, call);
  const unsealed = to !== undefined && isDone(to) ? yield* assertMayFinish(task) : 0;
  const rewired = args.depends_on === undefined ? {} : yield* rewire(task, args.depends_on);
  const row: TaskRow = {
    ...task,
    ...given(args, ...REPLACED),
    ...(args.title !== undefined && { title_call: call.enter }),
    ...(args.description !== undefined && { description_call: call.enter }),
    ...(args.blocked_reason !== undefined && { blocked_reason_call: call.enter }),
    ...(args.labels !== undefined && { labels: labelsOf(args.labels) }),
    ...moved,
    ...taken?.hold,
    ...rewired,
    updated_at: call.at,
    updated_by: call.actor,
    position: call.position,
  };
  const warnings = yield* afterthoughts(args, task, row, unsealed);
  const records = yield* recordIn(covering, { kind: 'change', ref: call.position, task_id: id }, call);
  return {
    rows: [{ table: 'tasks', row, previous: task.position }, ...records],
    result: {
      task_id: formatId(TASKS, id),
      ...pick(row, 'status', 'progress', 'updated_at', 'updated_by'),
      ...(args.status !== undefined && { previous_status: task.status }),
      ...(taken?.from && { taken_over_from: taken.from }),
      ...(warnings.length > 0 && { warnings }),
    },
  };
}

function move(to: Status, args: UpdateArgs, call: Call): Partial<TaskRow> {
  return {
    status: to,
    status_since: call.at,
    status_by: call.actor,
    blocked_reason: args.blocked_reason ?? null,
    blocked_reason_call: args.blocked_reason === undefined ? null : call.enter,
    ...(isDone(to) && { progress: 100 }),
  };
}

/** Whose hold ends with a call, and the hold after it. Refuses a move, or a takeover, that is not the caller's to make. */
function* takeHold(
  task: TaskRow,
  to: Status | undefined,
  takeover: boolean,
  call: Call,
): Steps<{ readonly from?: FormerHolder; readonly hold: Partial<TaskRow> }> {
  if (task.held_by === null && to === undefined) throw nothingToTakeOver(task);
  const isHolder =
    task.held_by === call.actor && (task.held_process === null || task.held_process === call.process);
  const from = task.held_by === null || isHolder ? undefined : yield* formerHolder(task, takeover, call);
  const hold =
    to !== undefined && !isUnderWay(task.workflow, to)
      ? { held_by: null, held_process: null, held_since: null }
      : isHolder
        ? {}
        : {
            held_by: call.actor,
            held_process: call.source === 'cli' ? null : call.process,
            held_since: call.at,
          };
  return { ...(from && { from }), hold };
}

/**
 * Somebody else holds the task. The hold passes to an agent that was restarted, to the assignee, and to whoever takes it
 * over; anybody else is refused. Two processes of one name are two holders, unless the task is assigned to that name.
 */
function* formerHolder(task: TaskRow, takeover: boolean, call: Call): Steps<FormerHolder> {
  const { held_by, held_process, held_since } = task;
  if (held_by === null || held_since === null) throw new Error('nobody holds the task');
  const { seen } = yield* ask({ seen: ['holder', held_by, held_process] });
  const isRestarted = held_by === call.actor && !seen.present;
  const isHandedOver = task.assignee === call.actor;
  if (!takeover && !isRestarted && !isHandedOver) throw taskHeld(task, held_by, held_since, seen);
  return { held_by, since: held_since, ...given(seen, 'last_seen'), present: seen.present };
}

function nothingToTakeOver({ id, workflow, status }: TaskRow): ColibriError {
  const allowed = allowedFrom(workflow, status);
  const next = allowed.length === 0 ? 'It is final.' : `Claim it with status instead: ${allowed.join(', ')}.`;
  const sentence = `Nobody holds ${formatId(TASKS, id)}, which is ${status}, so there is nothing to take over. ${next}`;
  const details = { task_id: formatId(TASKS, id), workflow, from: status, allowed };
  return new ColibriError('ERR_INVALID_TRANSITION', sentence, details);
}

function taskHeld(task: TaskRow, held_by: string, since: string, seen: SeenHolder): ColibriError {
  const task_id = formatId(TASKS, task.id);
  const isPerson = task.held_process === null;
  const wasTaken = task.status_by !== held_by && task.status_since < since;
  const how = wasTaken
    ? `${held_by} took ${task_id} over from ${task.status_by} at ${since}`
    : `${held_by} has held ${task_id} since ${since}`;
  const where = isPerson
    ? 'a person at the command line'
    : `${seen.present ? 'still running' : 'its process is gone'}${seen.last_seen === undefined ? '' : `, last seen ${seen.last_seen}`}`;
  const sentence = `${how} (${where}). Take another task from task_next_actions. Only if the holder will not finish it, take it over: repeat the call with takeover: true.`;
  const details = { task_id, held_by, since, ...given(seen, 'last_seen'), present: seen.present };
  return new ColibriError('ERR_TASK_HELD', sentence, details);
}

/** The gates before the end. Answers how many thoughts of a proof-grade task are in no seal. */
function* assertMayFinish(task: TaskRow): Steps<number> {
  const task_id = formatId(TASKS, task.id);
  const { newest, open, unsealed } = yield* ask({
    newest: ['newestThought', task.id],
    open: ['openSession', task.id],
    unsealed: ['unsealedThoughts', task.proof_grade === 1 ? task.id : 0],
  });
  const lacks = (missing: string) => ({ task_id, missing_fields: [missing] });
  if (newest === undefined) {
    const sentence = `${task_id} cannot be finished before a reason is recorded. Call thought_record for it, then set this status again.`;
    throw new ColibriError('ERR_WRITEBACK_REQUIRED', sentence, lacks('thought_record'));
  }
  if (task.proof_grade === 0 || (open === undefined && newest.sealed)) return unsealed;
  const what =
    open === undefined
      ? `its newest thought ${formatId(THOUGHTS, newest.id)} is not in a sealed session. Open a session with audit_session_start, record a thought that sums up the work, and seal it with merkle_finalize`
      : `its session ${formatId(SESSIONS, open.id)} is still open. Seal it with merkle_finalize`;
  const sentence = `${task_id} is proof-grade, and ${what}; then set this status again.`;
  throw new ColibriError('ERR_PROOF_REQUIRED', sentence, lacks('merkle_finalize'));
}

function* rewire(task: TaskRow, ids: readonly string[]): Steps<Partial<TaskRow>> {
  const dependsOn = numbers(ids, 'depends_on');
  const { existing } = yield* ask({ existing: ['existing', dependsOn] });
  assertExist(dependsOn, existing, 'depends_on');
  yield* assertNoCycle(task.id, dependsOn);
  return { depends_on: canonicalJson(dependsOn) };
}

/**
 * A task waits for its children and for what it depends on. Refuses what would make `task` wait for itself, and spells
 * the cycle out. Walks breadth first, one level a step, so that the cycle named is the shortest. `via` names a task
 * between `task` and its dependencies that does not exist yet.
 */
function* assertNoCycle(task: number, dependsOn: readonly number[], via?: string): Steps<void> {
  const cameFrom = new Map<number, number>(dependsOn.map((id) => [id, task]));
  let level: readonly number[] = dependsOn;
  while (level.length > 0) {
    if (cameFrom.has(task)) throw cycleError(task, cameFrom, via);
    const { awaited } = yield* ask({ awaited: ['awaitedBy', level] });
    const next: number[] = [];
    for (const id of level) {
      for (const other of awaited.get(id) ?? []) {
        if (cameFrom.has(other)) continue;
        cameFrom.set(other, id);
        next.push(other);
      }
    }
    level = next;
  }
}

function cycleError(task: number, cameFrom: ReadonlyMap<number, number>, via?: string): ColibriError {
  const path = [task];
  for (let id = cameFrom.get(task); id !== undefined && id !== task; id = cameFrom.get(id)) path.unshift(id);
  const cycle = [task, ...path].map((id) => formatId(TASKS, id));
  if (via !== undefined) cycle.splice(1, 0, via);
  const sentence = `${cycle[0]} would wait for itself: ${cycle.join(' waits for ')}. Remove one of these dependencies.`;
  return new ColibriError('ERR_CIRCULAR_DEPENDENCY', sentence, { cycle });
}

/** What was done as asked but may not be what was meant. */
function* afterthoughts(args: UpdateArgs, before: TaskRow, row: TaskRow, unsealed: number): Steps<string[]> {
  const said: string[] = [];
  if (unsealed > 0)
    said.push(`${unsealed} older thought(s) of ${formatId(TASKS, row.id)} are not in a sealed session.`);
  if ((args.progress ?? row.progress) !== row.progress)
    said.push(`Finishing sets progress to 100, not ${args.progress}.`);
  else if (args.progress !== undefined && args.progress < 100 && isDone(before.status))
    said.push(`The task is finished, but its progress is now ${args.progress} instead of 100.`);
  if (args.progress === 100 && !isDone(row.status))
    said.push(`Progress is 100 but the status is ${row.status}, not finished.`);
  if (args.blocked_reason !== undefined && row.status !== 'blocked')
    said.push(`blocked_reason was stored, but the status is ${row.status}, not blocked.`);
  if (args.status === undefined || !isDone(row.status)) return said;
  const { unmet } = yield* ask({ unmet: ['unmet', row] });
  if (unmet > 0) said.push(`Finished, although ${unmet} of its children or dependencies are not.`);
  return said;
}

function labelsOf(labels: readonly string[]): string {
  return canonicalJson([...new Set(labels)]);
}

/** The numbers of the tasks named, each once, in the order given. */
function numbers(ids: readonly string[], field: string): number[] {
  return [...new Set(ids)].map((text) => numberOf(TASKS, text, field));
}

function assertExist(ids: readonly number[], existing: readonly number[], field: string): void {
  const missing = ids.find((id) => !existing.includes(id));
  if (missing !== undefined) throw notFound(TASKS, formatId(TASKS, missing), field);
}

export function projectNotFound(project: string, known: readonly string[]): ColibriError {
  const hint =
    known.length === 0
      ? ' There are none yet; task_create creates one.'
      : `${didYouMean(project, known)} The projects are: ${known.join(', ')}.`;
  const sentence = `There is no project ${JSON.stringify(project)}.${hint}`;
  return new ColibriError('ERR_PROJECT_NOT_FOUND', sentence, { project, projects: known });
}

/** The writing tools of this domain, with the arguments that are texts. */
export const TASK_RULES = {
  task_create: { texts: ['title', 'description'], rule: createTask },
  task_update: { texts: ['title', 'description', 'blocked_reason'], rule: updateTask },
} as const;
