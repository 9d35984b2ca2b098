import { sha256Hex } from '../../integrity/digest.ts';
import { Frontier } from '../../integrity/tree.ts';
import { LIMITS } from '../../limits.ts';
import { formatId } from '../../log/state.ts';
import { SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Finding } from '../../log/verify/finding.ts';
import { checkRows, type StateRow } from '../../log/verify/state.ts';
import type { Reader } from '../../storage/engine.ts';
import { type Leaf, type StoredSession, sessionLeaves } from './sessions.ts';
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

/** The thoughts of one task: each hash, each link, each column, none missing in between. */
export async function walkTask(tx: Reader, taskId: number, options: WalkOptions): Promise<ChainReport> {
  const broken: BrokenLink[] = [];
  const trace: TraceEntry[] = [];
  await checkOwner(tx, TASKS.name, taskId, broken);
  let previous: { position: number; hash: string } = { position: 0, hash: '' };
  for (;;) {
    const page = await tx.all<ThoughtRow>(
      'SELECT * FROM thoughts WHERE task_id = ? AND chain_position > ? ORDER BY chain_position LIMIT ?',
      taskId,
      previous.position,
      PAGE,
    );
    await checkStored(tx, THOUGHTS, page, (row) => row.chain_position, broken);
    for (const thought of page) {
      checkThought(thought, thought.chain_position, broken);
      checkLink(thought, previous, broken);
      previous = { position: thought.chain_position, hash: thought.hash };
      if (options.trace)
        trace.push({
          position: thought.chain_position,
          record: formatId(THOUGHTS, thought.id),
          hash: thought.hash,
        });
    }
    if (page.length < PAGE) return { total: previous.position, broken: inOrder(broken), trace };
    await options.pause();
  }
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
  let last = 0;
  for (;;) {
    const page = await sessionLeaves(tx, session.id, session.sealed_task_id, last, PAGE);
    const positionOf = new Map(page.map((leaf, i) => [leaf.id, tree.size + i + 1]));
    await checkSessionPage(tx, page, positionOf, broken);
    for (const leaf of page) {
      tree.add(leaf.hash ?? sha256Hex(''));
      if (options.trace) trace.push({ position: tree.size, record: nameOf(leaf), hash: leaf.hash ?? '' });
      last = leaf.id;
    }
    if (page.length < PAGE) break;
    await options.pause();
  }
  checkSeal(session, tree, broken);
  return { total: tree.size, broken: inOrder(broken), trace };
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
  const changes = await tx.all<{ position: number; text: string; content_hash: string }>(
    'SELECT position, text, content_hash FROM actions WHERE position IN (SELECT value FROM json_each(?))',
    JSON.stringify([...byChange.keys()]),
  );
  for (const { position, text, content_hash } of changes) {
    const actual = sha256Hex(text);
    if (actual === content_hash) continue;
    const what = `The text of audit row ${position} or its content_hash was changed.`;
    broken.push({
      position: byChange.get(position) ?? 0,
      record: `#${position}`,
      what,
      columns: ['text', 'content_hash'],
      expected_hash: content_hash,
      actual_hash: actual,
    });
  }
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
    broken.push({
      position: row === undefined ? 0 : positionOf(row),
      record: finding.record,
      what: finding.message,
      ...(finding.columns !== undefined && { columns: [...finding.columns] }),
      expected_hash: finding.expected ?? '',
      actual_hash: finding.actual ?? '',
    });
  });
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

function checkLink(
  thought: ThoughtRow,
  previous: { position: number; hash: string },
  broken: BrokenLink[],
): void {
  const record = formatId(THOUGHTS, thought.id);
  const position = thought.chain_position;
  if (position !== previous.position + 1) {
    const missing = previous.position + 1;
    const what = `Thoughts ${missing} to ${position - 1} of the chain are missing.`;
    broken.push({
      position: missing,
      record,
      what,
      expected_hash: thought.previous_hash ?? '',
      actual_hash: '',
    });
    return;
  }
  const expected = position === 1 ? null : previous.hash;
  if (thought.previous_hash === expected) return;
  const what = `${record} does not continue the thought before it.`;
  broken.push({
    position,
    record,
    what,
    columns: ['previous_hash'],
    expected_hash: expected ?? '',
    actual_hash: thought.previous_hash ?? '',
  });
}

function checkSeal(session: StoredSession, tree: Frontier, broken: BrokenLink[]): void {
  if (session.status !== 'finalized') return;
  const root = tree.size === 0 ? '' : tree.root();
  if (root === session.merkle_root && tree.size === session.leaf_count) return;
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
