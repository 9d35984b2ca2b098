import * as z from 'zod';
import { allowedFrom, INITIAL, isDone, STATUSES, type Status, WORKFLOWS } from '../domains/tasks/index.ts';
import { parseId } from '../log/state.ts';
import { TASKS } from '../log/tables.ts';
import type { Finding, Report } from '../log/verify/finding.ts';
import type { Certificate } from './certificate.ts';
import { asSession, asThought, type WrittenRow } from './formats.ts';
import { type ShownCall, summarize } from './summary.ts';

const Task = z.looseObject({
  workflow: z.enum(WORKFLOWS),
  status: z.enum(STATUSES),
  status_since: z.string(),
  status_by: z.string(),
  proof_grade: z.int(),
});

/** The steps of a task: from its creation to where its row stands, each allowed, each by who and when its call says. */
export function checkTask(
  certificate: Certificate,
  calls: readonly ShownCall[],
  rows: ReadonlyMap<string, WrittenRow>,
  report: Report,
): void {
  const { subject } = certificate;
  const say = (kind: Finding['kind'], message: string, position?: number) =>
    report({ kind, table: 'tasks', record: subject, message, ...(position !== undefined && { position }) });
  const task = Task.safeParse(rows.get(subject)).data;
  if (task === undefined) {
    say('missing', `The row of ${subject} is not there or is no task.`);
    return;
  }
  const seals = [...rows.values()]
    .map(asSession)
    .filter((session) => session !== undefined)
    .filter(({ status, task_id }) => status === 'finalized' && task_id === parseId(TASKS, subject));
  const byExit = new Map(calls.map((call) => [call.exit.position, call]));
  let status: string | null = null;
  const { transitions } = summarize(certificate);
  for (const { at, by, from, to, position } of transitions) {
    if (!isArrow(task.workflow, status, from, to))
      say(
        'altered',
        `${subject} went from ${from ?? 'nothing'} to ${to}, which its workflow forbids.`,
        position,
      );
    const call = byExit.get(position);
    if (call === undefined || !isToldByCall(call, { at, by, to }))
      say('altered', `Who moved ${subject} to ${to}, or when, is not what the call says.`, position);
    if (
      isDone(to as Status) &&
      task.proof_grade === 1 &&
      !seals.some((session) => session.position < position)
    )
      say('missing', `${subject} is proof-grade and was finished before a session was sealed.`, position);
    status = to;
  }
  const last = transitions.at(-1);
  if (
    last === undefined ||
    last.to !== task.status ||
    last.at !== task.status_since ||
    last.by !== task.status_by
  )
    say('altered', `The row of ${subject} stands in ${task.status}, which its steps do not lead to.`);
}

function isArrow(
  workflow: (typeof WORKFLOWS)[number],
  status: string | null,
  from: string | null,
  to: string,
): boolean {
  if (from !== status) return false;
  return from === null
    ? to === INITIAL[workflow]
    : allowedFrom(workflow, from as Status).some((next) => next === to);
}

function isToldByCall(
  { enter, exit, args }: ShownCall,
  step: { readonly at: string; readonly by: string; readonly to: string },
): boolean {
  return (
    enter !== undefined &&
    step.by === exit.actor &&
    enter.at <= step.at &&
    step.at <= exit.at &&
    (exit.tool === 'task_create' || args.status === step.to)
  );
}

const Recorded = z.looseObject({
  thought_id: z.string(),
  task_id: z.string(),
  hash: z.string(),
  previous_hash: z.string().nullable(),
  chain_position: z.int(),
});

/** The chain of a task's thoughts as their calls answered it, without a gap up to the last one shown. */
export function checkThoughts(
  calls: readonly ShownCall[],
  rows: ReadonlyMap<string, WrittenRow>,
  subject: string,
  report: Report,
): void {
  const shown = [...rows.values()].map(asThought).filter((thought) => thought !== undefined);
  const task = subject.startsWith('T-') ? parseId(TASKS, subject) : shown[0]?.task_id;
  const recorded = calls
    .filter(({ exit }) => exit.tool === 'thought_record')
    .map(({ result }) => Recorded.safeParse(result).data)
    .filter((result) => result !== undefined && parseId(TASKS, result.task_id) === task);
  let previous: string | null = null;
  recorded.forEach((result, i) => {
    if (result?.previous_hash !== previous || result.chain_position !== i + 1)
      report({
        kind: 'unlinked',
        table: 'thoughts',
        record: result?.thought_id ?? '',
        message: `${result?.thought_id} does not continue the thought before it.`,
      });
    previous = result?.hash ?? null;
  });
  const hashes = new Set(recorded.map((result) => result?.hash));
  for (const { id, hash, task_id } of shown)
    if (task_id === task && !hashes.has(hash))
      report({
        kind: 'missing',
        table: 'thoughts',
        record: `thought ${id}`,
        message: `The call that recorded thought ${id} is not shown.`,
      });
}
