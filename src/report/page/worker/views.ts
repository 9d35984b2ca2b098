import { formatId } from '../../../log/state.ts';
import { SESSIONS, TASKS, THOUGHTS } from '../../../log/tables.ts';
import { auditRow } from '../../../log/verify/finding.ts';
import type { Call, Leaf, Session, Task } from '../protocol.ts';
import { countOf, type Fields, isPosition, textOf, textsOf } from './fields.ts';
import type { StateRow, StateWalk, WalkedSession } from './state.ts';

const LABEL_CHARACTERS_MAX = 160;

export function tasksOf({ rows }: StateWalk): Task[] {
  return rows.filter(({ table }) => table === TASKS).map(taskOf);
}

function taskOf({ id, fields, isVouched }: StateRow): Task {
  return {
    id: formatId(TASKS, id),
    title: textOf(fields.title),
    description: textOf(fields.description),
    project: textOf(fields.project),
    workflow: textOf(fields.workflow),
    status: textOf(fields.status),
    statusSince: textOf(fields.status_since),
    statusBy: textOf(fields.status_by),
    priority: textOf(fields.priority),
    assignee: textOf(fields.assignee),
    progress: countOf(fields.progress),
    labels: textsOf(fields.labels),
    isProofGrade: fields.proof_grade === 1,
    blockedReason: textOf(fields.blocked_reason),
    createdAt: textOf(fields.created_at),
    createdBy: textOf(fields.created_by),
    isVouched,
  };
}

export function sessionsOf({ rows, sessions }: StateWalk, calls: readonly Call[]): Session[] {
  const told = new Map(calls.map(({ exit, verb, text }) => [exit, `${verb} ${text}`]));
  const thoughts = new Map(
    rows.filter(({ table }) => table === THOUGHTS).map(({ id, fields }) => [id, fields]),
  );
  return rows
    .filter(({ table }) => table === SESSIONS)
    .map(({ id, fields }) => sessionOf(id, fields, sessions.get(id), thoughts, told));
}

function sessionOf(
  id: number,
  fields: Fields,
  walked: WalkedSession | undefined,
  thoughts: ReadonlyMap<number, Fields>,
  told: ReadonlyMap<number, string>,
): Session {
  const leaves = (walked?.records ?? []).map(({ kind, ref, task_id, hash }): Leaf => {
    const thought = kind === 'thought' ? thoughts.get(ref) : undefined;
    const change = `${formatId(TASKS, task_id)} ${told.get(ref) ?? 'changed'}`;
    const label = thought === undefined ? change : `${textOf(thought.type)}: ${textOf(thought.content)}`;
    return {
      record: kind === 'thought' ? formatId(THOUGHTS, ref) : auditRow(ref),
      task: formatId(TASKS, task_id),
      hash,
      position: kind === 'thought' ? countOf(thought?.position) : ref,
      label: label.slice(0, LABEL_CHARACTERS_MAX),
    };
  });
  return {
    id: formatId(SESSIONS, id),
    task: isPosition(fields.task_id) ? formatId(TASKS, fields.task_id) : '',
    auditor: textOf(fields.auditor_id),
    reason: textOf(fields.reason),
    scope: textOf(fields.scope),
    status: textOf(fields.status),
    startedAt: textOf(fields.started_at),
    startedBy: textOf(fields.started_by),
    finalizedAt: textOf(fields.finalized_at),
    root: textOf(fields.merkle_root),
    position: countOf(fields.position),
    leaves,
    // A row that the log does not vouch for has no seal that could hold.
    sealHolds: walked === undefined ? false : walked.sealHolds,
  };
}
