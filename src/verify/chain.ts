import { type Clock, pauseEvery } from '../clock.ts';
import type { BrokenLink, TraceEntry } from '../domains/trail/schema.ts';
import type { ChainReport } from '../domains/trail/tools.ts';
import {
  formatId,
  parseId,
  SESSION_RECORDS,
  SESSIONS,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import { auditRow, type Finding } from './finding.ts';
import { PartSource, rowsBehind, type Subject } from './sources/part.ts';
import { verify } from './verify.ts';

export interface ChainOptions {
  /** Also list every hash. */
  readonly trace: boolean;
  /** Lets others go first; called when a slice has lasted long enough. */
  readonly pause: () => Promise<void>;
  readonly clock: Clock;
}

/** Verifies what a task or a session rests on: its audit rows, its records, and whether the rules allow what they say. */
export async function verifyChain(tx: Reader, subject: Subject, options: ChainOptions): Promise<ChainReport> {
  const pause = pauseEvery(options.clock, options.pause);
  const table = subject.kind === 'task' ? TASKS : SESSIONS;
  const rows = await rowsBehind(tx, table, subject.id, { around: true, pause });
  const source = new PartSource(tx, rows, { complete: formatId(table, subject.id), pause });
  const findings: Finding[] = [];
  await verify(source, {
    report: (finding) => findings.push(finding),
    now: options.clock.now(),
    keys: { trusted: [] },
    pause,
  });
  const broken: BrokenLink[] = [];
  for (const finding of findings) broken.push(brokenLink(finding, await placeOf(tx, subject, finding)));
  broken.sort((a, b) => a.position - b.position);
  const { total, trace } = await listRecords(tx, subject, options.trace, pause);
  return { total, score: scoreOf(total, broken), broken, trace };
}

function brokenLink({ record, message, columns, expected, actual }: Finding, position: number): BrokenLink {
  return {
    position,
    record,
    what: message,
    ...(columns !== undefined && columns.length > 0 && { columns: [...columns] }),
    expected_hash: expected ?? '',
    actual_hash: actual ?? '',
  };
}

function scoreOf(total: number, broken: readonly BrokenLink[]): number {
  if (broken.length === 0) return 100;
  const bad = new Set(broken.map((link) => link.position)).size;
  const records = Math.max(total, bad);
  return Math.floor(((records - bad) / records) * 10_000) / 100;
}

/** How far behind its enter row the exit row of a call is looked for. */
const CALLS_BETWEEN_MAX = 128;

/** Which record of the subject a finding is about, counted from 1; 0 where it is none of them. */
async function placeOf(tx: Reader, { kind, id: subject }: Subject, finding: Finding): Promise<number> {
  const records = kind === 'task' ? THOUGHTS : SESSION_RECORDS;
  const id =
    finding.table === records.name
      ? parseId(records, finding.record)
      : await writtenBy(tx, records, finding.position);
  if (id === undefined) return 0;
  if (kind === 'task') {
    const row = await tx.get<{ place: number }>(
      'SELECT CAST(chain_position AS REAL) AS place FROM thoughts WHERE id = ? AND task_id = ?',
      id,
      subject,
    );
    if (row !== undefined) return Math.min(Math.max(row.place, 0), Number.MAX_SAFE_INTEGER);
  }
  // A thought that is gone or stands under another task comes behind those that were recorded before it.
  const column = kind === 'task' ? 'task_id' : 'session_id';
  const before = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM ${records.name} WHERE ${column} = ? AND id < ?`,
    subject,
    id,
  );
  return (before?.count ?? 0) + 1;
}

/** The record that the call of an audit row wrote. */
async function writtenBy(
  tx: Reader,
  table: StateTable,
  position: number | undefined,
): Promise<number | undefined> {
  if (position === undefined) return undefined;
  const rows = await tx.all<{ text: unknown }>(
    'SELECT text FROM audit_rows WHERE position = ? OR (position > ? AND position <= ? AND sequence_no = ?)',
    position,
    position,
    position + CALLS_BETWEEN_MAX,
    position,
  );
  const written = new RegExp(`"id":"(${table.prefix}-[^"]*)"`);
  for (const { text } of rows) {
    const number = parseId(table, written.exec(String(text))?.[1] ?? '');
    if (number !== undefined) return number;
  }
  return undefined;
}

const PAGE = 500;

interface Listed {
  /** What the records are ordered by. */
  readonly key: number;
  readonly kind: string;
  readonly ref: number;
  readonly hash: string | null;
}

const LISTS: Readonly<Record<Subject['kind'], string>> = {
  task: `SELECT chain_position AS key, 'thought' AS kind, id AS ref, hash FROM thoughts
     WHERE task_id = ? AND chain_position > ? ORDER BY chain_position LIMIT ?`,
  session: `SELECT r.id AS key, r.kind, r.ref,
       CASE r.kind WHEN 'thought' THEN (SELECT hash FROM thoughts WHERE id = r.ref)
                   ELSE (SELECT content_hash FROM audit_rows WHERE position = r.ref) END AS hash
     FROM session_records r JOIN sessions s ON s.id = r.session_id
     WHERE r.session_id = ? AND r.id > ? AND r.task_id = coalesce(s.sealed_task_id, r.task_id) ORDER BY r.id LIMIT ?`,
};

/** The records as they are stored now, in their order, each with its hash. */
async function listRecords(
  tx: Reader,
  { kind, id }: Subject,
  isTraced: boolean,
  pause: () => Promise<void>,
): Promise<{ readonly total: number; readonly trace: TraceEntry[] }> {
  const trace: TraceEntry[] = [];
  let total = 0;
  for (let last = Number.MIN_SAFE_INTEGER; ; ) {
    const page = await tx.all<Listed>(LISTS[kind], id, last, PAGE);
    if (isTraced)
      for (const [i, { kind: of, ref, hash }] of page.entries()) {
        const record = of === 'thought' ? formatId(THOUGHTS, ref) : auditRow(ref);
        trace.push({ position: total + i + 1, record, hash: String(hash ?? '') });
      }
    total += page.length;
    const end = page.at(-1)?.key;
    if (end === undefined || end <= last || page.length < PAGE) return { total, trace };
    last = end;
    await pause();
  }
}
