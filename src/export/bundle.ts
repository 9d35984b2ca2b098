import { type StoredSession, sessionId, sessionLeaves } from '../domains/trail/index.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { formatTlogProof } from '../integrity/tlog-proof.ts';
import { Frontier } from '../integrity/tree.ts';
import { GENESIS } from '../log/row.ts';
import { formatId } from '../log/state.ts';
import { SESSIONS, STATE_TABLES, TASKS } from '../log/tables.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { type BundleTarget, openTarget } from './bundle-target.ts';
import { type Heads, type LogPlace, readHeads, type SignedHead } from './heads.ts';
import * as layout from './layout.ts';
import { readmeText } from './readme.ts';
import { createRowProver, type RowProver } from './row-proofs.ts';
import { type SealedRecord, type SealFacts, sealBegin, sealEnd, sealRecord } from './seal.ts';
import { type Selection, select } from './selection.ts';
import {
  auditRows,
  payloadLine,
  payloads,
  type StoredPayload,
  type StoredText,
  stateLines,
} from './stored.ts';

export interface BundleRequest extends LogPlace {
  /** Export only this session. */
  readonly session?: string | undefined;
  /** The page that checks bundles in a browser, to lie in this one as verify.html. */
  readonly page?: string | undefined;
  readonly onProgress?: (done: number, total: number) => void;
}

export interface WrittenBundle {
  readonly origin: string | undefined;
  /** `log`, or the session. */
  readonly scope: string;
  /** Audit rows in the bundle. */
  readonly rows: number;
  /** Audit rows of the log. */
  readonly size: number;
  /** Rows the newest checkpoint covers. The rest is in the bundle and signed by nobody yet. */
  readonly checkpointedThrough: number;
  /** Anchors that it carries. */
  readonly anchors: number;
}

/** The name a bundle gets where nobody gives one: which log, and how long it was. */
export async function defaultBundleName(
  storage: StorageEngine,
  session: string | undefined,
): Promise<string> {
  const ends = await storage.read((tx) =>
    tx.get<{ first: string | null; size: number }>(
      'SELECT (SELECT content_hash FROM actions WHERE position = 1) AS first, count(*) AS size FROM actions',
    ),
  );
  const log = ends?.first?.slice(0, 16) ?? 'empty';
  return `colibri-${log}-${session ?? ends?.size ?? 0}.zip`;
}

/** Writes a bundle at `path`: a zip where the name says so, else a folder. Reads one snapshot and changes nothing in the database. */
export async function writeBundle(
  storage: StorageEngine,
  request: BundleRequest,
  path: string,
): Promise<WrittenBundle> {
  const heads = await storage.read((tx) => readHeads(tx, request));
  const { session } = request;
  return await storage.read(async (tx) => {
    const selection = session === undefined ? undefined : await select(tx, session);
    const size = (await tx.get<{ size: number }>('SELECT count(*) AS size FROM actions'))?.size ?? 0;
    assertNotCut(heads, size);
    const target = openTarget(path);
    try {
      const written = await (selection === undefined
        ? writeLog(tx, target, heads, size, request)
        : writeSelection(tx, target, heads, size, selection));
      if (request.page !== undefined) await target.write(layout.PAGE, [request.page]);
      await target.write(layout.README, [readmeText(written, request.page !== undefined)]);
      await target.finish();
      return written;
    } catch (error) {
      target.abandon();
      throw error;
    }
  });
}

/**
 * The checkpoint that rows are proved against, which must reach as far as they do. The oldest one that is anchored says
 * most; where none is, the newest.
 */
export function requireHead({ key, checkpoints, anchors }: Heads, through: number, size: number): SignedHead {
  const head = anchors.find((anchor) => anchor.head.size >= through)?.head ?? checkpoints.at(-1);
  if (key === undefined || head === undefined)
    throw new Error('The log has no checkpoint by a key of this user. Run "colibri checkpoint" first.');
  if (head.size < through)
    throw new Error(
      `Audit row ${through} of ${size} is not covered by a checkpoint yet: the newest covers ${head.size}. Run "colibri checkpoint" first.`,
    );
  return head;
}

export function assertNotCut({ checkpoints }: Heads, size: number): void {
  const signed = checkpoints.at(-1)?.size ?? 0;
  if (signed > size)
    throw new Error(
      `The log has ${size} audit rows, but ${signed} were signed: its newest rows are gone. "colibri verify" tells more.`,
    );
}

