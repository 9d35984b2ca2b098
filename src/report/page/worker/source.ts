/// <reference lib="dom" />

import { exactText } from '../../../integrity/utf8.ts';
import type { StateTable } from '../../../log/tables.ts';
import type { Report } from '../../../verify/finding.ts';
import type { SourceRow, Walked } from '../../../verify/source.ts';
import { blobFiles, openZipBlob } from '../../../verify/sources/blobs.ts';
import { bundleSource } from '../../../verify/sources/bundle.ts';
import { type CarriedSource, damagedSource } from '../../../verify/sources/carried.ts';
import { CERTIFICATE_BYTES_MAX, certificateSource } from '../../../verify/sources/certificate.ts';
import { SourceError } from '../../../verify/sources/files.ts';
import type { Given } from '../protocol.ts';

/** What was handed over as a source. Hostile input enters here: what cannot be read becomes a source with one finding. */
export async function openGiven(given: Given): Promise<CarriedSource> {
  try {
    if ('certificate' in given) return certificateSource(await textIn(given.certificate));
    return await bundleSource('zip' in given ? await openZipBlob(given.zip) : blobFiles(given.files));
  } catch (error) {
    if (error instanceof SourceError) return damagedSource(error.message);
    throw error;
  }
}

async function textIn(file: Blob): Promise<string> {
  if (file.size > CERTIFICATE_BYTES_MAX)
    throw new SourceError(`the certificate is larger than ${CERTIFICATE_BYTES_MAX} bytes`);
  const text = exactText(new Uint8Array(await file.arrayBuffer()));
  if (text === undefined) throw new SourceError('this is neither a bundle nor a certificate');
  return text;
}

/** Hands the verifier what a source holds, and keeps what the views need: the rows, and what the walk over them gave. */
export class WatchedSource implements CarriedSource {
  readonly whole: boolean;
  readonly subject: string;
  readonly anchors: CarriedSource['anchors'];
  readonly complete?: ReadonlySet<string>;
  readonly read = new Map<number, SourceRow>();
  walked: Walked | undefined;
  readonly #source: CarriedSource;

  constructor(source: CarriedSource) {
    this.#source = source;
    this.whole = source.whole;
    this.subject = source.subject;
    this.anchors = source.anchors;
    if (source.complete !== undefined) this.complete = source.complete;
  }

  origin() {
    return this.#source.origin();
  }

  heads() {
    return this.#source.heads();
  }

  kept() {
    return this.#source.kept();
  }

  count() {
    return this.#source.count();
  }

  async *rows(): AsyncGenerator<readonly SourceRow[]> {
    for await (const page of this.#source.rows()) {
      for (const row of page) this.read.set(row.position, row);
      yield page;
    }
  }

  texts(digests: readonly string[]) {
    return this.#source.texts(digests);
  }

  states(table: StateTable, ids: readonly number[]) {
    return this.#source.states(table, ids);
  }

  async checkRest(walked: Walked, report: Report): Promise<void> {
    this.walked = walked;
    await this.#source.checkRest(walked, report);
  }
}
