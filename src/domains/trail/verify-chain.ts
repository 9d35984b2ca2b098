import { isHash } from '../../integrity/digest.ts';
import { EMPTY_ROOT, Frontier } from '../../integrity/tree.ts';
import { LIMITS } from '../../limits.ts';
import { formatId } from '../../log/state.ts';
import { SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Finding } from '../../log/verify/finding.ts';
import { checkRows, type StateRow } from '../../log/verify/state.ts';
import type { Reader } from '../../storage/engine.ts';
import { faultyAuditRows } from './audit-rows.ts';
import { type LostRow, lostRows } from './lost-rows.ts';
import { movedThoughts } from './moved-thoughts.ts';
import { coversTask, type Leaf, type StoredSession, sessionLeaves } from './sessions.ts';
import { type ThoughtRow, thoughtHash } from './thoughts.ts';

/** Something that is not as it was written. `position` counts the records of the walk from 1. */
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

/** The result of one walk. It never stops at the first break. */
export interface ChainReport {
  readonly total: number;
  readonly broken: BrokenLink[];
  readonly trace: TraceEntry[];
}

/**
 * Rows read at a time. A full page that leads no further ends a walk: somebody stored numbers beyond 2^53, which are read
 * alike, and every one of them has been reported.
 */
const PAGE = 200;

export interface WalkOptions {
  /** Keep every hash for the caller, or only count. */
  readonly trace: boolean;
  /** Called between pages: other calls go first when one slice has lasted long enough. */
  readonly pause: () => Promise<void>;
}

/** Lets others pass when the last pause is longer ago than one slice. */
export function pauseEvery(monotonic: () => number, breathe: () => Promise<void>): () => Promise<void> {
  let last = monotonic();
  return async () => {
    if (monotonic() - last < LIMITS.sliceMsMax) return;
    await breathe();
    last = monotonic();
  };
}

/** The thoughts of one task: each hash, each link, each column, none missing in between or at the end. */
export async function walkTask(tx: Reader, taskId: number, options: WalkOptions): Promise<ChainReport> {
  const broken: BrokenLink[] = [];
  const trace: TraceEntry[] = [];
  await checkOwner(tx, TASKS.name, taskId, broken);
  let cursor = Number.NEGATIVE_INFINITY;
  let previous: Previous = { position: 0, hash: '' };
  let lastId = 0;
  let total = 0;
  for (;;) {
    const reached = cursor;
    const page = await tx.all<ThoughtRow>(
      'SELECT * FROM thoughts WHERE task_id = ? AND chain_position > ? ORDER BY chain_position LIMIT ?',
      taskId,
      cursor,
      PAGE,
    );
    const placeOf = new Map(page.map((row) => [row.position, placeIn(row)]));
    await checkStored(tx, THOUGHTS, page, placeIn, broken);
    await checkAuditRows(tx, placeOf, broken);
    for (const thought of page) {
      const position = placeIn(thought);
      checkThought(thought, position, broken);
      previous = checkLink(thought, previous, broken);
      if (options.trace) trace.push({ position, record: formatId(THOUGHTS, thought.id), hash: thought.hash });
      cursor = thought.chain_position;
      lastId = Math.max(lastId, thought.id);
    }
    total += page.length;
    if (page.length < PAGE || cursor <= reached) break;
    await options.pause();
  }
  for (const lost of await lostRows(tx, THOUGHTS, options.pause)) {
    if (lost.task_id !== undefined && lost.task_id !== taskId) continue;
    broken.push(
      describeLost(formatId(THOUGHTS, lost.id), lost, lost.chain_position ?? previous.position + 1),
    );
    total += 1;
  }
  for (const { finding, chain_position } of await movedThoughts(tx, taskId, lastId, options.pause)) {
    broken.push(brokenLink(finding, chain_position ?? previous.position + 1));
    total += 1;
  }
  return { total, broken: inOrder(broken), trace };
}

