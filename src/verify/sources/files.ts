import { exactText, startSha256 } from '../../integrity/digest.ts';
import { DamagedSource } from '../source.ts';

/** The files of a bundle or a certificate, wherever they lie: a folder, a zip, a map of files in a browser. */
export interface Files {
  readonly names: readonly string[];
  /** The bytes of a file. Throws a SourceError where they cannot be had whole. */
  stream(name: string): AsyncIterable<Uint8Array>;
}

/** Says why something by a stranger cannot be read. Begins small and ends without a full stop. */
export class SourceError extends DamagedSource {
  override readonly name = 'SourceError';

  constructor(message: string, options?: { cause?: unknown }) {
    super('bundle', message, options);
  }
}

/** How many files a bundle may have: a few, and two a session. */
export const FILES_MAX = 2_000_000;

/** The name of a file inside a bundle: plain, at most one folder deep, and never a way out of it. */
export function isEntryName(name: string): boolean {
  return /^(?:[\w-][\w.-]{0,99}\/)?[\w-][\w.-]{0,99}$/.test(name);
}

/** Far more than any file needs that is read whole. */
const WHOLE_BYTES_MAX = 268_435_456;

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

  async whole(name: string): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of this.stream(name)) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > WHOLE_BYTES_MAX) throw new SourceError(`${name} is larger than ${WHOLE_BYTES_MAX} bytes`);
    }
    return joined(chunks);
  }

  /** The text of a file; undefined where it is absent or not UTF-8. */
  async text(name: string): Promise<string | undefined> {
    return this.names.has(name) ? exactText(await this.whole(name)) : undefined;
  }

  lines(name: string): AsyncIterable<LinePage> {
    return readLines(this.stream(name), name);
  }

  /** The sums of all files. */
  async sums(): Promise<ReadonlyMap<string, string>> {
    for (const name of this.names)
      if (!this.#sums.has(name))
        for await (const _ of this.stream(name)) {
          // Reading is enough: the stream keeps the sum.
        }
    return this.#sums;
  }
}

/** The longest line a bundle may hold: a call with the longest arguments fits many times. */
const LINE_BYTES_MAX = 67_108_864;

const NEWLINE = 0x0a;

/** Lines of a file without their newlines, many at a time; undefined for one that is not UTF-8. */
export type LinePage = readonly (string | undefined)[];

/** The lines of a file. The last one must end too: a file that was cut off does not pass. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  bytesMax = LINE_BYTES_MAX,
): AsyncGenerator<LinePage> {
  let rest: Uint8Array[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end >= 0) {
      yield splitLines(joined([...rest, chunk.subarray(0, end)]));
      rest = [];
      restBytes = 0;
    }
    if (end + 1 === chunk.length) continue;
    rest.push(chunk.subarray(end + 1));
    restBytes += chunk.length - end - 1;
    if (restBytes > bytesMax) throw new SourceError(`a line of ${name} is longer than ${bytesMax} bytes`);
  }
  if (restBytes > 0) throw new SourceError(`the last line of ${name} does not end`);
}

// Decoding many lines at once is several times as fast as one by one.
function splitLines(bytes: Uint8Array): LinePage {
  const text = exactText(bytes);
  if (text !== undefined) return text.split('\n');
  const lines: (string | undefined)[] = [];
  for (let start = 0, end = 0; end !== -1; start = end + 1) {
    end = bytes.indexOf(NEWLINE, start);
    lines.push(exactText(bytes.subarray(start, end === -1 ? undefined : end)));
  }
  return lines;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array()] = parts;
  return parts.length === 1 ? first : Buffer.concat(parts);
}
