import { ColibriError } from '../../errors.ts';
import { formatId, TASKS } from '../../log/tables.ts';
import type { TaskRow } from '../facts.ts';

export const WORKFLOWS = ['kanban', 'pipeline'] as const;
export type Workflow = (typeof WORKFLOWS)[number];

export const STATUSES = [
  ...(['backlog', 'todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled'] as const),
  ...(['INIT', 'GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE', 'CANCELLED'] as const),
] as const;
export type Status = (typeof STATUSES)[number];

/** Both machines whole. A status with no arrows out is final; the first of each list is where a task begins. */
export const ARROWS: Readonly<Record<Workflow, Readonly<Partial<Record<Status, readonly Status[]>>>>> = {
  kanban: {
    backlog: ['todo', 'cancelled'],
    todo: ['in_progress', 'blocked', 'cancelled'],
    in_progress: ['review', 'blocked', 'cancelled'],
    blocked: ['todo', 'in_progress', 'cancelled'],
    review: ['done', 'backlog', 'blocked', 'cancelled'],
    done: [],
    cancelled: [],
  },
  pipeline: {
    INIT: ['GATHER', 'CANCELLED'],
    GATHER: ['ANALYZE', 'CANCELLED'],
    ANALYZE: ['PLAN', 'CANCELLED'],
    PLAN: ['APPLY', 'CANCELLED'],
    APPLY: ['VERIFY', 'CANCELLED'],
    VERIFY: ['DONE', 'GATHER', 'CANCELLED'],
    DONE: [],
    CANCELLED: [],
  },
};

export const INITIAL: Readonly<Record<Workflow, Status>> = { kanban: 'backlog', pipeline: 'INIT' };

/** How a task in this status takes part in "what next". */
export const QUEUE = { none: 0, next: 1, blocked: 2 } as const;

export function isFinal(workflow: Workflow, status: Status): boolean {
  return allowedFrom(workflow, status).length === 0;
}

/** Finished, as opposed to given up. */
export function isDone(status: Status): boolean {
  return status === 'done' || status === 'DONE';
}

/** In progress: whoever moves a task here holds it. */
export function isUnderWay(workflow: Workflow, status: Status): boolean {
  if (workflow === 'pipeline') return status !== INITIAL.pipeline && !isFinal(workflow, status);
  return status === 'in_progress';
}

/** A pipeline task that is under way is next for its holder only, who finds it by its hold. */
export function queueOf(status: Status): number {
  if (status === 'blocked') return QUEUE.blocked;
  return status === 'todo' || status === INITIAL.pipeline ? QUEUE.next : QUEUE.none;
}

/** The verifier asks about rows that may say anything: a workflow that does not exist allows nothing. */
export function allowedFrom(workflow: Workflow, status: Status): readonly Status[] {
  return Object.hasOwn(ARROWS, workflow) ? (ARROWS[workflow][status] ?? []) : [];
}

type Standing = Pick<
  TaskRow,
  'id' | 'workflow' | 'status' | 'status_by' | 'status_since' | 'held_by' | 'held_process' | 'held_since'
>;

/** Who makes a call, and in which server process. */
interface Caller {
  readonly actor: string;
  readonly process: string;
}

/** To stay is not an arrow either: of two agents that make the same move, the second learns who was first. */
export function assertArrow(task: Standing, to: Status, caller: Caller): void {
  const { workflow, status, status_since, status_by, held_by } = task;
  const allowed = allowedFrom(workflow, status);
  if (allowed.includes(to)) return;
  const task_id = formatId(TASKS, task.id);
  const first = firstStep(workflow, status, to);
  const refused = to === status ? `be set to ${to} a second time` : `move to ${to}`;
  const next =
    allowed.length === 0
      ? 'That status is final.'
      : `${first === undefined ? '' : `Set it to ${first} first. `}Allowed next: ${allowed.join(', ')}.`;
  const sentence = `${task_id} has been ${status} since ${status_since}, set by ${status_by}; it cannot ${refused}.${whoHolds(task, caller)} ${next}`;
  const who = held_by === null ? { status_by, since: status_since } : { held_by, since: task.held_since };
  const details = { task_id, workflow, from: status, to, allowed, ...(first && { first }), ...who };
  throw new ColibriError('ERR_INVALID_TRANSITION', sentence, details);
}

/** A person holds a task without a process. An agent that was started again may find its own hold under another one. */
function whoHolds({ held_by, held_process, held_since }: Standing, { actor, process }: Caller): string {
  if (held_by === null) return '';
  if (held_by !== actor) return ` ${held_by} has held it since ${held_since}: take another task.`;
  if (held_process === null || held_process === process) return ` You have held it since ${held_since}.`;
  return ` ${held_by} has held it since ${held_since} in another process: unless that was you before a restart, take another task.`;
}

/** Where the shortest way from one status to another leads first; undefined where it is one step, or none leads there. */
function firstStep(workflow: Workflow, from: Status, to: Status): Status | undefined {
  const cameFrom = new Map<Status, Status>(allowedFrom(workflow, from).map((next) => [next, next]));
  // A map may grow while it is walked: what was found last is looked at last.
  for (const [status, first] of cameFrom) {
    if (status === to) return from === to || status === first ? undefined : first;
    for (const next of allowedFrom(workflow, status)) if (!cameFrom.has(next)) cameFrom.set(next, first);
  }
  return undefined;
}
