import type { Clock } from '../clock.ts';
import { LIMITS } from '../limits.ts';
import { formatId, parseId, SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import type { Finding } from './finding.ts';
import { PartSource, rowsBehind, type Subject } from './sources/part.ts';
import { verify } from './verify.ts';

/** Something that is not as it was written. `position` counts the records of the subject from 1; 0 is the subject itself. */
export interface BrokenLink {
  readonly position: number;
  readonly record: string;
  readonly what: string;
  readonly columns?: string[];
  readonly expected_hash: string;
  readonly actual_hash: string;
}

export interface TraceEntry {
  readonly position: number;
  readonly record: string;
  readonly hash: string;
}

/** What verifying the records of a task or a session gave. It never stops at the first break. */
export interface ChainReport {
  /** Thoughts of a task, or records of a session. */
  readonly total: number;
  /** Share of records nothing was found against, as a percentage with at most two digits behind the point. */
  readonly score: number;
  readonly broken: readonly BrokenLink[];
  readonly trace: readonly TraceEntry[];
}

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
  const source = new PartSource(tx, rows, { complete: formatId(table, subject.id) });
  const findings: Finding[] = [];
  await verify(source, {
    report: (finding) => findings.push(finding),
    now: options.clock.now(),
    keys: { trusted: [] },
    pause,
  });
  const places = new Places(tx, subject);
  const broken: BrokenLink[] = [];
  for (const finding of findings) broken.push(brokenLink(finding, await places.of(finding)));
  broken.sort((a, b) => a.position - b.position);
  const { total, trace } = await listRecords(tx, subject, options.trace, pause);
  return { total, score: scoreOf(total, broken), broken, trace };
}

/** Lets others pass when the last pause is longer ago than one slice. */
function pauseEvery(clock: Clock, pause: () => Promise<void>): () => Promise<void> {
  let last = clock.monotonic();
  return async () => {
    if (clock.monotonic() - last < LIMITS.sliceMsMax) return;
    await pause();
    last = clock.monotonic();
  };
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

/** Which record of the subject a finding speaks of. */
class Places {
  readonly #tx: Reader;
  readonly #subject: Subject;

  constructor(tx: Reader, subject: Subject) {
    this.#tx = tx;
    this.#subject = subject;
  }

  async of({ table, record, position }: Finding): Promise<number> {
    const table_ =
      table === THOUGHTS.name ? THOUGHTS : table === SESSION_RECORDS.name ? SESSION_RECORDS : undefined;
    const id = table_ === undefined ? undefined : parseId(table_, record);
    if (this.#subject.kind === 'task')
      return await this.#inTask(table_ === THOUGHTS ? id : await this.#written(THOUGHTS.prefix, position));
    return await this.#inSession(
      table_ === SESSION_RECORDS ? id : await this.#written(SESSION_RECORDS.prefix, position),
    );
  }

  async #inTask(id: number | undefined): Promise<number> {
    if (id === undefined) return 0;
    const row = await this.#tx.get<{ place: number }>(
      'SELECT CAST(chain_position AS REAL) AS place FROM thoughts WHERE id = ? AND task_id = ?',
      id,
      this.#subject.id,
    );
    if (row !== undefined) return Math.min(Math.max(row.place, 0), Number.MAX_SAFE_INTEGER);
    // It is gone, or stands under another task: behind those that were recorded before it.
    const before = await this.#tx.get<{ count: number }>(
      'SELECT count(*) AS count FROM thoughts WHERE task_id = ? AND id < ?',
      this.#subject.id,
      id,
    );
    return (before?.count ?? 0) + 1;
  }

  async #inSession(id: number | undefined): Promise<number> {
    if (id === undefined) return 0;
    const before = await this.#tx.get<{ count: number }>(
      'SELECT count(*) AS count FROM session_records WHERE session_id = ? AND id < ?',
      this.#subject.id,
      id,
    );
    return (before?.count ?? 0) + 1;
  }

  /** The record that the call of an audit row wrote. */
  async #written(prefix: string, position: number | undefined): Promise<number | undefined> {
    if (position === undefined) return undefined;
    const rows = await this.#tx.all<{ text: unknown }>(
      'SELECT text FROM actions WHERE position = ? OR (position > ? AND position <= ? AND sequence_no = ?)',
      position,
      position,
      position + CALLS_BETWEEN_MAX,
      position,
    );
    const table = prefix === THOUGHTS.prefix ? THOUGHTS : SESSION_RECORDS;
    const name = `"id":"${prefix}-`;
    for (const { text } of rows) {
      const at = String(text).indexOf(name);
      const id = at < 0 ? undefined : String(text).slice(at + 6, String(text).indexOf('"', at + 6));
      const number = id === undefined ? undefined : parseId(table, id);
      if (number !== undefined) return number;
    }
    return undefined;
  }
}

const PAGE = 500;

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
    const page: readonly Listed[] =
      kind === 'task' ? await thoughtsOf(tx, id, last) : await recordsOf(tx, id, last);
    total += page.length;
    if (isTraced)
      for (const [i, { record, hash }] of page.entries())
        trace.push({ position: total - page.length + i + 1, record, hash });
    const end = page.at(-1)?.key;
    if (end === undefined || end <= last || page.length < PAGE) return { total, trace };
    last = end;
    await pause();
  }
}

interface Listed {
  /** What the records are ordered by. */
  readonly key: number;
  readonly record: string;
  readonly hash: string;
}

async function thoughtsOf(tx: Reader, task: number, after: number): Promise<Listed[]> {
  const rows = await tx.all<{ id: number; place: number; hash: string }>(
    'SELECT id, chain_position AS place, hash FROM thoughts WHERE task_id = ? AND chain_position > ? ORDER BY chain_position LIMIT ?',
    task,
    after,
    PAGE,
  );
  return rows.map(({ id, place, hash }) => ({
    key: place,
    record: formatId(THOUGHTS, id),
    hash: String(hash),
  }));
}

async function recordsOf(tx: Reader, session: number, after: number): Promise<Listed[]> {
  const rows = await tx.all<{ id: number; kind: string; ref: number; hash: string | null }>(
    `SELECT r.id, r.kind, r.ref,
       CASE r.kind WHEN 'thought' THEN (SELECT hash FROM thoughts WHERE id = r.ref)
                   ELSE (SELECT content_hash FROM actions WHERE position = r.ref) END AS hash
     FROM session_records r JOIN sessions s ON s.id = r.session_id
     WHERE r.session_id = ? AND r.id > ? AND r.task_id = coalesce(s.sealed_task_id, r.task_id) ORDER BY r.id LIMIT ?`,
    session,
    after,
    PAGE,
  );
  return rows.map(({ id, kind, ref, hash }) => ({
    key: id,
    record: kind === 'thought' ? formatId(THOUGHTS, ref) : `#${ref}`,
    hash: hash ?? '',
  }));
}