async function writeLog(
  tx: Reader,
  target: BundleTarget,
  heads: Heads,
  size: number,
  { onProgress }: BundleRequest,
): Promise<WrittenBundle> {
  const tree = new Frontier();
  let chainHash = GENESIS;
  await target.write(layout.LOG, textsOf());
  async function* textsOf() {
    for await (const row of auditRows(tx)) {
      tree.add(row.content_hash);
      chainHash = row.chain_hash;
      if (tree.size % 1_000 === 0) onProgress?.(tree.size, 2 * size);
      yield `${row.text}\n`;
    }
  }
  await target.write(layout.PAYLOADS, payloadLines(payloads(tx)));
  onProgress?.(1.5 * size, 2 * size);
  await target.write(layout.STATE, allState(tx));
  for (const older of heads.checkpoints.slice(0, -1))
    await target.write(layout.olderCheckpoint(older.size), [older.note]);
  await writeHead(target, heads);
  await writeSeals(tx, target, undefined);
  const head = heads.checkpoints.at(-1);
  if (head !== undefined) await writeSealProofs(tx, target, head);
  const written = describe(heads, 'log', size, size);
  await writeMarker(target, written, tree.root(), chainHash);
  onProgress?.(2 * size, 2 * size);
  return written;
}

/** One session: no chain and no tree, but a proof for every row. */
async function writeSelection(
  tx: Reader,
  target: BundleTarget,
  heads: Heads,
  size: number,
  selection: Selection,
): Promise<WrittenBundle> {
  const head = requireHead(heads, selection.positions.at(-1) ?? 0, size);
  const shown = onlyHead(heads, head);
  const prove = createRowProver(tx, head);
  await target.write(
    layout.LOG,
    mapped(rowsAt(tx, selection.positions), ({ text }) => `${text}\n`),
  );
  await target.write(layout.PAYLOADS, payloadLines(payloadsAt(tx, selection.positions)));
  await target.write(layout.STATE, selectedState(tx, selection));
  await writeHead(target, shown);
  await writeSeals(tx, target, selection.sessions);
  for await (const row of rowsAt(tx, selection.positions))
    await target.write(layout.proofFile(row.position), [await proofText(prove, row, head)]);
  const written = describe(shown, selection.subject, selection.positions.length, size);
  await writeMarker(target, written, null, null);
  return written;
}

function describe(heads: Heads, scope: string, rows: number, size: number): WrittenBundle {
  const checkpointedThrough = heads.checkpoints.at(-1)?.size ?? 0;
  return { origin: heads.origin, scope, rows, size, checkpointedThrough, anchors: heads.anchors.length };
}

/** Without the rows between, one head is all that can be compared. */
export function onlyHead(heads: Heads, head: SignedHead): Heads {
  const anchors = heads.anchors.filter((anchor) => anchor.head === head);
  return { ...heads, checkpoints: [head], anchors };
}

/** The newest checkpoint, the key, and what others may hold of any of the checkpoints. */
async function writeHead(target: BundleTarget, { key, checkpoints, anchors }: Heads): Promise<void> {
  const head = checkpoints.at(-1);
  if (key !== undefined) await target.write(layout.KEY, [`${key}\n`]);
  if (head !== undefined) await target.write(layout.CHECKPOINT, [head.note]);
  for (const { name, bytes } of anchors) await target.writeBytes(name, bytes);
}

async function writeMarker(
  target: BundleTarget,
  written: WrittenBundle,
  root: string | null,
  chainHash: string | null,
): Promise<void> {
  const marker = {
    kind: layout.BUNDLE_KIND,
    version: layout.BUNDLE_VERSION,
    scope: written.scope,
    origin: written.origin ?? null,
    rows: written.rows,
    checkpointed: written.checkpointedThrough,
    root,
    chain_hash: chainHash,
  };
  await target.write(layout.MARKER, [`${canonicalJson(marker)}\n`]);
}

/** The seals of all finalized sessions, or of some. */
async function writeSeals(
  tx: Reader,
  target: BundleTarget,
  only: readonly number[] | undefined,
): Promise<void> {
  for await (const session of finalizedSessions(tx)) {
    if (only !== undefined && !only.includes(session.id)) continue;
    const facts = sealFacts(session);
    await target.write(layout.sealFile(facts.session_id), sealLines(tx, session, facts));
  }
}

