import * as z from 'zod';
import type { AuditRow } from '../log/row.ts';
import { formatId } from '../log/state.ts';
import { THOUGHTS } from '../log/tables.ts';
import type { Certificate } from './certificate.ts';
import { asSession, asThought, readAuditRow, readWritten } from './formats.ts';

/** What a certificate shows, for people. It stands nowhere in the file, so nobody can make it say something else. */
export interface Summary {
  readonly skills: readonly { readonly digest: string; readonly name: string }[];
  readonly thoughts: readonly {
    readonly at: string;
    readonly by: string;
    readonly position: number;
    readonly record: string;
    readonly type: string;
  }[];
  readonly transitions: readonly Transition[];
}

interface Transition {
  readonly at: string;
  readonly by: string;
  readonly from: string | null;
  readonly position: number;
  readonly to: string;
}

/** A call that ended well, with what it was given and what it answered, as far as a certificate shows it. */
export interface ShownCall {
  readonly enter: AuditRow | undefined;
  readonly exit: AuditRow;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: Readonly<Record<string, unknown>>;
}

type Evidence = Pick<Certificate, 'log' | 'payloads' | 'proofs' | 'state' | 'subject'>;

/** Works the summary out from the rows. Reads strangers' certificates too: what makes no sense is left out. */
export function summarize(evidence: Evidence): Summary {
  const written = evidence.state.map(readWritten).filter((row) => row !== undefined);
  const skills = new Map<string, { digest: string; name: string }>();
  for (const session of written.map(asSession))
    for (const { digest, name } of readSkills(session?.skills))
      skills.set(`${name} ${digest}`, { digest, name });
  const thoughts = written
    .map(asThought)
    .filter((thought) => thought !== undefined)
    .map(({ id, recorded_at, recorded_by, type, position }) => ({
      at: recorded_at,
      by: recorded_by,
      position: Number(position),
      record: formatId(THOUGHTS, id),
      type,
    }));
  return { skills: [...skills.values()], thoughts, transitions: transitionsOf(evidence) };
}

/** Each step of the task the certificate is about, as the results of its calls say it. */
function transitionsOf(evidence: Evidence): Transition[] {
  const transitions: Transition[] = [];
  for (const { exit, result } of shownCalls(evidence)) {
    const step = readStep(exit.tool, result);
    if (step !== undefined && result.task_id === evidence.subject)
      transitions.push({ ...step, position: exit.position });
  }
  return transitions;
}

/** The audit rows of a certificate, each with what belongs to it. */
export function rowsOf({ log, payloads, proofs }: Pick<Certificate, 'log' | 'payloads' | 'proofs'>) {
  const beside = new Map(payloads.map((payload) => [payload.position, payload]));
  return log.map((text, i) => {
    const row = readAuditRow(text);
    const payload = row === undefined ? undefined : beside.get(row.position);
    return { text, row, payload, proof: proofs[i] ?? [] };
  });
}

export function shownCalls(evidence: Pick<Certificate, 'log' | 'payloads' | 'proofs'>): ShownCall[] {
  const entered = new Map<number, { row: AuditRow; args: ShownCall['args'] }>();
  const calls: ShownCall[] = [];
  for (const { row, payload } of rowsOf(evidence)) {
    const value = readObject(payload?.body);
    if (row?.stage === 'enter') entered.set(row.position, { row, args: value });
    if (row?.stage !== 'exit' || row.outcome !== 'ok') continue;
    const enter = entered.get(row.sequence_no);
    calls.push({ enter: enter?.row, exit: row, args: enter?.args ?? {}, result: value });
  }
  return calls;
}

const Created = z.looseObject({ status: z.string(), created_at: z.string(), created_by: z.string() });
const Moved = z.looseObject({
  previous_status: z.string(),
  status: z.string(),
  updated_at: z.string(),
  updated_by: z.string(),
});

function readStep(tool: string, result: ShownCall['result']): Omit<Transition, 'position'> | undefined {
  if (tool === 'task_create') {
    const made = Created.safeParse(result).data;
    return made && { at: made.created_at, by: made.created_by, from: null, to: made.status };
  }
  const moved = tool === 'task_update' ? Moved.safeParse(result).data : undefined;
  return (
    moved && { at: moved.updated_at, by: moved.updated_by, from: moved.previous_status, to: moved.status }
  );
}

const Skills = z.array(z.looseObject({ digest: z.string(), name: z.string() }));

function readSkills(text: string | undefined): z.output<typeof Skills> {
  return Skills.safeParse(parse(text)).data ?? [];
}

function readObject(text: string | undefined): Readonly<Record<string, unknown>> {
  return z.record(z.string(), z.unknown()).safeParse(parse(text)).data ?? {};
}

function parse(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return undefined;
  }
}
