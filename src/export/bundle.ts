import { canonicalJson } from '../integrity/canonical-json.ts';
import { formatTlogProof } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { Frontier } from '../integrity/tree.ts';
import { formatId, rowText, SESSIONS, STATE_TABLES } from '../log/tables.ts';
import type { Reader, Row, StorageEngine } from '../storage/engine.ts';
import { headIn } from '../trust/opening.ts';
import { inPages } from '../verify/sources/database-cells.ts';
import * as forms from '../verify/sources/forms.ts';
import { PartSource } from '../verify/sources/part.ts';
import { isIncluded } from '../verify/sources/proofs.ts';
import { type BundleTarget, openTarget } from './files.ts';
import { countRows, findLogAnchors, type Heads, type LogPlace, newestHead, readHeads } from './heads.ts';
import { readmeText } from './readme.ts';

export interface BundleRequest extends LogPlace {
  /** The page that checks bundles in a browser, added as verify.html. */
  readonly page?: string | undefined;
  /** The scripts that check bundles without Colibri, by name in the bundle. */
  readonly scripts?: ReadonlyMap<string, string> | undefined;
  readonly onProgress?: (done: number, total: number) => void;
}

/** Rows beyond `checkpointedThrough` are signed by nobody. Where it is more than `size`, rows that were signed are gone. */
export type WrittenBundle = Awaited<ReturnType<typeof writeBundle>>;

/** The name a bundle gets where nobody gives one: which log, and how long it was. */
export async function defaultBundleName(storage: StorageEngine): Promise<string> {
  return await storage.read(async (tx) => {
    const log = await tx.get<{ origin: string }>('SELECT origin FROM log');
    const name = log?.origin.replace(/[^0-9a-f]/g, '').slice(-32, -16) || 'unsigned';
    return `colibri-${name}-${await countRows(tx)}.zip`;
  });
}

/**
 * Writes a bundle at `path`: a zip where the name says so, else a folder. Reads one snapshot and changes nothing in the
 * database. A log that is not what was signed is written as it is: a verifier of the bundle finds the same in it.
 */
export async function writeBundle(storage: StorageEngine, request: BundleRequest, path: string) {
  const found = await findLogAnchors(storage, request);
  return await storage.read(async (tx) => {
    const heads = await readHeads(tx, found);
    const target = await openTarget(path);
    try {
      await writeLog(tx, target, heads, request, storage.isShared === true);
      const { origin, size, anchors } = heads;
      const checkpointedThrough = newestHead(heads)?.size ?? 0;
      const written = { origin, size, checkpointedThrough, anchors: anchors.length };
      if (request.page !== undefined) await target.write(forms.PAGE, [request.page]);
      for (const [name, text] of request.scripts ?? []) await target.write(name, [text]);
      await target.write(forms.README, [readmeText(written, request)]);
      await target.finish();
      return written;
    } catch (error) {
      target.abandon();
      throw error;
    }
  });
}

async function writeLog(
  tx: Reader,
  target: BundleTarget,
  heads: Heads,
  request: BundleRequest,
  isShared: boolean,
) {
  const [{ size }, { onProgress }] = [heads, request];
  const tree = new Frontier();
  let last = 0;
  await target.write(forms.LOG, logLines());
  async function* logLines() {
    const rows = 'SELECT position, text FROM actions WHERE';
    type Stored = { readonly position: number; readonly text: string };
    for await (const { position, text } of inPages<Stored>(tx, rows, 'position', [], 0)) {
      tree.add(sha256Hex(text));
      last = position;
      if (tree.size % 1_000 === 0) onProgress?.(tree.size, 2 * size);
      yield `${text}\n`;
    }
  }
  const payloads = 'SELECT position, salt, body FROM action_payloads WHERE';
  await target.write(forms.PAYLOADS, lines(inPages<Row>(tx, payloads, 'position', [], 0), canonicalJson));
  onProgress?.(1.5 * size, 2 * size);
  const texts = 'SELECT id, digest, salt, text FROM texts WHERE';
  await target.write(forms.TEXTS, lines(inPages<Row>(tx, texts, 'id', [], 0), canonicalJson));
  await target.write(forms.STATE, stateLines(tx));
  await writeHeads(target, heads);
  await writeSeals(tx, target, heads);
  const marker = { origin: heads.origin ?? null, size: last, root: tree.root() };
  const shared = isShared ? { shared: true as const } : {};
  await target.write(forms.MARKER, [forms.markerText({ ...marker, ...shared })]);
  onProgress?.(2 * size, 2 * size);
}

