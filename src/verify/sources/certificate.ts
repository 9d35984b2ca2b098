import { decodeBase64 } from '../../integrity/c2sp-text.ts';
import { isHash } from '../../integrity/digest.ts';
import { readStrictJson, StrictJsonError } from '../../integrity/strict-json.ts';
import type { StateTable } from '../../log/tables.ts';
import { isOrigin } from '../../trust/origin.ts';
import type { Finding, Report } from '../finding.ts';
import type { SourceHead, SourceNote, SourceRow, SourceText, Walked } from '../source.ts';
import {
  type CarriedAnchor,
  type CarriedSource,
  checkLinks,
  checkSubject,
  claimedSize,
  damagedSource,
  fileFinding,
  headPlace,
  openAnchor,
  readHead,
} from './carried.ts';
import { SourceError } from './files.ts';
import {
  isObject,
  isPosition,
  isSessionId,
  isSubject,
  isText,
  type PayloadLine,
  type TextLine,
  textLine,
} from './forms.ts';
import { HeldState, HeldTexts } from './held.ts';
import { PayloadCursor } from './rows.ts';
import { isSealOver, shownSeals } from './seals.ts';
import { reportStrays } from './strays.ts';

export const CERTIFICATE_KIND = 'colibri-certificate';
export const CERTIFICATE_VERSION = 2;

/** A certificate beyond this is refused, by whoever writes it and by whoever reads it. */
export const CERTIFICATE_BYTES_MAX = 67_108_864;

/** Everything in a certificate is a text or a whole number, so that every language reads and writes the same bytes. */
export interface Certificate {
  readonly kind: typeof CERTIFICATE_KIND;
  readonly version: typeof CERTIFICATE_VERSION;
  /** What it is about: `T-0001`, `Θ-0001`, `A-0001` or `#12`. */
  readonly subject: string;
  /** The name the log gives itself. */
  readonly origin: string;
  /** Signed heads, each of another key. The proofs lead to the largest. */
  readonly heads: readonly { readonly checkpoint: string; readonly key: string }[];
  /** Audit rows in order. */
  readonly rows: readonly CertifiedRow[];
  /** What lies beside them, in the same order. */
  readonly payloads: readonly PayloadLine[];
  /** The texts that their arguments speak of. */
  readonly texts: readonly TextLine[];
  /** Rows of state as canonical JSON; the digest of each is in the effects of one of the rows. */
  readonly state: readonly string[];
  /** By sealed session the hashes of its records in order; their root and their number stand in the session's row. */
  readonly seals: Readonly<Record<string, readonly string[]>>;
  /** By file name, as in a bundle, the base64 of what others may hold of the heads. */
  readonly anchors: Readonly<Record<string, string>>;
}

export interface CertifiedRow {
  readonly position: number;
  /** The chain hash of the row before it. */
  readonly previous: string;
  /** The way to the root of the largest head. */
  readonly proof: readonly string[];
  /** Exactly what is hashed. */
  readonly text: string;
}

/** The one text of a certificate: names in order, two spaces, a newline at the end. */
export function formatCertificate(certificate: Certificate): string {
  return `${JSON.stringify(inOrder(certificate), null, 2)}\n`;
}

/** Reads a certificate by a stranger. Throws a SourceError for one that is not exactly as Colibri writes it. */
export function parseCertificate(text: string): Certificate {
  if (text.length > CERTIFICATE_BYTES_MAX)
    throw new SourceError(`the certificate is larger than ${CERTIFICATE_BYTES_MAX} bytes`);
  const value = readJson(text);
  if (!isCertificate(value)) {
    const wrong = Object.entries(FORM).find(([name, isFit]) => !isObject(value) || !isFit(value[name]));
    const what = wrong === undefined ? 'it has members too many' : `"${wrong[0]}" is missing or wrong`;
    throw new SourceError(`this is no certificate of this version: ${what}`);
  }
  if (formatCertificate(value) !== text)
    throw new SourceError('the certificate is not spelled as Colibri spells it');
  return value;
}

/** A certificate as a source. Hostile input enters here: what cannot be read becomes a source with one finding. */
export function certificateSource(text: string): CarriedSource {
  try {
    return new CertificateSource(parseCertificate(text));
  } catch (error) {
    if (error instanceof SourceError) return damagedSource(error.message);
    throw error;
  }
}

class CertificateSource implements CarriedSource {
  readonly whole = false;
  readonly subject: string;
  readonly complete: ReadonlySet<string>;
  readonly anchors: readonly CarriedAnchor[];
  readonly #in: Certificate;
  readonly #texts: HeldTexts;
  readonly #state: HeldState;
  readonly #faults: Finding[] = [];
  #payloads: PayloadCursor;

  constructor(certificate: Certificate) {
    this.subject = certificate.subject;
    this.complete = new Set(/^[TA]/.test(certificate.subject) ? [certificate.subject] : []);
    this.#in = certificate;
    this.#texts = new HeldTexts(joined(certificate.texts.map(textLine)));
    this.#state = new HeldState(joined(certificate.state));
    this.#payloads = payloadsOf(certificate);
    this.anchors = this.#openAnchors();
  }

