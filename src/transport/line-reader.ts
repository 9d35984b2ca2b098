import { LIMITS } from '../limits.ts';
import { idOf, parse, type RequestId } from './message.ts';

const [NEWLINE, SPACE, TAB, CARRIAGE_RETURN] = [0x0a, 0x20, 0x09, 0x0d];
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

interface LineHandlers {
  readonly line: (bytes: Uint8Array) => void;
  /** A line over the limit has ended; it was not kept. */
  readonly oversized: (id: RequestId | null) => void;
}

/** Cuts a stream of bytes into lines. Chunks are joined once, at the end of their line, never again and again. */
export class LineReader {
  readonly #handlers: LineHandlers;
  #chunks: Uint8Array[] = [];
  #length = 0;
  #passing: OversizedLine | undefined;
  #atStart = true;

  constructor(handlers: LineHandlers) {
    this.#handlers = handlers;
  }

  push(chunk: Uint8Array): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#take(chunk.subarray(start, end));
      this.#endLine();
      start = end + 1;
    }
    if (start < chunk.length) this.#take(chunk.subarray(start));
  }

  /** The stream is over; what is left without a newline is a line too. */
  end(): void {
    if (this.#length > 0 || this.#passing !== undefined) this.#endLine();
  }

  #take(part: Uint8Array): void {
    if (this.#passing === undefined && this.#length + part.length > LIMITS.lineBytesMax) {
      this.#passing = new OversizedLine();
      for (const kept of this.#chunks) this.#passing.feed(kept);
      this.#chunks = [];
    }
    this.#length += part.length;
    if (this.#passing !== undefined) this.#passing.feed(part);
    else if (part.length > 0) this.#chunks.push(part);
  }

  #endLine(): void {
    const [chunks, passing, atStart] = [this.#chunks, this.#passing, this.#atStart];
    this.#chunks = [];
    this.#length = 0;
    this.#passing = undefined;
    this.#atStart = false;
    const [only] = chunks;
    const line = trim(only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks), atStart);
    if (passing !== undefined) this.#handlers.oversized(passing.end());
    else if (line.length > 0) this.#handlers.line(line);
  }
}

/** Windows line ends, a byte order mark at the very start, and blank lines are no one's fault. */
function trim(line: Uint8Array, atStart: boolean): Uint8Array {
  let [from, to] = [0, line.length];
  if (atStart && BYTE_ORDER_MARK.equals(line.subarray(0, 3))) from = 3;
  while (to > from && isBlank(line[to - 1])) to -= 1;
  while (from < to && isBlank(line[from])) from += 1;
  return line.subarray(from, to);
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB || byte === CARRIAGE_RETURN;
}

/** How much of each end of a line over the limit is kept. The longest id in escapes takes 1.5 kB. */
const END_BYTES = 4_096;

/**
 * Watches a line that is too long to keep go by, and picks out its top-level `id`. Of the members of a request only `params`
 * is long, and many clients put the id last: it is found where nothing but short texts is between it and one of the ends.
 */
export class OversizedLine {
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);

  feed(bytes: Uint8Array): void {
    if (this.#head.length < END_BYTES) this.#head = Buffer.concat([this.#head, bytes]).subarray(0, END_BYTES);
    this.#tail = Buffer.concat([this.#tail, bytes]).subarray(-END_BYTES);
  }

  /** The id found, or null. */
  end(): RequestId | null {
    const [, id] = ID_AT_END.exec(this.#tail.toString()) ?? ID_AT_START.exec(this.#head.toString()) ?? [];
    return id === undefined ? null : idOf(parse(`{"id":${id}}`));
  }
}

const TEXT = String.raw`"(?:[^"\\]|\\.)*"\s*`;
const ID = String.raw`"id"\s*:\s*(${TEXT}|[\d.eE+-]+\s*)`;
const MEMBER = String.raw`"\w*"\s*:\s*${TEXT}`;
const ID_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${MEMBER},\s*)*?${ID},`);
const ID_AT_END = new RegExp(String.raw`${ID}(?:,\s*${MEMBER})*\}\s*$`);
