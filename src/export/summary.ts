import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import { listIn } from '../untrusted.ts';
import { auditRow } from '../verify/finding.ts';
import { isObject, type JsonObject } from '../verify/rules/payloads.ts';
import { parseCertificate } from '../verify/sources/certificate.ts';
import * as forms from '../verify/sources/forms.ts';

/**
 * What a certificate shows, for people, a line each. It stands nowhere in the file, so nobody can make it say something
 * else. Reads strangers' certificates too: what makes no sense is left out, and all of it must be escaped when printed.
 */
export function describeCertificate(text: string): string[] {
  const { subject, files } = parseCertificate(text);
  const objectsIn = (name: string) => [files[name] ?? []].flat().map((line) => forms.members(line));
  const [log, state] = [objectsIn(forms.LOG), objectsIn(forms.STATE)];
  const of = ({ name }: StateTable) => state.filter(({ table }) => table === name);
  const sealed = of(SESSIONS).filter(({ status }) => status === 'finalized');
  const digest = of(TASKS).find((row) => nameOf(TASKS, row) === subject)?.title;
  const title = objectsIn(forms.TEXTS).find((text) => text.digest === digest)?.text;
  return [
    `${subject}${title === undefined ? '' : ` "${title}"`}: ${log.length} audit rows and ${state.length} records`,
    ...transitions(subject, log, objectsIn(forms.PAYLOADS)),
    ...of(THOUGHTS).map(
      (row) => `${row.recorded_at} ${nameOf(THOUGHTS, row)} ${row.type} by ${row.recorded_by}`,
    ),
    ...sealed.map(
      (row) =>
        `${nameOf(SESSIONS, row)} sealed at ${auditRow(Number(row.position))} over ${row.leaf_count} records`,
    ),
    ...new Set(of(SESSIONS).flatMap(skills)),
  ];
}

/** Each step of the task that it is about, as the answers of its calls tell it. */
function transitions(subject: string, log: readonly JsonObject[], payloads: readonly JsonObject[]): string[] {
  const bodies = new Map(payloads.map(({ position, body }) => [position, forms.members(String(body))]));
  return log.flatMap(({ position, stage, outcome, actor, at }) => {
    const result = bodies.get(position)?.result;
    if (stage !== 'exit' || outcome !== 'ok' || !isObject(result)) return [];
    const { task_id, previous_status, status } = result;
    if (task_id !== subject || !forms.isText(status)) return [];
    if (forms.isText(previous_status)) return [`${at} ${previous_status} to ${status} by ${actor}`];
    return 'created_at' in result ? [`${at} created in ${status} by ${actor}`] : [];
  });
}

function skills({ skills: list }: JsonObject): string[] {
  const inForce = listIn(String(list)).filter(isObject);
  return inForce.map(({ name, digest }) => `skill in force: ${name} ${digest}`);
}

function nameOf(table: StateTable, { id }: JsonObject): string {
  return formatId(table, Number(id));
}