/** Where a thought says it stands. A forged place may be no number an answer can carry. */
function placeIn({ chain_position }: { readonly chain_position: number }): number {
  return Math.min(Math.max(chain_position, 0), Number.MAX_SAFE_INTEGER);
}

/** The records of one session, and its seal if it has one. */
export async function walkSession(
  tx: Reader,
  session: StoredSession,
  options: WalkOptions,
): Promise<ChainReport> {
  const broken: BrokenLink[] = [];
  const trace: TraceEntry[] = [];
  const tree = new Frontier();
  await checkOwner(tx, SESSIONS.name, session.id, broken);
  let last = Number.MIN_SAFE_INTEGER;
  for (;;) {
    const reached = last;
    const page = await sessionLeaves(tx, session.id, session.sealed_task_id, last, PAGE);
    const positionOf = new Map(page.map((leaf, i) => [leaf.id, tree.size + i + 1]));
    await checkSessionPage(tx, page, positionOf, broken);
    for (const leaf of page) {
      const hash = leaf.hash ?? '';
      // What is no hash was reported with its row; here it only keeps its place.
      tree.add(isHash(hash) ? hash : EMPTY_ROOT);
      if (options.trace) trace.push({ position: tree.size, record: nameOf(leaf), hash });
      last = leaf.id;
    }
    if (page.length < PAGE || last <= reached) break;
    await options.pause();
  }
  // A seal that fits proves that no record is missing; without one the log is asked.
  if (!checkSeal(session, tree, broken)) {
    await findLostRecords(tx, session, options.pause, broken);
    await findMovedRecords(tx, session, options.pause, broken);
  }
  return { total: tree.size, broken: inOrder(broken), trace };
}

/** Records of this session that were deleted. */
async function findLostRecords(
  tx: Reader,
  session: StoredSession,
  pause: () => Promise<void>,
  broken: BrokenLink[],
): Promise<void> {
  for (const lost of await lostRows(tx, SESSION_RECORDS, pause)) {
    if (!(await wasRecordOf(tx, session, lost.writtenAt, lost.task_id))) continue;
    broken.push(
      describeLost(formatId(SESSION_RECORDS, lost.id), lost, await placeAmong(tx, session, lost.id)),
    );
  }
}

/** Records of this session that now say they belong to another one. */
async function findMovedRecords(
  tx: Reader,
  session: StoredSession,
  pause: () => Promise<void>,
  broken: BrokenLink[],
): Promise<void> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await tx.all<StateRow & { readonly task_id: number }>(
      'SELECT * FROM session_records WHERE session_id <> ? AND id < ? ORDER BY id DESC LIMIT ?',
      session.id,
      before,
      PAGE,
    );
    const found: BrokenLink[] = [];
    await checkStored(tx, SESSION_RECORDS, page, (row) => row.id, found);
    for (const link of found) {
      const row = page.find(({ id }) => id === link.position);
      if (row === undefined || !(await wasRecordOf(tx, session, row.position, row.task_id))) continue;
      broken.push({ ...link, position: await placeAmong(tx, session, row.id) });
    }
    const oldest = page.at(-1);
    // An open session's row was written by its start: nothing older can be of it.
    const isPast = session.status === 'open' && oldest !== undefined && oldest.position < session.position;
    if (oldest === undefined || isPast || oldest.id >= before) return;
    before = oldest.id;
    await pause();
  }
}

/** Whether the call at this audit row must have left a record in the session, and none is there. */
async function wasRecordOf(
  tx: Reader,
  session: StoredSession,
  position: number,
  taskId: number | undefined,
): Promise<boolean> {
  const kept = await tx.get(
    'SELECT 1 AS found FROM session_records WHERE session_id = ? AND position = ? LIMIT 1',
    session.id,
    position,
  );
  const call = await tx.get<{ at: string }>('SELECT at FROM actions WHERE position = ?', position);
  if (kept !== undefined || call === undefined || call.at < session.started_at) return false;
  if (session.finalized_at !== null && call.at > session.finalized_at) return false;
  return taskId === undefined || (await coversTask(tx, session, taskId));
}

