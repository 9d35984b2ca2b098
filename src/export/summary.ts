import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import { auditRow } from '../verify/finding.ts';
import { type Certificate, parseCertificate } from '../verify/sources/certificate.ts';
import { isObject, isText, members } from '../verify/sources/forms.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * What a certificate shows, for people, a line each. It stands nowhere in the file, so nobody can make it say something
 * else. Reads strangers' certificates too: what makes no sense is left out, and all of it must be escaped when printed.
 */
export function describeCertificate(certificate: Certificate): string[] {
  const { subject, rows, state } = certificate;
  const title = titleOf(certificate);
  return [
    `${subject}${title === undefined ? '' : ` "${title}"`}: ${rows.length} audit rows and ${state.length} records`,
    ...transitions(certificate),
    ...thoughts(certificate),
    ...seals(certificate),
    ...skills(certificate),
  ];
}

/** The same for a text that may be none. */
export function describeCertificateText(text: string): string[] {
  try {
    return describeCertificate(parseCertificate(text));
  } catch {
    // What is wrong with it the verifier says.
    return [];
  }
}

function titleOf(certificate: Certificate): string | undefined {
  const task = rowsOf(certificate, TASKS).find((row) => nameOf(TASKS, row) === certificate.subject);
  return certificate.texts.find(({ digest }) => digest === task?.title)?.text;
}

/** Each step of the task that it is about, as the answers of its calls tell it. */
function transitions(certificate: Certificate): string[] {
  const bodies = new Map(certificate.payloads.map(({ position, body }) => [position, members(body)]));
  return certificate.rows.flatMap(({ position, text }) => {
    const { stage, outcome, actor, at } = members(text);
    const result = bodies.get(position)?.result;
    if (stage !== 'exit' || outcome !== 'ok' || !isObject(result)) return [];
    const { task_id, previous_status, status } = result;
    if (task_id !== certificate.subject || !isText(status)) return [];
    if (isText(previous_status)) return [`${at} ${previous_status} to ${status} by ${actor}`];
    return 'created_at' in result ? [`${at} created in ${status} by ${actor}`] : [];
  });
}

function thoughts(certificate: Certificate): string[] {
  return rowsOf(certificate, THOUGHTS).map(
    (row) => `${row.recorded_at} ${nameOf(THOUGHTS, row)} ${row.type} by ${row.recorded_by}`,
  );
}

function seals(certificate: Certificate): string[] {
  return rowsOf(certificate, SESSIONS)
    .filter(({ status }) => status === 'finalized')
    .map(
      (row) =>
        `${nameOf(SESSIONS, row)} sealed at ${auditRow(Number(row.position))} over ${row.leaf_count} records`,
    );
}

function skills(certificate: Certificate): string[] {
  const lines = rowsOf(certificate, SESSIONS).flatMap(({ skills: list }) => {
    const { all } = members(isText(list) ? `{"all":${list}}` : undefined);
    return Array.isArray(all)
      ? all.filter(isObject).map(({ name, digest }) => `skill in force: ${name} ${digest}`)
      : [];
  });
  return [...new Set(lines)];
}

function rowsOf({ state }: Certificate, { name }: StateTable): JsonObject[] {
  return state.map(members).filter(({ table }) => table === name);
}

function nameOf(table: StateTable, { id }: JsonObject): string {
  return formatId(table, Number(id));
}
