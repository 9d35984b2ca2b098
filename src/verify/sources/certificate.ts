import { decodeBase64 } from '../../integrity/signed-note.ts';
import { isOrigin } from '../../trust/origin.ts';
import { type CarriedSource, carriedSource } from './carried.ts';
import { type Files, isEntryName, SourceError } from './files.ts';
import { isObject, isText, members } from './forms.ts';

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
export function formatCertificate(certificate: Certificate): string {
  const inOrder = (value: object) =>
    Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify(inOrder({ ...certificate, files: inOrder(certificate.files) }), null, 2)}\n`;
}

/**
 * Reads a certificate by a stranger. Throws a SourceError for one that is not exactly as Colibri writes it: the text is
 * made again and compared, so that a member too many, one that is there twice or a second spelling is refused.
 */
export function parseCertificate(text: string): Certificate {
  if (text.length > CERTIFICATE_BYTES_MAX)
    throw new SourceError(`the certificate is larger than ${CERTIFICATE_BYTES_MAX} bytes`);
  const { files, kind, origin, subject, version } = members(text);
  if (kind !== CERTIFICATE_KIND || version !== CERTIFICATE_VERSION)
    throw new SourceError('this is no certificate of this version');
  if (!isText(subject) || !SUBJECT.test(subject) || !isText(origin) || !isOrigin(origin) || !areFiles(files))
    throw new SourceError('the certificate has no subject, no name of a log or no files that it can have');
  const certificate = {
    kind: CERTIFICATE_KIND,
    version: CERTIFICATE_VERSION,
    subject,
    origin,
    files,
  } as const;
  if (formatCertificate(certificate) !== text)
    throw new SourceError('the certificate is not spelled as Colibri spells it');
  return certificate;
}

const SUBJECT = /^(?:[TAΘ]-\d{4,15}|#[1-9]\d{0,14})$/u;

function areFiles(files: unknown): files is Certificate['files'] {
  const isLine = (line: unknown) => isText(line) && line.isWellFormed() && !line.includes('\n');
  const isFile = (name: string, file: unknown) =>
    name.startsWith('anchors/') ? isText(file) : Array.isArray(file) && file.every(isLine);
  return (
    isObject(files) && Object.entries(files).every(([name, file]) => isEntryName(name) && isFile(name, file))
  );
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
        : Buffer.from(content.map((line) => `${line}\n`).join('')),
    ]),
  );
  return {
    names: [...files.keys()],
    async *stream(name) {
      yield files.get(name) ?? new Uint8Array();
    },
  };
}
