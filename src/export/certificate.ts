import * as z from 'zod';
import { type StoredSession, sessionId } from '../domains/trail/index.ts';
import { encodeBase64 } from '../integrity/c2sp-text.ts';
import { isHash } from '../integrity/digest.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import {
  assertNotCut,
  onlyHead,
  payloadsAt,
  requireHead,
  rowsAt,
  sealedRecords,
  selectedState,
} from './bundle.ts';
import { type Heads, type LogPlace, readHeads } from './heads.ts';
import { createRowProver } from './row-proofs.ts';
import { type Selection, select } from './selection.ts';

const KIND = 'colibri-certificate';
const VERSION = 1;

/** A certificate beyond this is refused, by whoever writes it and by whoever reads it. */
export const CERTIFICATE_BYTES_MAX = 67_108_864;

const hash = z.string().refine(isHash);
const count = z.int().min(0);

/** Everything in a certificate is a text or a whole number, so that every language reads and writes the same bytes. */
export const CertificateShape = z.strictObject({
  kind: z.literal(KIND),
  version: z.literal(VERSION),
  /** What it is about: `T-0001`, `Θ-0001`, `A-0001` or `#12`. */
  subject: z.string(),
  /** Audit rows in order, each the exact text. */
  log: z.array(z.string()),
  /** What lies beside them, in the same order. */
  payloads: z.array(z.strictObject({ body: z.string(), position: count, salt: z.string() })),
  /** For each row of the log the way to the checkpoint's root. */
  proofs: z.array(z.array(hash).max(53)),
  /** Rows of state as canonical JSON; the digest of each is in the effects of one of the rows. */
  state: z.array(z.string()),
  /** By sealed session the hashes of its records in order; their root and their number stand in the session's row. */
  seals: z.record(z.string().regex(/^A-\d{4,15}$/), z.array(hash)),
  checkpoint: z.string(),
  key: z.string(),
  /** By file name, as in a bundle, the base64 of what others may hold of the checkpoint. */
  anchors: z.record(z.string(), z.string()),
});

export type Certificate = z.output<typeof CertificateShape>;

/** Proves one record against the newest checkpoint. Throws where there is no such record or no checkpoint that covers it. */
export async function buildCertificate(
  storage: StorageEngine,
  place: LogPlace,
  subject: string,
): Promise<Certificate> {
  const heads = await storage.read((tx) => readHeads(tx, place));
  return await storage.read(async (tx) => await prove(tx, heads, await select(tx, subject)));
}

/** The one text of a certificate: names in order, two spaces, a newline at the end. */
export function formatCertificate(certificate: Certificate): string {
  const text = `${JSON.stringify(inOrder(certificate), null, 2)}\n`;
  if (Buffer.byteLength(text) > CERTIFICATE_BYTES_MAX)
    throw new Error('The certificate would be too large. Export a bundle instead: "colibri export".');
  return text;
}

async function prove(tx: Reader, heads: Heads, selection: Selection): Promise<Certificate> {
  const size = (await tx.get<{ size: number }>('SELECT count(*) AS size FROM actions'))?.size ?? 0;
  assertNotCut(heads, size);
  const head = requireHead(heads, selection.positions.at(-1) ?? 1, size);
  const proveRow = createRowProver(tx, head);
  const log: string[] = [];
  const proofs: string[][] = [];
  for await (const { position, text, content_hash } of rowsAt(tx, selection.positions)) {
    log.push(text);
    proofs.push([...(await proveRow(position, content_hash))]);
  }
  const payloads: Certificate['payloads'] = [];
  for await (const { position, body, salt } of payloadsAt(tx, selection.positions))
    payloads.push({ body, position, salt });
  const state: string[] = [];
  for await (const line of selectedState(tx, selection)) state.push(line.slice(0, -1));
  return {
    kind: KIND,
    version: VERSION,
    subject: selection.subject,
    log,
    payloads,
    proofs,
    state,
    seals: await sealsOf(tx, selection),
    checkpoint: head.note,
    key: heads.key ?? '',
    anchors: anchorsOf(onlyHead(heads, head)),
  };
}

function anchorsOf({ anchors }: Heads): Certificate['anchors'] {
  return Object.fromEntries(anchors.map(({ name, bytes }) => [name, encodeBase64(bytes)]));
}

async function sealsOf(tx: Reader, { sessions }: Selection): Promise<Certificate['seals']> {
  const seals: Certificate['seals'] = {};
  for (const id of sessions) {
    const session = await tx.get<StoredSession>(
      "SELECT * FROM sessions WHERE id = ? AND status = 'finalized'",
      id,
    );
    if (session === undefined) continue;
    const hashes: string[] = [];
    for await (const record of sealedRecords(tx, session)) hashes.push(record.hash);
    seals[sessionId(session)] = hashes;
  }
  return seals;
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const members: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => [k, inOrder(v)]));
}
