import { encodeBase64 } from '../integrity/c2sp-text.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import {
  CERTIFICATE_BYTES_MAX,
  CERTIFICATE_KIND,
  CERTIFICATE_VERSION,
  type Certificate,
  type CertifiedRow,
  formatCertificate as plainText,
} from '../verify/sources/certificate.ts';
import {
  numberOf,
  type Proved,
  previousHash,
  sealsIn,
  selectedState,
  selectProved,
  textsAt,
} from './bundle.ts';
import { findLogAnchors, type Heads, type LogPlace, readHeads } from './heads.ts';
import { createRowProver } from './row-proofs.ts';
import type { Selection } from './selection.ts';
import { countRows, payloadsAt, rowsAt, sealedRecords } from './stored.ts';

/** Proves one record under a signed head. Throws where there is no such record or no head that covers it. */
export async function buildCertificate(
  storage: StorageEngine,
  place: LogPlace,
  subject: string,
): Promise<Certificate> {
  const anchors = await findLogAnchors(storage, place);
  return await storage.read(async (tx) => {
    const heads = await readHeads(tx, anchors);
    const size = await countRows(tx);
    return await certify(tx, await selectProved(tx, heads, subject, size));
  });
}

/** The text of a certificate. Throws where nobody would read it. */
export function formatCertificate(certificate: Certificate): string {
  const text = plainText(certificate);
  if (Buffer.byteLength(text) > CERTIFICATE_BYTES_MAX)
    throw new Error('The certificate would be too large. Export a bundle instead: "colibri export".');
  return text;
}

async function certify(tx: Reader, { selection, heads, head }: Proved): Promise<Certificate> {
  const { subject, positions } = selection;
  return {
    kind: CERTIFICATE_KIND,
    version: CERTIFICATE_VERSION,
    subject,
    origin: heads.origin ?? '',
    heads: [{ checkpoint: head.note, key: head.key }],
    rows: await certifiedRows(tx, { selection, heads, head }),
    payloads: await all(payloadsAt(tx, positions)),
    texts: await all(textsAt(tx, positions)),
    state: await all(selectedState(tx, selection)),
    seals: await sealsOf(tx, selection),
    anchors: anchorsOf(heads),
  };
}

async function certifiedRows(tx: Reader, { selection, head }: Proved): Promise<CertifiedRow[]> {
  const prove = createRowProver(tx, head);
  const rows: CertifiedRow[] = [];
  for await (const { position, text } of rowsAt(tx, selection.positions)) {
    const proof = await prove(position, sha256Hex(text));
    rows.push({ position, previous: await previousHash(tx, position), proof, text });
  }
  return rows;
}

function anchorsOf({ anchors }: Heads): Certificate['anchors'] {
  return Object.fromEntries(anchors.map(({ name, bytes }) => [name, encodeBase64(bytes)]));
}

/** Hashes only: of a session that covered other tasks too, their records stay untold. */
async function sealsOf(tx: Reader, selection: Selection): Promise<Certificate['seals']> {
  const seals: Record<string, string[]> = {};
  for await (const seal of sealsIn(tx, selection)) {
    const hashes: string[] = [];
    for await (const { hash } of sealedRecords(tx, numberOf(seal), seal.sealed_task_id)) hashes.push(hash);
    seals[seal.session_id] = hashes;
  }
  return seals;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}
