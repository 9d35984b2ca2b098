import { sha256Hex } from '../integrity/digest.ts';
import type { NodeReader } from '../integrity/proofs.ts';
import { SESSIONS, STATE_TABLES } from '../log/tables.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { originOfKey } from '../trust/opening.ts';
import type { Certificate } from '../verify/sources/certificate.ts';
import { Cells } from '../verify/sources/database-cells.ts';
import * as forms from '../verify/sources/forms.ts';
import { PartSource, textsAt } from '../verify/sources/part.ts';
import { isIncluded } from '../verify/sources/proofs.ts';
import { writeHeads, writeSeal } from './bundle.ts';
import type { Parts } from './files.ts';
import {
  findLogAnchors,
  type Heads,
  type LogPlace,
  readHeads,
  requireHead,
  type SignedHead,
} from './heads.ts';
import { addKeyActs, type Selection, select } from './selection.ts';

/** Proves one record under a signed head. Throws where there is no such record or no head that covers it. */
export async function buildCertificate(storage: StorageEngine, place: LogPlace, subject: string) {
  const found = await findLogAnchors(storage, place);
  return await storage.read<Certificate>(async (tx) => {
    const heads = await readHeads(tx, found);
    const headOf = ({ positions }: Selection) => requireHead(heads, positions.at(-1) ?? 1);
    let selection = await select(tx, subject);
    // A key that did not create the log is known by a row of the log only.
    if (originOfKey(headOf(selection).key) !== heads.origin) selection = await addKeyActs(tx, selection);
    const head = headOf(selection);
    const anchors = heads.anchors.filter(({ note }) => note === head.note);
    const files = await provingFiles(tx, selection, head, { anchors });
    const shared = storage.isShared === true ? { shared: true as const } : {};
    return { subject, origin: heads.origin ?? '', ...shared, files };
  });
}

interface Along {
  readonly anchors?: Heads['anchors'];
  /** Where the hashes of proofs come from, for whoever makes many. */
  readonly nodes?: NodeReader;
}

/** The files of a certificate over some rows, under one head. Throws where a row is not what the head signs. */
export async function provingFiles(
  tx: Reader,
  { positions, state }: Selection,
  head: SignedHead,
  { anchors = [], nodes }: Along = {},
): Promise<Certificate['files']> {
  const files: Record<string, readonly string[] | string> = {
    ...(await rowsOf(tx, positions, head, nodes)),
    [forms.STATE]: STATE_TABLES.flatMap((table) => inOrder(state.get(table) ?? new Map())),
  };
  const target = {
    async write(name: string, parts: Parts) {
      let text = '';
      for await (const part of parts)
        text += typeof part === 'string' ? part : Buffer.from(part).toString('base64');
      files[name] = name.startsWith('anchors/') ? text : text.split('\n').slice(0, -1);
    },
  };
  // Without the rows between, one head is all that can be compared.
  await writeHeads(target, { newest: [head], kept: [], anchors });
  for (const [id, line] of state.get(SESSIONS) ?? [])
    if (forms.members(line).status === 'finalized') await writeSeal(tx, target, id);
  return files;
}

function inOrder(rows: ReadonlyMap<number, string>): string[] {
  return [...rows].sort(([a], [b]) => a - b).map(([, line]) => line);
}

/** The rows with their proofs, payloads and texts. */
async function rowsOf(tx: Reader, positions: readonly number[], head: SignedHead, nodes?: NodeReader) {
  const [log, proofs, payloads]: [string[], string[], string[]] = [[], [], []];
  const under = { key: head.key, note: head.note, size: head.size, where: '' };
  for await (const page of new PartSource(tx, positions, { head: under, ...(nodes && { nodes }) }).rows())
    for (const { position, text = '', payload, proof = [] } of page) {
      if (!isIncluded(position - 1, proof, sha256Hex(text), head))
        throw new Error(
          `Audit row ${position} is not covered by the checkpoint of ${head.size} rows: the log was changed after it was signed. "colibri verify" shows where.`,
        );
      log.push(text);
      proofs.push(forms.proofLine({ position, proof }));
      if (payload !== undefined) payloads.push(forms.payloadLine({ position, ...payload }));
    }
  const cells = new Cells(tx);
  const texts = await cells.texts(await textsAt(cells, positions));
  const lines = [...texts].sort(([a], [b]) => a - b).map(([id, text]) => forms.textLine({ id, ...text }));
  return { [forms.LOG]: log, [forms.PROOFS]: proofs, [forms.PAYLOADS]: payloads, [forms.TEXTS]: lines };
}