async function placeAmong(tx: Reader, session: StoredSession, recordId: number): Promise<number> {
  const before = await tx.get<{ count: number }>(
    'SELECT count(*) AS count FROM session_records WHERE session_id = ? AND id < ?',
    session.id,
    recordId,
  );
  return (before?.count ?? 0) + 1;
}

function describeLost(record: string, lost: LostRow, position: number): BrokenLink {
  const whose = lost.task_id === undefined ? ' What it belonged to can no longer be told.' : '';
  const what = `${record} was written by audit row ${lost.writtenAt} and is gone.${whose}`;
  return { position, record, what, expected_hash: lost.hash ?? '', actual_hash: '' };
}

async function checkSessionPage(
  tx: Reader,
  page: readonly Leaf[],
  positionOf: ReadonlyMap<number, number>,
  broken: BrokenLink[],
): Promise<void> {
  const ids = JSON.stringify(page.map((leaf) => leaf.id));
  const records = await tx.all<StateRow>(
    'SELECT * FROM session_records WHERE id IN (SELECT value FROM json_each(?))',
    ids,
  );
  await checkStored(tx, SESSION_RECORDS, records, (row) => positionOf.get(row.id) ?? 0, broken);

  const byThought = new Map(
    page.filter((leaf) => leaf.kind === 'thought').map((leaf) => [leaf.ref, positionOf.get(leaf.id) ?? 0]),
  );
  const thoughts = await tx.all<ThoughtRow>(
    'SELECT * FROM thoughts WHERE id IN (SELECT value FROM json_each(?))',
    JSON.stringify([...byThought.keys()]),
  );
  await checkStored(tx, THOUGHTS, thoughts, (row) => byThought.get(row.id) ?? 0, broken);
  for (const thought of thoughts) checkThought(thought, byThought.get(thought.id) ?? 0, broken);

  const byChange = new Map(
    page.filter((leaf) => leaf.kind === 'change').map((leaf) => [leaf.ref, positionOf.get(leaf.id) ?? 0]),
  );
  const written = records.map((row): [number, number] => [row.position, positionOf.get(row.id) ?? 0]);
  await checkAuditRows(tx, new Map([...written, ...byChange]), broken);
  for (const leaf of page) {
    if (leaf.hash !== null) continue;
    broken.push({
      position: positionOf.get(leaf.id) ?? 0,
      record: nameOf(leaf),
      what: `${nameOf(leaf)} is gone.`,
      expected_hash: '',
      actual_hash: '',
    });
  }
}

/** The audit rows behind the records, each with the place of its record. */
async function checkAuditRows(
  tx: Reader,
  placeOf: ReadonlyMap<number, number>,
  broken: BrokenLink[],
): Promise<void> {
  for (const { position, columns, expected, actual } of await faultyAuditRows(tx, placeOf.keys())) {
    broken.push({
      position: placeOf.get(position) ?? 0,
      record: `#${position}`,
      what: `Audit row ${position} is not as it was written: ${columns.join(' or ')} was changed.`,
      columns,
      expected_hash: expected,
      actual_hash: actual,
    });
  }
}

/** The row the chain belongs to: the task, or the session with its seal. */
async function checkOwner(
  tx: Reader,
  name: 'tasks' | 'sessions' | string,
  id: number,
  broken: BrokenLink[],
): Promise<void> {
  const table = name === TASKS.name ? TASKS : SESSIONS;
  const columns = (await tx.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', table.name)).map(
    (column) => column.name,
  );
  const rows = await tx.all<StateRow>(`SELECT ${columns.join(', ')} FROM ${table.name} WHERE id = ?`, id);
  await checkStored(tx, table, rows, () => 0, broken);
  await checkAuditRows(tx, new Map(rows.map((row) => [row.position, 0])), broken);
}

