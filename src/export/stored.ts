import { sha256Hex } from '../integrity/digest.ts';
import { formatId, rowText, SESSIONS, type StateTable } from '../log/tables.ts';
import type { Reader, SqlValue } from '../storage/engine.ts';
import type { PayloadLine, TextLine } from '../verify/sources/forms.ts';
import type { SealedRecord, SealFacts } from '../verify/sources/seal.ts';

// What is read from a database to be handed out, a page at a time and as it lies: a bundle must show what is wrong with
// a log and not hide it. Hashes are made of the texts, never taken from their columns.

/** An audit row as it is handed out: the exact text. */
export interface StoredText {
  readonly position: number;
  readonly text: string;
}

const PAGE = 1_000;

/** Every audit row in order. */
export async function* auditRows(tx: Reader): AsyncGenerator<StoredText> {
  const sql = 'SELECT position, text FROM actions WHERE position > ? ORDER BY position LIMIT ?';
  yield* paged((after) => tx.all<StoredText>(sql, after, PAGE), positionIn);
}

export async function* rowsAt(tx: Reader, positions: readonly number[]): AsyncGenerator<StoredText> {
  const sql = 'SELECT position, text FROM actions WHERE position';
  yield* listed<StoredText>(tx, sql, positions, 'ORDER BY position');
}

export async function countRows(tx: Reader): Promise<number> {
  return (await tx.get<{ size: number }>('SELECT count(*) AS size FROM actions'))?.size ?? 0;
}

/** The chain hash before a row, as stored. */
export async function chainHashBefore(tx: Reader, position: number): Promise<string | undefined> {
  const sql = 'SELECT chain_hash FROM actions WHERE position = ?';
  return (await tx.get<{ chain_hash: string }>(sql, position - 1))?.chain_hash;
}

export async function* payloads(tx: Reader): AsyncGenerator<PayloadLine> {
  const sql = 'SELECT position, salt, body FROM action_payloads WHERE position > ? ORDER BY position LIMIT ?';
  yield* paged((after) => tx.all<PayloadLine>(sql, after, PAGE), positionIn);
}

export async function* payloadsAt(tx: Reader, positions: readonly number[]): AsyncGenerator<PayloadLine> {
  const sql = 'SELECT position, salt, body FROM action_payloads WHERE position';
  yield* listed<PayloadLine>(tx, sql, positions, 'ORDER BY position');
}

/** The texts that these payloads speak of, each once, in the order in which they do. */
export async function* textsIn(tx: Reader, bodies: AsyncIterable<PayloadLine>): AsyncGenerator<TextLine> {
  const known = new Set<string>();
  let wanted: string[] = [];
  for await (const { body } of bodies) {
    for (const digest of digestsIn(body)) if (!known.has(digest)) wanted.push(digest);
    for (const digest of wanted) known.add(digest);
    if (wanted.length < TEXTS_PAGE) continue;
    yield* await textsOf(tx, wanted);
    wanted = [];
  }
  yield* await textsOf(tx, wanted);
}

const TEXTS_PAGE = 400;

/** Texts that no payload speaks of. Honest logs have none. */
export async function* textsBeside(tx: Reader, written: ReadonlySet<string>): AsyncGenerator<TextLine> {
  const count = (await tx.get<{ count: number }>('SELECT count(*) AS count FROM texts'))?.count ?? 0;
  if (count === written.size) return;
  const sql = 'SELECT digest, salt, text FROM texts WHERE digest > ? ORDER BY digest LIMIT ?';
  for (let after = ''; ; ) {
    const page = await tx.all<TextLine>(sql, after, PAGE);
    yield* page.filter(({ digest }) => !written.has(digest));
    after = page.at(-1)?.digest ?? after;
    if (page.length < PAGE) return;
  }
}

/** What stands in a canonical text in the place of a text, and whatever looks like it. */
export function digestsIn(body: string): string[] {
  return Array.from(body.matchAll(/"([0-9a-f]{64})"/g), ([, digest]) => digest ?? '');
}

async function textsOf(tx: Reader, digests: readonly string[]): Promise<TextLine[]> {
  const found = new Map<string, TextLine>();
  const sql = 'SELECT digest, salt, text FROM texts WHERE digest';
  for await (const text of listed<TextLine>(tx, sql, digests, '')) found.set(text.digest, text);
  return [...new Set(digests)].flatMap((digest) => found.get(digest) ?? []);
}