  origin(): Promise<string | undefined> {
    return Promise.resolve(this.#in.origin);
  }

  heads(): Promise<readonly SourceHead[]> {
    const heads = this.#in.heads.map(({ checkpoint, key }) => ({ checkpoint, key, where: headPlace(key) }));
    return Promise.resolve(heads.sort((a, b) => claimedSize(a.checkpoint) - claimedSize(b.checkpoint)));
  }

  kept(): Promise<readonly SourceNote[]> {
    return Promise.resolve([]);
  }

  count(): Promise<number> {
    return Promise.resolve(this.#in.rows.length);
  }

  async *rows(): AsyncGenerator<readonly SourceRow[]> {
    this.#payloads = payloadsOf(this.#in);
    const rows: SourceRow[] = [];
    for (const { position, previous, proof, text } of this.#in.rows) {
      const payload = await this.#payloads.take(position);
      rows.push({
        position,
        text,
        proof,
        previous_chain_hash: previous,
        ...(payload !== undefined && { payload }),
      });
    }
    await this.#payloads.finish();
    yield rows;
  }

  texts(digests: readonly string[]): Promise<ReadonlyMap<string, SourceText>> {
    return Promise.resolve(this.#texts.find(digests));
  }

  states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    return Promise.resolve(this.#state.find(table, ids));
  }

  async checkRest(walked: Walked, report: Report): Promise<void> {
    const rows = new Map(this.#in.rows.map(({ position, text }) => [position, text]));
    checkSubject(this.subject, this.#state, (position) => rows.get(position), walked, report);
    checkLinks(this.#in.rows, readHead((await this.heads()).at(-1)?.checkpoint ?? ''), report);
    for (const finding of this.#faults) report(finding);
    for (const line of this.#payloads.unreadable)
      report(fileFinding('malformed', 'payloads', `Payload ${line} is misplaced or there twice.`));
    const beside = { texts: this.#texts, state: this.#state, payloads: this.#payloads };
    await reportStrays({ whole: false, ...beside, again: () => pageOf(this.#in) }, walked, report);
    this.#checkSeals(walked, report);
  }

  /** The leaves that are listed for each seal give its root, and those of the records that are shown are among them. */
  #checkSeals(walked: Walked, report: Report): void {
    const left = new Map(Object.entries(this.#in.seals));
    for (const seal of shownSeals(this.#state, walked)) {
      const id = seal.facts.session_id;
      const hashes = left.get(id);
      left.delete(id);
      if (!seal.isTorn && (hashes === undefined || !isSealOver(seal, hashes, this.complete)))
        report({
          kind: 'altered',
          table: 'seals',
          record: id,
          message: `The leaves under the seal of ${id} are missing or are not those.`,
        });
    }
    for (const id of left.keys())
      report({
        kind: 'stray',
        table: 'seals',
        record: id,
        message: `There are leaves of ${id}, which is not sealed here.`,
      });
  }

  #openAnchors(): CarriedAnchor[] {
    const notes = this.#in.heads.map(({ checkpoint }) => checkpoint);
    return Object.entries(this.#in.anchors).flatMap(([name, text]) => {
      const bytes = decodeBase64(text);
      const anchor = openAnchor(name, bytes ?? new Uint8Array(), notes);
      if ('bytes' in anchor) return [anchor];
      this.#faults.push(anchor);
      return [];
    });
  }
}

function payloadsOf(certificate: Certificate): PayloadCursor {
  return new PayloadCursor(pageOf(certificate));
}

async function* pageOf({ payloads }: Certificate): AsyncGenerator<readonly PayloadLine[]> {
  yield payloads;
}

function joined(lines: readonly string[]): Uint8Array {
  return Buffer.from(lines.map((line) => `${line}\n`).join(''));
}

function readJson(text: string): unknown {
  try {
    return readStrictJson(text);
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    throw new SourceError(`the certificate is no JSON that has one meaning: ${error.message}`);
  }
}

type Test = (value: unknown) => boolean;

const isHashText: Test = (value) => isText(value) && isHash(value);
const isLine: Test = (value) => isText(value) && !value.includes('\n');
const listOf =
  (isFit: Test, max = Number.POSITIVE_INFINITY): Test =>
  (value) =>
    Array.isArray(value) && value.length <= max && value.every(isFit);
const recordOf =
  (isName: (name: string) => boolean, isFit: Test): Test =>
  (value) =>
    isObject(value) && Object.entries(value).every(([name, member]) => isName(name) && isFit(member));
const objectOf =
  (form: Readonly<Record<string, Test>>): Test =>
  (value) =>
    isObject(value) &&
    Object.keys(value).length === Object.keys(form).length &&
    Object.entries(form).every(([name, isFit]) => isFit(value[name]));

/** What each member must be. A second spelling of the same is refused when the text is made again. */
const FORM: Readonly<Record<keyof Certificate, Test>> = {
  kind: (value) => value === CERTIFICATE_KIND,
  version: (value) => value === CERTIFICATE_VERSION,
  subject: (value) => isText(value) && isSubject(value),
  origin: (value) => isText(value) && isOrigin(value),
  heads: (value) =>
    listOf(objectOf({ checkpoint: isText, key: isLine }), 64)(value) &&
    Array.isArray(value) &&
    value.length > 0,
  rows: listOf(
    objectOf({ position: isPosition, previous: isHashText, proof: listOf(isHashText, 53), text: isText }),
  ),
  payloads: listOf(objectOf({ body: isText, position: isPosition, salt: isText })),
  texts: listOf(objectOf({ digest: isText, salt: isText, text: isText })),
  state: listOf(isLine),
  seals: recordOf(isSessionId, listOf(isHashText)),
  anchors: recordOf((name) => /^anchors\/[0-9a-f]{64}\.(?:commit|tsr)$/.test(name), isText),
};

function isCertificate(value: unknown): value is Certificate {
  return objectOf(FORM)(value);
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isObject(value)) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