/** Compares stored rows with what the log says was written, and names the columns that differ. */
async function checkStored<R extends { readonly id: number; readonly position: number }>(
  tx: Reader,
  table: Parameters<typeof checkRows>[1],
  rows: readonly R[],
  positionOf: (row: R) => number,
  broken: BrokenLink[],
): Promise<void> {
  const byRecord = new Map(rows.map((row) => [formatId(table, row.id), row]));
  await checkRows(tx, table, rows as unknown as StateRow[], (finding: Finding) => {
    const row = byRecord.get(finding.record);
    broken.push(brokenLink(finding, row === undefined ? 0 : positionOf(row)));
  });
}

function brokenLink({ record, message, columns, expected, actual }: Finding, position: number): BrokenLink {
  return {
    position,
    record,
    what: message,
    ...(columns !== undefined && { columns: [...columns] }),
    expected_hash: expected ?? '',
    actual_hash: actual ?? '',
  };
}

function checkThought(thought: ThoughtRow, position: number, broken: BrokenLink[]): void {
  const actual = thoughtHash(thought);
  if (actual === thought.hash) return;
  const record = formatId(THOUGHTS, thought.id);
  broken.push({
    position,
    record,
    what: `The hash of ${record} does not fit its content.`,
    expected_hash: actual,
    actual_hash: thought.hash,
  });
}

/** The last thought whose place in the chain can be right. */
interface Previous {
  readonly position: number;
  readonly hash: string;
}

/** Checks that a thought continues the one before it; it is the one before the next. */
function checkLink(thought: ThoughtRow, previous: Previous, broken: BrokenLink[]): Previous {
  const record = formatId(THOUGHTS, thought.id);
  const position = placeIn(thought);
  const due = previous.position + 1;
  // Below 1 no thought ever stood; that the column was changed is known from the whole row.
  if (position < due) return previous;
  if (position > due) {
    const missing = position === due + 1 ? `Thought ${due} is` : `Thoughts ${due} to ${position - 1} are`;
    const what = `${missing} missing from the chain before ${record}.`;
    broken.push({
      position: due,
      record,
      what,
      expected_hash: thought.previous_hash ?? '',
      actual_hash: '',
    });
  } else if (thought.previous_hash !== (position === 1 ? null : previous.hash)) {
    broken.push({
      position,
      record,
      what: `${record} does not continue the thought before it.`,
      columns: ['previous_hash'],
      expected_hash: previous.hash,
      actual_hash: thought.previous_hash ?? '',
    });
  }
  return { position, hash: thought.hash };
}

/** Whether the session has a seal and its records give it. */
function checkSeal(session: StoredSession, tree: Frontier, broken: BrokenLink[]): boolean {
  if (session.status !== 'finalized') return false;
  const root = tree.root();
  if (root === session.merkle_root && tree.size === session.leaf_count) return true;
  const record = formatId(SESSIONS, session.id);
  const what = `The records of ${record} do not give its sealed root (${tree.size} records, ${session.leaf_count} sealed).`;
  broken.push({
    position: tree.size,
    record,
    what,
    columns: ['merkle_root', 'leaf_count'],
    expected_hash: root,
    actual_hash: session.merkle_root ?? '',
  });
  return false;
}

function nameOf(leaf: Leaf): string {
  return leaf.kind === 'thought' ? formatId(THOUGHTS, leaf.ref) : `#${leaf.ref}`;
}

function inOrder(broken: BrokenLink[]): BrokenLink[] {
  return broken.sort((a, b) => a.position - b.position);
}

/** Share of records nothing was found against, as a percentage with at most two digits behind the point. */
export function integrityScore({ total, broken }: ChainReport): number {
  if (broken.length === 0) return 100;
  const bad = new Set(broken.map((link) => link.position)).size;
  const records = Math.max(total, bad);
  return Math.floor(((records - bad) / records) * 10_000) / 100;
}
