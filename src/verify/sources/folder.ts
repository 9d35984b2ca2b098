import { sha256Hex, startSha256 } from '../../integrity/digest.ts';
import { exactText } from '../../integrity/utf8.ts';
import { FILES_MAX, type Files, readWhole, SourceError } from './files.ts';

/** Far more than any of the small files needs. */
const SMALL_BYTES_MAX = 1_048_576;

/** The files of a bundle as they are read, each hashed as it passes, so that none is read twice for its sum. */
export class Folder {
  readonly names: ReadonlySet<string>;
  readonly #files: Files;
  readonly #sums = new Map<string, string>();

  constructor(files: Files) {
    if (files.names.length > FILES_MAX) throw new SourceError(`there are more than ${FILES_MAX} files`);
    this.#files = files;
    this.names = new Set(files.names);
  }

  /** The names in one folder of the bundle, in order. */
  in(folder: string): string[] {
    return [...this.names].filter((name) => name.startsWith(`${folder}/`)).sort();
  }

  /** A file's bytes; none where it is absent, which is reported with the list of files. */
  async *stream(name: string): AsyncGenerator<Uint8Array> {
    if (!this.names.has(name)) return;
    const hash = startSha256();
    for await (const chunk of this.#files.stream(name)) {
      hash.update(chunk);
      yield chunk;
    }
    this.#sums.set(name, hash.hex());
  }

  async whole(name: string, bytesMax = SMALL_BYTES_MAX): Promise<Uint8Array> {
    if (!this.names.has(name)) return new Uint8Array();
    const bytes = await readWhole(this.#files, name, bytesMax);
    this.#sums.set(name, sha256Hex(bytes));
    return bytes;
  }

  /** The text of a small file; undefined where it is absent or not UTF-8. */
  async text(name: string, bytesMax = SMALL_BYTES_MAX): Promise<string | undefined> {
    return this.names.has(name) ? exactText(await this.whole(name, bytesMax)) : undefined;
  }

  async sum(name: string): Promise<string | undefined> {
    if (this.names.has(name) && !this.#sums.has(name))
      for await (const _ of this.stream(name)) {
        // Reading is enough: the stream keeps the sum.
      }
    return this.#sums.get(name);
  }

  /** The sums of all files. */
  async sums(): Promise<ReadonlyMap<string, string>> {
    for (const name of this.names) await this.sum(name);
    return this.#sums;
  }
}
