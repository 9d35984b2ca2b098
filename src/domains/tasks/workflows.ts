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

export function queueOf(workflow: Workflow, status: Status): number {
  if (status === 'blocked') return QUEUE.blocked;
  const isNext = status === 'todo' || (workflow === 'pipeline' && !isFinal(workflow, status));
  return isNext ? QUEUE.next : QUEUE.none;
}

/** The verifier asks about rows that may say anything: a workflow that does not exist allows nothing. */
export function allowedFrom(workflow: Workflow, status: Status): readonly Status[] {
  return Object.hasOwn(ARROWS, workflow) ? (ARROWS[workflow][status] ?? []) : [];
}

/** To stay is not an arrow either: of two agents that make the same move, the second learns who was first. */
export function assertArrow(
  task: Pick<TaskRow, 'id' | 'workflow' | 'status' | 'status_by' | 'status_since'>,
  to: Status,
): void {
  const { workflow, status, status_by: held_by, status_since: since } = task;
  const allowed = allowedFrom(workflow, status);
  if (allowed.includes(to)) return;
  const task_id = formatId(TASKS, task.id);
  const refused = to === status ? `be set to ${to} a second time` : `move to ${to}`;
  const next =
    allowed.length === 0 ? 'It is final and never moves again.' : `Allowed next: ${allowed.join(', ')}.`;
  const sentence = `${task_id} has been ${status} since ${since}, set by ${held_by}; it cannot ${refused}. ${next}`;
  const details = { task_id, workflow, from: status, to, allowed, held_by, since };
  throw new ColibriError('ERR_INVALID_TRANSITION', sentence, details);
}
