import { sha256Hex } from '../integrity/digest.ts';
import { formatTlogProof } from '../integrity/tlog-proof.ts';
import { Frontier } from '../integrity/tree.ts';
import { chainHash, GENESIS } from '../log/row.ts';
import { parseId, SESSIONS, STATE_TABLES } from '../log/tables.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { originOfKey } from '../trust/origin.ts';
import { readHead } from '../verify/sources/carried.ts';
import { linkLine, type Marker, markerLine, payloadLine, textLine } from '../verify/sources/forms.ts';
import * as layout from '../verify/sources/layout.ts';
import { type SealFacts, sealBegin, sealEnd, sealRecord } from '../verify/sources/seal.ts';
import { type BundleTarget, openTarget } from './bundle-target.ts';
import {
  assertNotCut,
  findLogAnchors,
  type Heads,
  type LogPlace,
  newestHead,
  onlyHead,
  readHeads,
  requireHead,
  type SignedHead,
} from './heads.ts';
import { readmeText } from './readme.ts';
import { createRowProver, NotSigned, type RowProver } from './row-proofs.ts';
import { addKeyActs, type Selection, select } from './selection.ts';
import * as stored from './stored.ts';

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
  /** Rows the newest head covers. Fewer than `size`: the rest is signed by nobody. More: rows that were signed are gone. */
  readonly checkpointedThrough: number;
  /** Anchors that it carries. */
  readonly anchors: number;
}

/** The name a bundle gets where nobody gives one: which log, and how long it was. */
export async function defaultBundleName(
  storage: StorageEngine,
  session: string | undefined,
): Promise<string> {
  return await storage.read(async (tx) => {
    const log = await tx.get<{ origin: string }>('SELECT origin FROM log');
    const name = log?.origin.replace(/[^0-9a-f]/g, '').slice(-32, -16) || 'unsigned';
    return `colibri-${name}-${session ?? (await stored.countRows(tx))}.zip`;
  });
}

/**
 * Writes a bundle at `path`: a zip where the name says so, else a folder. Reads one snapshot and changes nothing in the
 * database. A log that is not what was signed is written as it is: whoever verifies the bundle finds the same in it.
 */
