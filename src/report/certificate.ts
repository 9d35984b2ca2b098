import { listIn } from '../untrusted.ts';
import { isObject } from '../verify/rules/payloads.ts';
import type { SourceRow } from '../verify/source.ts';
import type { CarriedSource } from '../verify/sources/carried.ts';
import { type Call, type Records, readRecords, type Session, type Task, type Thought } from './records.ts';

// What a certificate shows, for people: one telling for the page and for the command line. None of these words is in the
// file, so nobody can make it say something else. The certificate may be anybody's: all of it must be escaped when it is
// shown, and only what the verifier found nothing wrong with may be shown as proved.

/** What a certificate is about, in the order in which a person asks. */
export type ToldCertificate = ReturnType<typeof tellCertificate>;

/** Reads a certificate that holds, and tells it. */
export async function readCertificate(source: CarriedSource) {
  const rows = new Map<number, SourceRow>();
  for await (const page of source.rows()) for (const row of page) rows.set(row.position, row);
  const records = await readRecords(source, rows);
  return { ...tellCertificate(source.subject, records), rows: rows.size, records: records.stateRows };
}

export function tellCertificate(
  subject: string,
  { calls, tasks, thoughts, sessions }: Pick<Records, 'calls' | 'tasks' | 'thoughts' | 'sessions'>,
) {
  const isAbout = ({ ids, task }: Call) => task === subject || ids.includes(subject);
  const thought = thoughts.find(({ id }) => id === subject);
  const session = sessions.find(({ id }) => id === subject);
  const about = session?.task ?? thought?.task ?? subject;
  const done = calls.filter(({ kind }) => kind !== 'read' && kind !== 'thought');
  const told = {
    subject,
    task: tasks.find(({ id }) => id === about),
    thought,
    /** What was done, the oldest first, refusals included. */
    steps: session === undefined ? done.filter(isAbout) : done,
    /** The reasons, in the order in which they were recorded. */
    reasons: thoughts.filter(({ id, task }) => [id, task].includes(subject) || session !== undefined),
    seals: sessions.filter(({ isSealed }) => isSealed),
    skills: [...new Set(sessions.flatMap(({ skills }) => listIn(skills).filter(isObject).map(skillName)))],
  };
  const { task } = told;
  return { ...told, gate: task === undefined || session !== undefined ? [] : gateOf(task, told) };
}

interface Told {
  readonly steps: readonly Call[];
  readonly reasons: readonly Thought[];
  readonly seals: readonly Session[];
}

/** What the rules asked before the task could be finished, and what met it. */
function gateOf({ status, isProofGrade }: Task, { steps, reasons, seals }: Told): string[] {
  const end = steps.findLast(({ to }) => to.toLowerCase() === 'done');
  if (end === undefined)
    return [
      `It is not finished: it is ${status}. Finishing it needs a thought${isProofGrade ? ', and a sealed session' : ''}.`,
    ];
  const before = reasons.filter(({ position }) => position < end.exit);
  const refused = steps.filter(({ kind }) => kind === 'failure').length;
  const names = seals.map(({ id }) => id).join(', ');
  return [
    `Finished by ${end.actor} at ${end.at.slice(0, 19).replace('T', ' ')} UTC, in audit row ${end.exit}.`,
    `A task can be finished only after a thought about it. ${before.length === 1 ? 'One was recorded before:' : `${before.length} were recorded before, most recently`} ${before.at(-1)?.id}.`,
    ...(isProofGrade ? [`It is proof-grade, so it also needed a sealed session: ${names}.`] : []),
    ...(refused > 0
      ? [`${refused} ${refused === 1 ? 'call on it was' : 'calls on it were'} refused on the way.`]
      : []),
  ];
}

function skillName({ name, version, digest }: Readonly<Record<string, unknown>>): string {
  return [name, version, digest].filter((part) => typeof part === 'string').join(' ');
}