async function* sealLines(tx: Reader, session: StoredSession, facts: SealFacts): AsyncGenerator<string> {
  yield sealBegin(facts);
  let isFirst = true;
  for await (const record of sealedRecords(tx, session)) {
    yield sealRecord(record, isFirst);
    isFirst = false;
  }
  yield `${sealEnd(facts)}\n`;
}

/** The records under a seal, in order. */
export async function* sealedRecords(tx: Reader, session: StoredSession): AsyncGenerator<SealedRecord> {
  let after = 0;
  for (;;) {
    const page = await sessionLeaves(tx, session.id, session.sealed_task_id, after, PAGE);
    for (const { id, kind, ref, task_id, hash } of page) {
      yield { kind, ref, task_id, hash: hash ?? GENESIS };
      after = id;
    }
    if (page.length < PAGE) return;
  }
}

function sealFacts(session: StoredSession): SealFacts {
  return {
    session_id: sessionId(session),
    merkle_root: session.merkle_root ?? GENESIS,
    leaf_count: session.leaf_count ?? 0,
    tree_depth: session.tree_depth ?? 0,
    position: session.position,
    sealed_task_id: session.sealed_task_id === null ? null : formatId(TASKS, session.sealed_task_id),
  };
}

/** For each seal that the checkpoint covers, the proof that the log holds it. */
async function writeSealProofs(tx: Reader, target: BundleTarget, head: SignedHead): Promise<void> {
  const prove = createRowProver(tx, head);
  for await (const session of finalizedSessions(tx)) {
    if (session.position > head.size) continue;
    for await (const row of rowsAt(tx, [session.position]))
      await target.write(layout.proofFile(sessionId(session)), [await proofText(prove, row, head)]);
  }
}

/** The row travels along in the line for extras, so that the file alone can be checked by whoever has the key. */
async function proofText(prove: RowProver, row: StoredText, head: SignedHead): Promise<string> {
  const { position, content_hash, text } = row;
  const proof = await prove(position, content_hash);
  return formatTlogProof({ index: position - 1, proof, checkpoint: head.note, extra: Buffer.from(text) });
}

const PAGE = 500;

async function* finalizedSessions(tx: Reader): AsyncGenerator<StoredSession> {
  let after = 0;
  for (;;) {
    const page = await tx.all<StoredSession>(
      `SELECT * FROM ${SESSIONS.name} WHERE id > ? AND status = 'finalized' ORDER BY id LIMIT ?`,
      after,
      PAGE,
    );
    yield* page;
    after = page.at(-1)?.id ?? after;
    if (page.length < PAGE) return;
  }
}

async function* allState(tx: Reader): AsyncGenerator<string> {
  for (const table of STATE_TABLES) yield* mapped(stateLines(tx, table), (line) => `${line}\n`);
}

export async function* selectedState(tx: Reader, { state }: Selection): AsyncGenerator<string> {
  for (const { table, ids } of state) {
    const only = { where: 'id IN (SELECT value FROM json_each(?))', params: [JSON.stringify(ids)] };
    yield* mapped(stateLines(tx, table, only), (line) => `${line}\n`);
  }
}

export async function* rowsAt(tx: Reader, positions: readonly number[]): AsyncGenerator<StoredText> {
  const sql =
    'SELECT position, text, content_hash, chain_hash FROM actions WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position';
  for (let i = 0; i < positions.length; i += PAGE)
    yield* await tx.all<StoredText>(sql, JSON.stringify(positions.slice(i, i + PAGE)));
}

export async function* payloadsAt(tx: Reader, positions: readonly number[]): AsyncGenerator<StoredPayload> {
  const sql =
    'SELECT position, salt, body FROM action_payloads WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position';
  for (let i = 0; i < positions.length; i += PAGE)
    yield* await tx.all<StoredPayload>(sql, JSON.stringify(positions.slice(i, i + PAGE)));
}

async function* payloadLines(rows: AsyncIterable<StoredPayload>): AsyncGenerator<string> {
  yield* mapped(rows, (row) => `${payloadLine(row)}\n`);
}

async function* mapped<T>(items: AsyncIterable<T>, line: (item: T) => string): AsyncGenerator<string> {
  for await (const item of items) yield line(item);
}
