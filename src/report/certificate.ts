import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import { ERASED } from '../log/texts.ts';
import { listIn, textFrom } from '../untrusted.ts';
import { auditRow } from '../verify/finding.ts';
import { isObject, type JsonObject, objectIn } from '../verify/rules/payloads.ts';
import { parseCertificate } from '../verify/sources/certificate.ts';
import * as forms from '../verify/sources/forms.ts';
import { tellCall, textFields, textOf } from './telling.ts';

// What a certificate shows, for people. None of these words is in the file, so nobody can make it say something else. The
// certificate may be anybody's: what makes no sense is left out, and all of it must be escaped when it is shown. Only what
// the verifier found nothing wrong with may be shown as proved.

export type ToldCertificate = ReturnType<typeof tellCertificate>;

/** What was done, by whom, the reasons in order, the gate, and the seals. */
export function tellCertificate(text: string) {
  const { subject, files } = parseCertificate(text);
  const objectsIn = (name: string) => [files[name] ?? []].flat().map((line) => forms.members(line));
  const texts = new Map(objectsIn(forms.TEXTS).map((one) => [one.digest, textOf(one.text)]));
  const shown = (digest: unknown) => (forms.isText(digest) ? (texts.get(digest) ?? ERASED) : '');
  const state = objectsIn(forms.STATE);
  const of = ({ name }: StateTable) => state.filter(({ table }) => table === name);
  const log = objectsIn(forms.LOG);
  const calls = callsIn(log, objectsIn(forms.PAYLOADS), shown);
  const task = of(TASKS).find((row) => nameOf(TASKS, row) === subject);
  const thoughts = of(THOUGHTS).map((row) => tellThought(row, shown));
  const seals = of(SESSIONS).filter(({ status }) => status === 'finalized');
  return {
    subject,
    title: task === undefined ? '' : shown(task.title),
    /** Of a task. */
    project: textOf(task?.project),
    status: textOf(task?.status),
    isProofGrade: task?.proof_grade === 1,
    rows: log.length,
    records: state.length,
    /** Everything but thoughts, in the order in which it happened. */
    steps: calls.filter(({ kind }) => kind !== 'thought'),
    reasons: thoughts,
    gate: task === undefined ? [] : tellGate(task, calls, thoughts, seals),
    seals: seals.map((row) => ({
      session: nameOf(SESSIONS, row),
      task: formatId(TASKS, Number(row.task_id)),
      records: Number(row.leaf_count),
      root: textOf(row.merkle_root),
      auditor: textOf(row.auditor_id),
      by: textOf(row.finalized_by),
      at: textOf(row.finalized_at),
      row: auditRow(Number(row.position)),
      reason: shown(row.reason),
    })),
    skills: [
      ...new Set(
        of(SESSIONS).flatMap(({ skills }) => listIn(textOf(skills)).filter(isObject).map(tellSkill)),
      ),
    ],
  };
}

/** The calls in order, each as its two rows and their payloads tell it. */
function callsIn(
  log: readonly JsonObject[],
  payloads: readonly JsonObject[],
  shown: (digest: unknown) => string,
) {
  const bodies = new Map(payloads.map(({ position, body }) => [position, forms.members(textOf(body))]));
  return log.flatMap((row) => {
    if (row.stage !== 'exit') return [];
    const given = bodies.get(row.sequence_no) ?? {};
    const texts = textFields(row, given).map((field) => [field, shown(given[field])]);
    const end = bodies.get(row.position) ?? {};
    const [result = {}, error, outside] = [end.result, end.error, end.outside].map(objectIn);
    const told = tellCall({ row, args: { ...given, ...Object.fromEntries(texts) }, result, error, outside });
    return [{ ...told, isPerson: row.source === 'cli' }];
  });
}

function tellThought(row: JsonObject, shown: (digest: unknown) => string) {
  const tests = listIn(shown(row.tests_run)).map(textFrom);
  return {
    thought: nameOf(THOUGHTS, row),
    task: formatId(TASKS, Number(row.task_id)),
    type: textOf(row.type),
    at: textOf(row.recorded_at),
    by: textOf(row.recorded_by),
    content: shown(row.content),
    ...{ branch: textOf(row.branch), commit: textOf(row.commit_sha), tests },
  };
}

type Told = ReturnType<typeof callsIn>[number];
type Thought = ReturnType<typeof tellThought>;

/** What had to be there before the task could be finished, and was. */
function tellGate(
  task: JsonObject,
  calls: readonly Told[],
  thoughts: readonly Thought[],
  seals: readonly JsonObject[],
) {
  const id = nameOf(TASKS, task);
  const end = calls.find((call) => call.task === id && call.to.toLowerCase() === 'done');
  if (end === undefined) return [`It is not finished: it is ${textOf(task.status)}.`];
  const own = thoughts.filter((thought) => thought.task === id && thought.at <= end.at);
  const newest = own.at(-1);
  const sentences = [
    `It could be finished at ${end.at} because ${own.length === 1 ? 'a thought was' : `${own.length} thoughts were`} recorded on it.`,
  ];
  if (task.proof_grade !== 1 || newest === undefined) return sentences;
  const names = seals.map((row) => nameOf(SESSIONS, row)).join(', ');
  return [
    ...sentences,
    `It is proof-grade, and its newest thought ${newest.thought} had been sealed, in ${names}.`,
  ];
}

function tellSkill({ name, digest }: JsonObject): string {
  return `${textOf(name)} ${textOf(digest)}`;
}

function nameOf(table: StateTable, { id }: JsonObject): string {
  return formatId(table, Number(id));
}
