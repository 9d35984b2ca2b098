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
/** By id, which is the order of the calls that carried them. */
export const TEXTS = 'texts.jsonl';
export const STATE = 'state.jsonl';
/** Those that may be as long as the log is; they are read line by line. */
export const OF_LINES: readonly string[] = [LOG, PAYLOADS, TEXTS, STATE];
/** The newest signed head. */
export const CHECKPOINT = 'checkpoint';
/** One verifier key a line. */
export const KEYS = 'keys';
/** Says what the folder is, and how long its log. */
export const MARKER = 'bundle.json';
export const README = 'README.txt';
/** The page that shows and checks bundles; only where whoever exports has it. */
export const PAGE = 'verify.html';
/** Programs that check a bundle without Colibri, as files next to each other; only where whoever exports has them. */
export const SCRIPTS: readonly string[] = [
  'verify-bundle.py',
  ...['rows', 'form', 'heads', 'tools', 'formats'].map((part) => `colibri_${part}.py`),
].map((name) => `scripts/${name}`);
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

const PAYLOAD = { body: isText, position: isPosition, salt: isText };
const TEXT = { digest: isText, id: isPosition, salt: isText, text: isText };
const PROOF = { position: isPosition, proof: areHashes };
/** `size` is the last position, `root` that of the tree up to there. */
const MARK = { origin: isName, size: isCount, root: isHashText };

type Guards = Readonly<Record<string, (value: unknown) => boolean>>;
type Held<G> = {
  readonly [name in keyof G]: G[name] extends (value: unknown) => value is infer T ? T : never;
};

export type PayloadLine = Held<typeof PAYLOAD>;

export const payloadLine: (payload: PayloadLine) => string = canonicalJson;
export const textLine: (text: Held<typeof TEXT>) => string = canonicalJson;
export const proofLine: (proof: Held<typeof PROOF>) => string = canonicalJson;

/** Of a log that several machines share: a key of theirs joins by itself. */
export type Marker = Held<typeof MARK> & { readonly shared?: true };

/** All of the file, its newline too. */
export function markerText(marker: Marker): string {
  return `${canonicalJson({ kind: 'colibri-bundle', version: 4, ...marker })}\n`;
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
  return exact(PAYLOAD, line);
}

function textIn(quoted: string): string | undefined {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return undefined;
  }
}

export const readText = (line: string | undefined) => exact(TEXT, line);
export const readProof = (line: string) => exact(PROOF, line);

export function readMarker(text = ''): Marker | undefined {
  const { kind, version, shared, ...mark } = members(text);
  if (!holds(MARK, mark)) return undefined;
  const marker = { ...mark, ...(shared === true && { shared: true as const }) };
  return markerText(marker) === text ? marker : undefined;
}

/** What a line holds, where it is the one text of exactly these members. */
function exact<G extends Guards>(guards: G, line: string | undefined): Held<G> | undefined {
  const found = members(line);
  try {
    return holds(guards, found) && canonicalJson(found) === line ? found : undefined;
  } catch {
    // A lone surrogate has no canonical text.
    return undefined;
  }
}

function holds<G extends Guards>(guards: G, found: JsonObject): found is JsonObject & Held<G> {
  const names = Object.keys(guards);
  return Object.keys(found).length === names.length && names.every((name) => guards[name]?.(found[name]));
}

export function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isHashText(value: unknown): value is string {
  return isText(value) && isHash(value);
}

function areHashes(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isHashText);
}

/** That of a log, if it has one. */
function isName(value: unknown): value is string | null {
  return value === null || (isText(value) && isOrigin(value));
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
