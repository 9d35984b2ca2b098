import { exactText } from '../../../integrity/digest.ts';
import type { VerifierKey } from '../../../integrity/signed-note.ts';
import type { Finding, Report } from '../../../verify/finding.ts';
import type { Evidence, Judged } from '../../../verify/rules/heads.ts';
import type { SourceRow, Walked } from '../../../verify/source.ts';
import { blobFiles, openZipBlob } from '../../../verify/sources/blobs.ts';
import { type CarriedSource, carriedSource } from '../../../verify/sources/carried.ts';
import { CERTIFICATE_BYTES_MAX, openCertificate } from '../../../verify/sources/certificate.ts';
import { SourceError } from '../../../verify/sources/files.ts';
import { type VerifyOptions, verify } from '../../../verify/verify.ts';
import { readRecords } from '../../records.ts';
import { verdictView } from './verdict.ts';

/** What the page was given: a bundle, or a certificate. */
export type Given =
  | { readonly zip: Blob }
  | { readonly certificate: Blob }
  | { readonly files: readonly (readonly [name: string, file: Blob])[] };

/** Something that was checked: everything that later questions are answered from. */
export type OpenedSource = Awaited<ReturnType<typeof openSource>>;

interface Besides {
  /** Keys that somebody decided to believe. */
  readonly trusted?: readonly VerifierKey[];
  /** Texts that came another way, by their digests. */
  readonly texts?: ReadonlyMap<string, string>;
}

/** Lets the verifier check what was handed over. */
export async function openSource(
  given: Given,
  onProgress: (done: number, total: number) => void,
  { trusted = [], texts }: Besides = {},
) {
  const watched = watch(await sourceOf(given));
  const { source, read, findings } = watched;
  const report = (finding: Finding) => void findings.push(finding);
  const verdict = await judge(source, { report, onProgress }, trusted);
  // Of part of a log, nobody can say which row of a process was its last.
  const lastSeen = source.whole ? watched.walked?.lastSeen : undefined;
  const { stateRows, ...records } = await readRecords(source, read, { findings, texts, lastSeen });
  return { given, source, read, verdict, ...records, verdictView: verdictView(verdict, watched, stateRows) };
}

/** What was handed over as a source. */
async function sourceOf(given: Given): Promise<CarriedSource> {
  return await carriedSource(async () => {
    if ('certificate' in given) return openCertificate(await textIn(given.certificate));
    return { files: 'zip' in given ? await openZipBlob(given.zip) : blobFiles(given.files) };
  });
}

async function textIn(file: Blob): Promise<string> {
  if (file.size > CERTIFICATE_BYTES_MAX)
    throw new SourceError(`the certificate is larger than ${CERTIFICATE_BYTES_MAX} bytes`);
  const text = exactText(new Uint8Array(await file.arrayBuffer()));
  if (text === undefined) throw new SourceError('this is neither a bundle nor a certificate');
  return text;
}

/** A source with what was read of it and the views need: the rows, what is wrong, and what the walk over them gave. */
export interface Watched {
  readonly source: CarriedSource;
  readonly read: Map<number, SourceRow>;
  readonly findings: Finding[];
  walked?: Walked;
}

/** From now on keeps what is read of a source. */
function watch(source: CarriedSource): Watched {
  const [rows, checkRest] = [source.rows.bind(source), source.checkRest.bind(source)];
  const watched: Watched = { source, read: new Map(), findings: [] };
  Object.assign(source, {
    async *rows() {
      for await (const page of rows()) {
        for (const row of page) watched.read.set(row.position, row);
        yield page;
      }
    },
    checkRest(walked: Walked, report: Report) {
      watched.walked = walked;
      return checkRest(walked, report);
    },
  });
  return watched;
}

/** What the verifier makes of a checkpoint that somebody kept. */
export async function judgeAgain(given: Given, note: Evidence): Promise<Judged | undefined> {
  const { judged } = await judge(await sourceOf(given), { report: () => undefined, evidence: [note] });
  return judged.find(({ source }) => source === note.source);
}

/** Nobody has told this page whom to trust. It says so, and which keys have signed. */
function judge(
  source: CarriedSource,
  options: Pick<VerifyOptions, 'report' | 'onProgress' | 'evidence'>,
  trusted: readonly VerifierKey[] = [],
) {
  return verify(source, { now: Date.now(), keys: { trusted }, ...options });
}