async function* lines(rows: AsyncIterable<Row>, line: (row: Row) => string): AsyncGenerator<string> {
  for await (const row of rows) yield `${line(row)}\n`;
}

/** Rows of state as the texts whose SHA-256 the log holds. */
async function* stateLines(tx: Reader): AsyncGenerator<string> {
  for (const table of STATE_TABLES) {
    const select = `SELECT ${table.facts.join(', ')} FROM ${table.name} WHERE`;
    yield* lines(inPages<Row>(tx, select, 'id', [], 0), (row) => rowText(table, row));
  }
}

/** Where the files of a bundle or of a certificate go. */
type Target = Pick<BundleTarget, 'write'>;

/** The newest head of each key, those that were kept, the keys, and what others may hold of any of them. */
export async function writeHeads(target: Target, heads: Pick<Heads, 'newest' | 'kept' | 'anchors'>) {
  const { newest, kept, anchors } = heads;
  const keys = [...new Set([...newest, ...kept].map(({ key }) => `${key}\n`))].sort();
  await target.write(forms.KEYS, keys);
  const last = newest.at(-1);
  if (last !== undefined) await target.write(forms.CHECKPOINT, [last.note]);
  for (const { keyId, note } of newest) await target.write(forms.headFile(keyId), [note]);
  for (const { keyId, size, note } of kept) await target.write(forms.keptFile(size, keyId), [note]);
  for (const { name, bytes } of anchors) await target.write(name, [bytes]);
}

/**
 * The leaves of each seal, and for each that the newest head covers the proof that the log holds it. Of a log that is not
 * what the head says there is none. Whether the head itself holds is for the verifier to say.
 */
async function writeSeals(tx: Reader, target: BundleTarget, { newest }: Heads): Promise<void> {
  const select = `SELECT id, position FROM sessions WHERE status = 'finalized' AND`;
  const sealedAt = new Map<number, string>();
  const note = newest.at(-1)?.note ?? '';
  const head = headIn(note);
  type Sealed = Readonly<Record<'id' | 'position', number>>;
  for await (const { id, position } of inPages<Sealed>(tx, select, 'id', [], 0)) {
    await writeSeal(tx, target, id);
    sealedAt.set(position, formatId(SESSIONS, id));
  }
  if (head === undefined) return;
  const under = { key: '', note, size: head.size, where: '' };
  const covered = [...sealedAt.keys()].filter((position) => position <= head.size);
  for await (const page of new PartSource(tx, covered, { head: under }).rows())
    for (const { position, text = '', proof = [] } of page) {
      if (!isIncluded(position - 1, proof, sha256Hex(text), head)) continue;
      // The row travels along in the line for extras, so that the file alone can be checked by anyone who has the key.
      const made = { index: position - 1, proof, checkpoint: note, extra: Buffer.from(text) };
      await target.write(forms.proofFile(sealedAt.get(position) ?? ''), [formatTlogProof(made)]);
    }
}

/** The hashes of the records under a seal, in order. One of which nothing is left is passed over: the seal does not fit then. */
export async function writeSeal(tx: Reader, target: Target, session: number): Promise<void> {
  const select = `SELECT id, hash, text FROM (
      SELECT r.id, t.hash, a.text FROM sessions s
      JOIN session_records r ON r.session_id = s.id AND r.task_id = coalesce(s.sealed_task_id, r.task_id)
      LEFT JOIN thoughts t ON r.kind = 'thought' AND t.id = r.ref
      LEFT JOIN actions a ON r.kind = 'change' AND a.position = r.ref
      WHERE s.id = ?
    ) AS leaves WHERE`;
  type Leaf = Readonly<Record<'hash' | 'text', string | null>>;
  async function* hashes() {
    for await (const { hash, text } of inPages<Leaf>(tx, select, 'id', [session])) {
      const leaf = text === null ? hash : sha256Hex(text);
      if (leaf !== null) yield `${leaf}\n`;
    }
  }
  await target.write(forms.sealFile(formatId(SESSIONS, session)), hashes());
}