export async function writeBundle(
  storage: StorageEngine,
  request: BundleRequest,
  path: string,
): Promise<WrittenBundle> {
  const anchors = await findLogAnchors(storage, request);
  return await storage.read(async (tx) => {
    const heads = await readHeads(tx, anchors);
    const size = await stored.countRows(tx);
    const selected =
      request.session === undefined ? undefined : await selectProved(tx, heads, request.session, size);
    const target = await openTarget(path);
    try {
      const written = await (selected === undefined
        ? writeLog(tx, target, heads, size, request)
        : writeSelection(tx, target, selected, size));
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

/** What proves a record, and the one head that it is proved against. */
export interface Proved {
  readonly selection: Selection;
  readonly heads: Heads;
  readonly head: SignedHead;
}

export async function selectProved(tx: Reader, heads: Heads, subject: string, size: number): Promise<Proved> {
  assertNotCut(heads, size);
  const selection = await select(tx, subject);
  const head = requireHead(heads, selection.positions.at(-1) ?? 1, size);
  if (originOfKey(head.key) === heads.origin) return { selection, heads: onlyHead(heads, head), head };
  // A key that did not create the log is known by a row of the log only.
  const more = await addKeyActs(tx, selection);
  const wider = requireHead(heads, more.positions.at(-1) ?? 1, size);
  return { selection: more, heads: onlyHead(heads, wider), head: wider };
}

/** The texts that go with some rows. */
export function textsAt(tx: Reader, positions: readonly number[]) {
  return stored.textsIn(tx, stored.payloadsAt(tx, positions));
}

/** The lines of state of a selection. */
export async function* selectedState(tx: Reader, { state }: Selection): AsyncGenerator<string> {
  for (const { table, ids } of state) yield* stored.stateLinesAt(tx, table, ids);
}

async function writeLog(
  tx: Reader,
  target: BundleTarget,
  heads: Heads,
  size: number,
  { onProgress }: BundleRequest,
): Promise<WrittenBundle> {
  const tree = new Frontier();
  const last = { position: 0, chainHash: GENESIS };
  await target.write(layout.LOG, logLines());
  async function* logLines() {
    for await (const { position, text } of stored.auditRows(tx)) {
      const hash = sha256Hex(text);
      tree.add(hash);
      last.chainHash = chainHash(hash, last.chainHash);
      last.position = position;
      if (tree.size % 1_000 === 0) onProgress?.(tree.size, 2 * size);
      yield `${text}\n`;
    }
  }
  await target.write(layout.PAYLOADS, lines(stored.payloads(tx), payloadLine));
  onProgress?.(1.5 * size, 2 * size);
  await target.write(layout.TEXTS, allTexts(tx));
  await target.write(layout.STATE, allState(tx));
  await writeHeads(target, heads);
  await writeSeals(tx, target, stored.seals(tx));
  await writeSealProofs(tx, target, heads);
  const written = describe(heads, layout.WHOLE_LOG, size, size);
  const [root, chain_hash] = [tree.root(), last.chainHash];
  await writeMarker(target, written, { size: last.position, root, chain_hash });
  onProgress?.(2 * size, 2 * size);
  return written;
}

/** One session: no chain and no tree, but for every row its place and a proof. */
async function writeSelection(
  tx: Reader,
  target: BundleTarget,
  { selection, heads, head }: Proved,
  size: number,
): Promise<WrittenBundle> {
  const { positions, subject } = selection;
  const prove = createRowProver(tx, head);
  await target.write(
    layout.LOG,
    lines(stored.rowsAt(tx, positions), ({ text }) => text),
  );
  await target.write(layout.LINKS, lines(links(tx, positions), linkLine));
  await target.write(layout.PAYLOADS, lines(stored.payloadsAt(tx, positions), payloadLine));
  await target.write(layout.TEXTS, lines(textsAt(tx, positions), textLine));
  await target.write(
    layout.STATE,
    lines(selectedState(tx, selection), (line) => line),
  );
  await writeHeads(target, heads);
  await writeSeals(tx, target, sealsIn(tx, selection));
  for await (const row of stored.rowsAt(tx, positions))
    await target.write(layout.proofFile(row.position), [await proofText(prove, row, head)]);
  const written = describe(heads, subject, positions.length, size);
  await writeMarker(target, written, { size: head.size, root: head.root, chain_hash: null });
  return written;
}

function describe(heads: Heads, scope: string, rows: number, size: number): WrittenBundle {
  const checkpointedThrough = newestHead(heads)?.size ?? 0;
  return { origin: heads.origin, scope, rows, size, checkpointedThrough, anchors: heads.anchors.length };
}

/** The newest head of each key, those that were kept, the keys, and what others may hold of any of them. */
async function writeHeads(target: BundleTarget, { newest, kept, anchors }: Heads): Promise<void> {
  const keys = new Set([...newest, ...kept].map(({ key }) => key));
  await target.write(layout.KEYS, [
    [...keys]
      .sort()
      .map((key) => `${key}\n`)
      .join(''),
  ]);
  const last = newest.at(-1);
  if (last !== undefined) await target.write(layout.CHECKPOINT, [last.note]);
  for (const { keyId, note } of newest) await target.write(layout.headFile(keyId), [note]);
  for (const { keyId, size, note } of kept) await target.write(layout.keptFile(size, keyId), [note]);
  for (const { name, bytes } of anchors) await target.writeBytes(name, bytes);
}

async function writeMarker(
  target: BundleTarget,
  { scope, origin, rows }: WrittenBundle,
  log: Pick<Marker, 'size' | 'root' | 'chain_hash'>,
): Promise<void> {
  await target.write(layout.MARKER, [`${markerLine({ scope, origin: origin ?? null, rows, ...log })}\n`]);
}

async function writeSeals(tx: Reader, target: BundleTarget, seals: AsyncIterable<SealFacts>): Promise<void> {
  for await (const seal of seals) await target.write(layout.sealFile(seal.session_id), sealPieces(tx, seal));
}

async function* sealPieces(tx: Reader, seal: SealFacts): AsyncGenerator<string> {
  yield sealBegin(seal);
  let isFirst = true;
  for await (const record of stored.sealedRecords(tx, numberOf(seal), seal.sealed_task_id)) {
    yield sealRecord(record, isFirst);
    isFirst = false;
  }
  yield sealEnd(seal);
}

/** The seals of the sessions among the rows of state. */
export async function* sealsIn(tx: Reader, { state }: Selection): AsyncGenerator<SealFacts> {
  for (const id of state.find(({ table }) => table === SESSIONS)?.ids ?? []) {
    const seal = await stored.sealOf(tx, id);
    if (seal !== undefined) yield seal;
  }
}

export function numberOf({ session_id }: SealFacts): number {
  return parseId(SESSIONS, session_id) ?? 0;
}

/**
 * For each seal that the newest head covers, the proof that the log holds it. Of a log that is not what the head says there
 * is none. Whether the head itself holds is for whoever verifies.
 */
async function writeSealProofs(tx: Reader, target: BundleTarget, { newest }: Heads): Promise<void> {
  const last = newest.at(-1);
  const said = last === undefined ? undefined : readHead(last.note);
  if (last === undefined || said === undefined) return;
  const head = { ...last, size: said.size, root: said.root };
  const prove = createRowProver(tx, head);
  for await (const { session_id, position } of stored.seals(tx)) {
    if (position > head.size) continue;
    for await (const row of stored.rowsAt(tx, [position])) {
      const text = await proofText(prove, row, head).catch((error: unknown) => {
        if (error instanceof NotSigned) return undefined;
        throw error;
      });
      if (text !== undefined) await target.write(layout.proofFile(session_id), [text]);
    }
  }
}

/** The row travels along in the line for extras, so that the file alone can be checked by whoever has the key. */
async function proofText(
  prove: RowProver,
  { position, text }: stored.StoredText,
  { note }: SignedHead,
): Promise<string> {
  const proof = await prove(position, sha256Hex(text));
  return formatTlogProof({ index: position - 1, proof, checkpoint: note, extra: Buffer.from(text) });
}

/** Where each row stands, and the chain hash before it. */
async function* links(tx: Reader, positions: readonly number[]) {
  for (const position of positions) yield { position, previous: await previousHash(tx, position) };
}

export async function previousHash(tx: Reader, position: number): Promise<string> {
  if (position === 1) return GENESIS;
  const hash = await stored.chainHashBefore(tx, position);
  if (hash === undefined)
    throw new Error(`There is no audit row ${position - 1}. "colibri verify" tells more.`);
  return hash;
}

async function* allTexts(tx: Reader): AsyncGenerator<string> {
  const written = new Set<string>();
  for await (const text of stored.textsIn(tx, stored.payloads(tx))) {
    written.add(text.digest);
    yield `${textLine(text)}\n`;
  }
  yield* lines(stored.textsBeside(tx, written), textLine);
}

async function* allState(tx: Reader): AsyncGenerator<string> {
  for (const table of STATE_TABLES) yield* lines(stored.stateLines(tx, table), (line) => line);
}

async function* lines<T>(items: AsyncIterable<T>, line: (item: T) => string): AsyncGenerator<string> {
  for await (const item of items) yield `${line(item)}\n`;
}
