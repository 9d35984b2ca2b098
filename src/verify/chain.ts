import { type Clock, pauseEvery } from '../clock.ts';
import { idsFrom, type Leaf } from '../domains/lookup.ts';
import type { BrokenLink, TraceEntry } from '../domains/trail/schema.ts';
import type { ChainReport, Subject } from '../domains/trail/tools.ts';
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
import { inPages, PAGE } from './sources/database-cells.ts';
import { PartSource, rowsBehind } from './sources/part.ts';
import { verify } from './verify.ts';

export interface ChainOptions {
  /** Also list every hash. */
  readonly trace: boolean;
  readonly clock: Clock;
  readonly pause?: () => Promise<void>;
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
  if (findings.length > 0) {
    const placeOf = await placesOf(tx, subject);
    for (const finding of findings) broken.push(brokenLink(finding, await placeOf(finding)));
  }
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

/** Tells which record of the subject a finding is about, counted from 1; 0 where it is none of them. */
async function placesOf(tx: Reader, { kind, id: subject }: Subject) {
  const records = kind === 'task' ? THOUGHTS : SESSION_RECORDS;
  const sql = `SELECT id FROM ${records.name} WHERE ${kind}_id = ? ORDER BY id`;
  const ids = await idsFrom(tx, sql, subject);
  const places = new Map(ids.map((id, i) => [id, i + 1]));
  return async ({ table, record, position }: Finding): Promise<number> => {
    const id = table === records.name ? parseId(records, record) : await writtenBy(tx, records, position);
    // One that is gone, or that says it is of another subject, comes behind those that were recorded before it.
    return id === undefined ? 0 : (places.get(id) ?? ids.filter((one) => one < id).length + 1);
  };
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

/** What is selected of the records of a subject, and the key that they are in order of. */
const LISTS: Readonly<Record<Subject['kind'], readonly [select: string, key: string]>> = {
  task: [
    "SELECT chain_position, 'thought' AS kind, id AS ref, hash FROM thoughts WHERE task_id = ? AND",
    'chain_position',
  ],
  session: [
    `SELECT id, kind, ref,
       CASE kind WHEN 'thought' THEN (SELECT hash FROM thoughts WHERE id = r.ref)
                 ELSE (SELECT content_hash FROM audit_rows WHERE position = r.ref) END AS hash
     FROM session_records r WHERE session_id = ?
       AND task_id = coalesce((SELECT sealed_task_id FROM sessions WHERE id = r.session_id), task_id) AND`,
    'id',
  ],
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
  for await (const { kind: of, ref, hash } of inPages<Leaf>(tx, ...LISTS[kind], [id])) {
    total += 1;
    const record = of === 'thought' ? formatId(THOUGHTS, ref) : auditRow(ref);
    if (isTraced) trace.push({ position: total, record, hash: String(hash ?? '') });
    if (total % PAGE === 0) await pause();
  }
  return { total, trace };
}
