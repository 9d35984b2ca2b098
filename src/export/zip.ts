import { closeSync, openSync, writeSync } from 'node:fs';
import { pipeline, Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { isEntryName } from '../verify/sources/files.ts';
import * as format from '../verify/sources/zip.ts';

/** Beyond these a zip needs its 64-bit extension, which this writer leaves out. */
const BYTES_MAX = 0xffffffff;
const ENTRIES_MAX = 0xffff;

/** Writes a zip one entry after the other; holds an open file and a chunk, whatever the size. */
export class ZipWriter {
  readonly #fd: number;
  readonly #entries: format.Entry[] = [];
  #at = 0;

  constructor(path: string) {
    this.#fd = openSync(path, 'wx', 0o600);
  }

  async add(name: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    if (!isEntryName(name)) throw new Error(`${JSON.stringify(name)} is no name for a file in a bundle`);
    const offset = this.#at;
    let crc = 0;
    let size = 0;
    const measured = async function* () {
      for await (const chunk of chunks) {
        crc = crc32(chunk, crc);
        size += chunk.length;
        yield chunk;
      }
    };
    this.#at += format.localHeader({ name, crc, packed: 0, size }).length;
    const begun = this.#at;
    for await (const packed of through(Readable.from(measured()), zlib.createDeflateRaw()))
      this.#append(packed);
    const entry = { name, crc, packed: this.#at - begun, size, offset };
    if (size > BYTES_MAX || this.#at > BYTES_MAX || this.#entries.length === ENTRIES_MAX)
      throw new Error('The bundle is too large for one zip. Export it as a folder.');
    // Written last, because only now the sizes are known: no entry needs a trailer that a reader must guess.
    writeFully(this.#fd, format.localHeader(entry), offset);
    this.#entries.push(entry);
  }

  close(): void {
    this.#append(format.directoryOf(this.#entries, this.#at));
    closeSync(this.#fd);
  }

  /** Gives up. The file is left for the caller to remove. */
  abandon(): void {
    closeSync(this.#fd);
  }

  #append(bytes: Uint8Array): void {
    writeFully(this.#fd, bytes, this.#at);
    this.#at += bytes.length;
  }
}

export function writeFully(fd: number, bytes: Uint8Array, position: number | null): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done);
}

/** Node before 20.15 has none of its own; its own does 3 GB/s, the table 0.4. */
export function crc32(bytes: Uint8Array, before: number): number {
  return typeof zlib.crc32 === 'function' ? zlib.crc32(bytes, before) : format.crc32(bytes, before);
}

/** Errors of the source and of the transform both end the iteration that the caller is in. */
export function through(source: Readable, transform: Transform): AsyncIterable<Uint8Array> {
  return pipeline(source, transform, () => undefined);
}
