import { canonicalJson } from '../../integrity/canonical-json.ts';
import { isHash } from '../../integrity/digest.ts';
import { isOrigin } from '../../trust/opening.ts';
import { type JsonObject, parseBody } from '../rules/payloads.ts';

// What the files of a bundle and of a certificate are called, and one text for each thing a line of them says. The writers
// in src/export and the sources here agree on both. Whoever reads makes the line again and compares: a second spelling, a
// member too many or a member too few is another line. Everything that is read here was written by strangers.

export const LOG = 'log.jsonl';
/** Of a certificate: for each row of the log its position, and its proof under the newest head. */
export const PROOFS = 'proofs.jsonl';
export const PAYLOADS = 'payloads.jsonl';
/** By digest, so that one is found by halving. */
export const TEXTS = 'texts.jsonl';
export const STATE = 'state.jsonl';
/** The newest signed head. */
export const CHECKPOINT = 'checkpoint';
/** One verifier key a line. */
export const KEYS = 'keys';
/** Says what the folder is, and how long its log. */
export const MARKER = 'bundle.json';
export const README = 'README.txt';
/** The page that shows and checks bundles; only where whoever exports has it. */
export const PAGE = 'verify.html';
export const SUMS = 'SHA256SUMS';

/** The newest head of a key. */
export const headFile = (keyId: string) => `heads/${keyId}`;
/** A head that was kept. */
export const keptFile = (size: number, keyId: string) => `checkpoints/${size}-${keyId}`;
/** The hashes of the records under a seal, one a line. */
export const sealFile = (sessionId: string) => `seals/${sessionId}`;
/** The proof of the row that sealed a session. */
export const proofFile = (sessionId: string) => `proofs/${sessionId}.tlog-proof`;

/** One line a file, as `sha256sum -c` reads them, in the order of their names. */
export function formatSums(sums: ReadonlyMap<string, string>): string {
  return [...sums]
    .filter(([name]) => name !== SUMS)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, hash]) => `${hash}  ${name}\n`)
    .join('');
}

export interface PayloadLine {
  readonly position: number;
  readonly salt: string;
  readonly body: string;
}

export interface TextLine {
  readonly digest: string;
  readonly salt: string;
  readonly text: string;
}

export interface ProofLine {
  readonly position: number;
  readonly proof: readonly string[];
}

export interface Marker {
  readonly origin: string | null;
  /** The last position, and the root of the tree up to there. */
  readonly size: number;
  readonly root: string;
}

export const payloadLine: (payload: PayloadLine) => string = canonicalJson;
export const textLine: (text: TextLine) => string = canonicalJson;
export const proofLine: (proof: ProofLine) => string = canonicalJson;

/** All of the file, its newline too. */
export function markerText(marker: Marker): string {
  return `${canonicalJson({ kind: 'colibri-bundle', version: 3, ...marker })}\n`;
}

const BODY_START = '{"body":'.length;
const PAYLOAD_END = /","position":([1-9]\d{0,14}),"salt":"([0-9a-f]{32})"\}$/;

export function readPayload(line: string | undefined): PayloadLine | undefined {
  // There is one for most rows: taking an honest line apart by hand takes half the time.
  const end = line === undefined ? -1 : line.lastIndexOf('","position":');
  const [, position, salt] = (line !== undefined && end > 0 && PAYLOAD_END.exec(line.slice(end))) || [];
  if (line?.startsWith('{"body":"') && position !== undefined && salt !== undefined) {
    const quoted = line.slice(BODY_START, end + 1);
    const body = textIn(quoted);
    if (body?.isWellFormed() && JSON.stringify(body) === quoted)
      return { body, position: Number(position), salt };
  }
  return readOddPayload(line);
}

function textIn(quoted: string): string | undefined {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return undefined;
  }
}

function readOddPayload(line: string | undefined): PayloadLine | undefined {
  const { body, position, salt } = members(line);
  if (!isText(body) || !isPosition(position) || !isText(salt)) return undefined;
  return exact(line, { body, position, salt }, payloadLine);
}

export function readText(line: string | undefined): TextLine | undefined {
  const { digest, salt, text } = members(line);
  if (!isText(digest) || !isText(salt) || !isText(text)) return undefined;
  return exact(line, { digest, salt, text }, textLine);
}

export function readProof(line: string): ProofLine | undefined {
  const { position, proof } = members(line);
  if (!isPosition(position) || !Array.isArray(proof) || !proof.every(isHashText)) return undefined;
  return exact(line, { position, proof }, proofLine);
}

export function readMarker(text: string | undefined): Marker | undefined {
  const { origin, size, root } = members(text);
  const hasName = origin === null || (isText(origin) && isOrigin(origin));
  if (!hasName || !isCount(size) || !isHashText(root)) return undefined;
  return exact(text, { origin, size, root }, markerText);
}

export function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isHashText(value: unknown): value is string {
  return isText(value) && isHash(value);
}

export function isPosition(value: unknown): value is number {
  return isCount(value) && value > 0;
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** The members of a JSON object by a stranger; nothing where the text is none. */
export function members(text = ''): JsonObject {
  return parseBody(text) ?? {};
}

function exact<T>(line: string | undefined, value: T, write: (value: T) => string): T | undefined {
  try {
    return write(value) === line ? value : undefined;
  } catch {
    // A lone surrogate has no canonical text.
    return undefined;
  }
}
