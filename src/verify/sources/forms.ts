import { canonicalJson } from '../../integrity/canonical-json.ts';
import { isHash } from '../../integrity/digest.ts';
import { isOrigin } from '../../trust/origin.ts';
import { BUNDLE_KIND, BUNDLE_VERSION, WHOLE_LOG } from './layout.ts';

// One text for each thing a line of a bundle says. Whoever reads makes the line again and compares: a second spelling, a
// member too many or a member too few is another line. Everything that is read here was written by strangers.

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

/** Where a row of a bundle of one session stands, and the chain hash of the row before it. */
export interface LinkLine {
  readonly position: number;
  readonly previous: string;
}

export interface Marker {
  /** `log`, or the session. */
  readonly scope: string;
  readonly origin: string | null;
  /** Audit rows in the bundle. */
  readonly rows: number;
  /** Audit rows of the log: of the whole one its last position, else what the checkpoint covers. */
  readonly size: number;
  /** Of the tree over `size` rows; null where nothing is signed and not all rows are there. */
  readonly root: string | null;
  /** Of the last row; null where not all rows are there. */
  readonly chain_hash: string | null;
}

export function payloadLine({ body, position, salt }: PayloadLine): string {
  return canonicalJson({ body, position, salt });
}

export function textLine({ digest, salt, text }: TextLine): string {
  return canonicalJson({ digest, salt, text });
}

export function linkLine({ position, previous }: LinkLine): string {
  return canonicalJson({ position, previous });
}

export function markerLine({ scope, origin, rows, size, root, chain_hash }: Marker): string {
  const [kind, version] = [BUNDLE_KIND, BUNDLE_VERSION];
  return canonicalJson({ kind, version, scope, origin, rows, size, root, chain_hash });
}

const BODY_START = '{"body":'.length;
const PAYLOAD_END = /","position":([1-9]\d{0,14}),"salt":"([0-9a-f]{32})"\}$/;

export function readPayload(line: string | undefined): PayloadLine | undefined {
  // There is one for most rows: taking an honest line apart by hand takes half the time.
  const end = line === undefined ? -1 : line.lastIndexOf('","position":');
  const [, position, salt] = (line !== undefined && end > 0 && PAYLOAD_END.exec(line.slice(end))) || [];
  if (line?.startsWith('{"body":"') && position !== undefined && salt !== undefined) {
    const quoted = line.slice(BODY_START, end + 1);
    const body = parse(quoted);
    if (isText(body) && body.isWellFormed() && JSON.stringify(body) === quoted)
      return { body, position: Number(position), salt };
  }
  return readOddPayload(line);
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

export function readLink(line: string | undefined): LinkLine | undefined {
  const { position, previous } = members(line);
  if (!isPosition(position) || !isText(previous) || !isHash(previous)) return undefined;
  return exact(line, { position, previous }, linkLine);
}

export function readMarker(line: string | undefined): Marker | undefined {
  const { scope, origin, rows, size, root, chain_hash } = members(line);
  const isMarker =
    isText(scope) &&
    (scope === WHOLE_LOG || isSessionId(scope)) &&
    (origin === null || (isText(origin) && isOrigin(origin))) &&
    isCount(rows) &&
    isCount(size) &&
    isHashOrNull(root) &&
    isHashOrNull(chain_hash);
  return isMarker ? exact(line, { scope, origin, rows, size, root, chain_hash }, markerLine) : undefined;
}

export function isSessionId(text: string): boolean {
  return /^A-\d{4,15}$/.test(text);
}

/** What a certificate can be about: `T-0001`, `Θ-0001`, `A-0001` or `#12`. */
export function isSubject(text: string): boolean {
  return /^(?:[TAΘ]-\d{4,15}|#[1-9]\d{0,14})$/u.test(text);
}

export function isText(value: unknown): value is string {
  return typeof value === 'string';
}

export function isPosition(value: unknown): value is number {
  return isCount(value) && value > 0;
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** The members of a JSON object; nothing where the text is none. */
export function members(text: string | undefined): Readonly<Record<string, unknown>> {
  const value = text === undefined ? undefined : parse(text);
  return isObject(value) ? value : {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isHashOrNull(value: unknown): value is string | null {
  return value === null || (isText(value) && isHash(value));
}

function exact<T>(line: string | undefined, value: T, write: (value: T) => string): T | undefined {
  try {
    return write(value) === line ? value : undefined;
  } catch {
    // A lone surrogate has no canonical text.
    return undefined;
  }
}
