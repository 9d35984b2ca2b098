import { decodeBase64 } from '../../integrity/c2sp-text.ts';
import { readStrictJson, StrictJsonError } from '../../integrity/strict-json.ts';
import { isOrigin } from '../../trust/origin.ts';
import { type CarriedSource, carriedSource } from './carried.ts';
import { type Files, isEntryName, SourceError } from './files.ts';
import { isObject, isText } from './forms.ts';

export const CERTIFICATE_KIND = 'colibri-certificate';
export const CERTIFICATE_VERSION = 3;

/** A certificate beyond this is refused, by whoever writes it and by whoever reads it. */
export const CERTIFICATE_BYTES_MAX = 67_108_864;

/** Part of a log in one file: what proves one record. */
export interface Certificate {
  readonly kind: typeof CERTIFICATE_KIND;
  readonly version: typeof CERTIFICATE_VERSION;
  /** What it is about: `T-0001`, `Θ-0001`, `A-0001` or `#12`. */
  readonly subject: string;
  /** The name the log gives itself. */
  readonly origin: string;
  /** By name, as in a bundle: the lines of each file, or of an anchor the base64 of its bytes. */
  readonly files: Readonly<Record<string, readonly string[] | string>>;
}

/** The one text of a certificate: names in order, two spaces, a newline at the end. */
export function formatCertificate({ files, kind, origin, subject, version }: Certificate): string {
  const inOrder = Object.fromEntries(Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify({ files: inOrder, kind, origin, subject, version }, null, 2)}\n`;
}

/** Reads a certificate by a stranger. Throws a SourceError for one that is not exactly as Colibri writes it. */
export function parseCertificate(text: string): Certificate {
  if (text.length > CERTIFICATE_BYTES_MAX)
    throw new SourceError(`the certificate is larger than ${CERTIFICATE_BYTES_MAX} bytes`);
  const value = readJson(text);
  const wrong = Object.entries(FORM).find(([name, isFit]) => !isObject(value) || !isFit(value[name]));
  if (wrong !== undefined || !isCertificate(value))
    throw new SourceError(`this is no certificate of this version: "${wrong?.[0]}" is missing or wrong`);
  if (formatCertificate(value) !== text)
    throw new SourceError('the certificate is not spelled as Colibri spells it');
  return value;
}

/** A certificate as a source. Hostile input enters here: what cannot be read becomes a source with one finding. */
export async function certificateSource(text: string): Promise<CarriedSource> {
  return await carriedSource(() => {
    const { files, ...about } = parseCertificate(text);
    return { files: filesOf(files), about };
  });
}

function filesOf(given: Certificate['files']): Files {
  const files = new Map(
    Object.entries(given).map(([name, content]) => [
      name,
      isText(content)
        ? (decodeBase64(content) ?? new Uint8Array())
        : Buffer.from(content.map(ended).join('')),
    ]),
  );
  return {
    names: [...files.keys()],
    async *stream(name) {
      yield files.get(name) ?? new Uint8Array();
    },
  };
}

function ended(line: string): string {
  return `${line}\n`;
}

function readJson(text: string): unknown {
  try {
    return readStrictJson(text);
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    throw new SourceError(`the certificate is no JSON that has one meaning: ${error.message}`);
  }
}

/** What each member must be. A member too many, or a second spelling, is refused when the text is made again. */
const FORM: Readonly<Record<keyof Certificate, (value: unknown) => boolean>> = {
  kind: (value) => value === CERTIFICATE_KIND,
  version: (value) => value === CERTIFICATE_VERSION,
  subject: (value) => isText(value) && /^(?:[TAΘ]-\d{4,15}|#[1-9]\d{0,14})$/u.test(value),
  origin: (value) => isText(value) && isOrigin(value),
  files: (value) => isObject(value) && Object.entries(value).every(([name, file]) => isFile(name, file)),
};

function isFile(name: string, file: unknown): boolean {
  if (name.startsWith('anchors/')) return isEntryName(name) && isText(file);
  return (
    isEntryName(name) && Array.isArray(file) && file.every((line) => isText(line) && !line.includes('\n'))
  );
}

function isCertificate(value: unknown): value is Certificate {
  return isObject(value) && Object.entries(FORM).every(([name, isFit]) => isFit(value[name]));
}
