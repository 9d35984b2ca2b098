import { decodeBase64 } from '../../integrity/signed-note.ts';
import { isOrigin } from '../../trust/opening.ts';
import { jsonText } from '../../untrusted.ts';
import { isObject } from '../rules/payloads.ts';
import type { Given } from './carried.ts';
import { isEntryName, SourceError } from './files.ts';
import { isText, members } from './forms.ts';

const MARKED = { kind: 'colibri-certificate', version: 3 };

/** A certificate beyond this is refused, by whoever writes it and by whoever reads it. */
export const CERTIFICATE_BYTES_MAX = 67_108_864;

/** Part of a log in one file: what proves one record. */
export interface Certificate {
  /** What it is about: `T-0001`, `Θ-0001`, `A-0001` or `#12`. */
  readonly subject: string;
  /** The name the log gives itself. */
  readonly origin: string;
  /** Of a log that several machines share: a key of theirs joins by itself. */
  readonly shared?: true;
  /** By name, as in a bundle: the lines of each file, or of an anchor the base64 of its bytes. */
  readonly files: Readonly<Record<string, readonly string[] | string>>;
}

/** The one text of a certificate: names in order, two spaces, a newline at the end, nothing that acts on a terminal. Throws where nobody would read it. */
export function formatCertificate(certificate: Certificate): string {
  const inOrder = (value: object) =>
    Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  const whole = inOrder({ ...MARKED, ...certificate, files: inOrder(certificate.files) });
  const text = `${jsonText(whole, 2)}\n`;
  if (Buffer.byteLength(text) <= CERTIFICATE_BYTES_MAX) return text;
  throw new SourceError('The certificate would be too large. Export a bundle instead: "colibri export".');
}

/**
 * Reads a certificate by a stranger. Throws a SourceError for one that is not exactly as Colibri writes it: the text is
 * made again and compared, so that a member too many, one that is there twice or a second spelling is refused.
 */
function parseCertificate(text: string): Certificate {
  if (text.length > CERTIFICATE_BYTES_MAX)
    throw new SourceError(`the certificate is larger than ${CERTIFICATE_BYTES_MAX} bytes`);
  const { files, kind, origin, shared, subject, version } = members(text);
  if (kind !== MARKED.kind || version !== MARKED.version)
    throw new SourceError('this is not a certificate of this version');
  if (!isText(subject) || !SUBJECT.test(subject) || !isText(origin) || !isOrigin(origin) || !areFiles(files))
    throw new SourceError('the certificate lacks a subject, the name of a log or valid files');
  const certificate = { subject, origin, files, ...(shared === true && { shared: true as const }) };
  if (formatCertificate(certificate) !== text)
    throw new SourceError('the certificate is not written as Colibri writes it');
  return certificate;
}

const SUBJECT = /^(?:[TAΘ]-\d{4,15}|#[1-9]\d{0,14})$/u;

function areFiles(files: unknown): files is Certificate['files'] {
  const isLine = (line: unknown) => isText(line) && line.isWellFormed() && !line.includes('\n');
  const isFile = ([name, file]: [string, unknown]) =>
    isEntryName(name) &&
    (name.startsWith('anchors/') ? isText(file) : Array.isArray(file) && file.every(isLine));
  return isObject(files) && Object.entries(files).every(isFile);
}

/** The files of a certificate and what it is about. Throws as `parseCertificate` does. */
export function openCertificate(text: string): Given {
  const { files, ...about } = parseCertificate(text);
  const bytesOf = (content: readonly string[] | string) =>
    isText(content) ? decodeBase64(content) : Buffer.from(content.map((line) => `${line}\n`).join(''));
  const stream = async function* (name: string) {
    yield bytesOf(files[name] ?? []) ?? new Uint8Array();
  };
  return { files: { names: Object.keys(files), stream }, about };
}
