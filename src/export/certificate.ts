import { encodeBase64 } from '../integrity/c2sp-text.ts';
import { formatId, parseId, SESSIONS, STATE_TABLES, type StateTable } from '../log/tables.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { originOfKey } from '../trust/origin.ts';
import {
  CERTIFICATE_BYTES_MAX,
  CERTIFICATE_KIND,
  CERTIFICATE_VERSION,
  type Certificate,
  formatCertificate as plainText,
} from '../verify/sources/certificate.ts';
import { Cells } from '../verify/sources/database-cells.ts';
import * as forms from '../verify/sources/forms.ts';
import { PartSource, withEnters } from '../verify/sources/part.ts';
import { sealedHashes } from './bundle.ts';
import { findLogAnchors, type LogPlace, readHeads, requireHead } from './heads.ts';
import { isProofOf } from './proofs.ts';
import { digestsAt, select, withKeyActs } from './selection.ts';

/** Proves one record under a signed head. Throws where there is no such record or no head that covers it. */
export async function buildCertificate(
  storage: StorageEngine,
  place: LogPlace,
  subject: string,
): Promise<Certificate> {
  const found = await findLogAnchors(storage, place);
  return await storage.read(async (tx) => {
    const heads = await readHeads(tx, found);
    const headOf = (positions: readonly number[]) => requireHead(heads, positions.at(-1) ?? 1);
    let part = await closed(tx, await select(tx, subject));
    // A key that did not create the log is known by a row of the log only.
    if (originOfKey(headOf(part.positions).key) !== heads.origin)
      part = await closed(tx, await withKeyActs(tx, part.positions));
    const head = headOf(part.positions);
    const anchors = heads.anchors.filter((anchor) => anchor.head.note === head.note);
    const files: Record<string, readonly string[] | string> = {
      ...(await rowsOf(tx, part.positions, head)),
      ...(await sealsOf(tx, part.state.get(SESSIONS))),
      [forms.STATE]: STATE_TABLES.flatMap((table) => inOrder(part.state.get(table) ?? new Map())),
      [forms.KEYS]: [head.key],
      [forms.headFile(head.keyId)]: head.note.split('\n').slice(0, -1),
    };
    for (const { name, bytes } of anchors) files[name] = encodeBase64(bytes);
    const origin = heads.origin ?? '';
    return { kind: CERTIFICATE_KIND, version: CERTIFICATE_VERSION, subject, origin, files };
  });
}

/** The text of a certificate. Throws where nobody would read it. */
export function formatCertificate(certificate: Certificate): string {
  const text = plainText(certificate);
  if (Buffer.byteLength(text) > CERTIFICATE_BYTES_MAX)
    throw new Error('The certificate would be too large. Export a bundle instead: "colibri export".');
  return text;
}

type State = ReadonlyMap<StateTable, ReadonlyMap<number, string>>;

/**
 * Whatever a chosen call wrote belongs to it, and with each row of state the call that wrote it last: so that every effect
 * that counts has its row, and every row its effect.
 */
async function closed(
  tx: Reader,
  chosen: readonly number[],
): Promise<{ readonly positions: readonly number[]; readonly state: State }> {
  const cells = new Cells(tx);
  for (let positions = chosen; ; ) {
    const state = await stateOf(cells, positions);
    const writers = [...state.values()].flatMap((rows) => [...rows.values()].map(writerOf));
    const more = new Set([...positions, ...writers.filter((position) => position > 0)]);
    if (more.size === positions.length) return { positions, state };
    positions = await withEnters(cells, more);
  }
}

function writerOf(line: string): number {
  const { position } = forms.members(line);
  return forms.isCount(position) ? position : 0;
}

/** The rows of state that calls say they wrote, as they are now. */
async function stateOf(cells: Cells, positions: readonly number[]): Promise<State> {
  const ids = new Map(STATE_TABLES.map((table) => [table, new Set<number>()]));
  const sql = 'SELECT text FROM actions WHERE position';
  for (const { text } of await cells.among<{ text: unknown }>('actions', sql, positions)) {
    const { effects } = forms.members(String(text));
    for (const effect of Array.isArray(effects) ? effects.filter(forms.isObject) : [])
      for (const [table, numbers] of ids) {
        const id = effect.table === table.name ? parseId(table, String(effect.id)) : undefined;
        if (id !== undefined) numbers.add(id);
      }
  }
  const state = new Map<StateTable, ReadonlyMap<number, string>>();
  for (const [table, numbers] of ids) state.set(table, await cells.states(table, [...numbers]));
  return state;
}

function inOrder(rows: ReadonlyMap<number, string>): string[] {
  return [...rows].sort(([a], [b]) => a - b).map(([, line]) => line);
}

/** The rows with their proofs, and what lies beside them. */
async function rowsOf(
  tx: Reader,
  positions: readonly number[],
  head: { readonly key: string; readonly note: string; readonly size: number; readonly root: string },
): Promise<Record<string, string[]>> {
  const [log, proofs, payloads]: [string[], string[], string[]] = [[], [], []];
  const under = { key: head.key, checkpoint: head.note, size: head.size, where: '' };
  for await (const page of new PartSource(tx, positions, { head: under }).rows())
    for (const { position, text = '', payload, proof = [] } of page) {
      if (!isProofOf(position, text, proof, head))
        throw new Error(
          `Audit row ${position} does not lead to the checkpoint of ${head.size} rows: the log was changed after it was signed. "colibri verify" shows where.`,
        );
      log.push(text);
      proofs.push(forms.proofLine({ position, proof }));
      if (payload !== undefined) payloads.push(forms.payloadLine({ position, ...payload }));
    }
  const cells = new Cells(tx);
  const texts = await cells.texts(await digestsAt(cells, positions));
  const lines = [...texts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([digest, it]) => forms.textLine({ digest, ...it }));
  return { [forms.LOG]: log, [forms.PROOFS]: proofs, [forms.PAYLOADS]: payloads, [forms.TEXTS]: lines };
}

/** Hashes only: of a session that covered other tasks too, their records stay untold. */
async function sealsOf(
  tx: Reader,
  sessions: ReadonlyMap<number, string> = new Map(),
): Promise<Record<string, string[]>> {
  const seals: Record<string, string[]> = {};
  for (const [id, line] of sessions) {
    const { status, sealed_task_id } = forms.members(line);
    const only = forms.isCount(sealed_task_id) ? sealed_task_id : null;
    if (status !== 'finalized') continue;
    const hashes: string[] = [];
    for await (const hash of sealedHashes(tx, id, only)) hashes.push(hash);
    seals[forms.sealFile(formatId(SESSIONS, id))] = hashes;
  }
  return seals;
}