/** The rows of a table as the texts whose SHA-256 the log holds. */
export async function* stateLines(tx: Reader, table: StateTable): AsyncGenerator<string> {
  const sql = `SELECT ${table.facts.join(', ')} FROM ${table.name} WHERE id > ? ORDER BY id LIMIT ?`;
  for await (const row of paged((after) => tx.all<Facts>(sql, after, PAGE), idIn))
    yield rowText(table, { ...row });
}

export async function* stateLinesAt(
  tx: Reader,
  table: StateTable,
  ids: readonly number[],
): AsyncGenerator<string> {
  const sql = `SELECT ${table.facts.join(', ')} FROM ${table.name} WHERE id`;
  for await (const row of listed<Facts>(tx, sql, ids, 'ORDER BY id')) yield rowText(table, { ...row });
}

interface Facts {
  readonly id: number;
}

type SealRow = Omit<SealFacts, 'session_id'> & { readonly id: number };

const SEAL_COLUMNS = 'id, merkle_root, leaf_count, tree_depth, position, sealed_task_id';

/** What finalizing each sealed session fixed. */
export async function* seals(tx: Reader): AsyncGenerator<SealFacts> {
  const sql = `SELECT ${SEAL_COLUMNS} FROM sessions WHERE id > ? AND status = 'finalized' ORDER BY id LIMIT ?`;
  for await (const row of paged((after) => tx.all<SealRow>(sql, after, PAGE), idIn)) yield sealFacts(row);
}

export async function sealOf(tx: Reader, session: number): Promise<SealFacts | undefined> {
  const sql = `SELECT ${SEAL_COLUMNS} FROM sessions WHERE id = ? AND status = 'finalized'`;
  const row = await tx.get<SealRow>(sql, session);
  return row === undefined ? undefined : sealFacts(row);
}

function sealFacts({ id, ...facts }: SealRow): SealFacts {
  return { ...facts, session_id: formatId(SESSIONS, id) };
}

/** The records under a seal, in order. One of which nothing is left is passed over: the seal does not fit then. */
export async function* sealedRecords(
  tx: Reader,
  session: number,
  onlyTask: number | null,
): AsyncGenerator<SealedRecord> {
  interface Leaf extends Omit<SealedRecord, 'hash'> {
    readonly id: number;
    readonly hash: string | null;
    readonly text: string | null;
  }
  const sql = `
    SELECT r.id, r.kind, r.ref, r.task_id, t.hash, a.text FROM session_records r
    LEFT JOIN thoughts t ON r.kind = 'thought' AND t.id = r.ref
    LEFT JOIN actions a ON r.kind = 'change' AND a.position = r.ref
    WHERE r.session_id = ? AND r.id > ? AND r.task_id = coalesce(?, r.task_id) ORDER BY r.id LIMIT ?`;
  const leaves = paged((after) => tx.all<Leaf>(sql, session, after, onlyTask, PAGE), idIn);
  for await (const { kind, ref, task_id, hash, text } of leaves) {
    const leaf = text === null ? hash : sha256Hex(text);
    if (leaf !== null) yield { kind, ref, task_id, hash: leaf };
  }
}

const LIST_PAGE = 200;
const LIST_MARKS = Array.from({ length: LIST_PAGE }, () => '?').join(', ');

/** Rows by a list of keys. Every page has as many marks, so that it is one statement; the last key fills it up. */
export async function* listed<T extends object>(
  tx: Reader,
  sql: string,
  keys: readonly SqlValue[],
  order: string,
): AsyncGenerator<T> {
  for (let i = 0; i < keys.length; i += LIST_PAGE) {
    const page = keys.slice(i, i + LIST_PAGE);
    const last = page.at(-1) ?? null;
    const filled = [...page, ...Array.from({ length: LIST_PAGE - page.length }, () => last)];
    yield* await tx.all<T>(`${sql} IN (${LIST_MARKS}) ${order}`, ...filled);
  }
}

const positionIn = ({ position }: { readonly position: number }) => position;
const idIn = ({ id }: { readonly id: number }) => id;

async function* paged<T>(read: (after: number) => Promise<T[]>, key: (row: T) => number): AsyncGenerator<T> {
  for (let after = 0; ; ) {
    const page = await read(after);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = key(last);
  }
}
