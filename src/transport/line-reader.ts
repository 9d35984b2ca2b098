import { LIMITS } from '../limits.ts';
import { idOf, parse, type RequestId } from './message.ts';

const [NEWLINE, SPACE, TAB, CARRIAGE_RETURN] = [0x0a, 0x20, 0x09, 0x0d];
const NOTHING = new Uint8Array();
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

interface LineHandlers {
  readonly line: (bytes: Uint8Array) => void;
  /** A line over the limit has ended; it was not kept. */
  readonly oversized: (id: RequestId | null) => void;
  /** Whether no more lines can be taken for now. */
  readonly isFull: () => boolean;
}

/** Cuts a stream of bytes into lines. Chunks are joined once, at the end of their line, never again and again. */
export class LineReader {
  readonly #handlers: LineHandlers;
  #chunks: Uint8Array[] = [];
  #length = 0;
  #atStart = true;

  constructor(handlers: LineHandlers) {
    this.#handlers = handlers;
  }

  /** Answers what is left of the chunk, because no more lines can be taken. */
  push(chunk: Uint8Array): Uint8Array {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (this.#handlers.isFull()) return chunk.subarray(start);
      this.#take(chunk.subarray(start, end));
      this.#endLine();
      start = end + 1;
    }
    if (start < chunk.length) this.#take(chunk.subarray(start));
    return NOTHING;
  }

  /** The stream is over; what is left without a newline is a line too. */
  end(): void {
    if (this.#length > 0) this.#endLine();
  }

  #take(part: Uint8Array): void {
    this.#length += part.length;
    if (this.#length > LIMITS.lineBytesMax) this.#chunks = [keepEnds(Buffer.concat(this.#chunks), part)];
    else if (part.length > 0) this.#chunks.push(part);
  }

  #endLine(): void {
    const [chunks, length, atStart] = [this.#chunks, this.#length, this.#atStart];
    this.#chunks = [];
    this.#length = 0;
    this.#atStart = false;
    const [only] = chunks;
    const whole = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks);
    if (length > LIMITS.lineBytesMax) return void this.#handlers.oversized(idAtEnds(whole));
    const line = trim(whole, atStart);
    if (line.length > 0) this.#handlers.line(line);
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

/** Adds to a line that is too long to keep: of what is longer than both ends, only they are kept. */
export function keepEnds(kept: Uint8Array, part: Uint8Array): Uint8Array {
  const line = Buffer.concat([kept, part]);
  if (line.length <= 2 * END_BYTES) return line;
  return Buffer.concat([line.subarray(0, END_BYTES), line.subarray(-END_BYTES)]);
}

/**
 * The top-level `id` of such a line, or null. Of the members of a request only `params` is long, and many clients put the
 * id last: it is found where nothing but short texts is between it and one of the ends.
 */
export function idAtEnds(line: Uint8Array): RequestId | null {
  const textOf = (end: Uint8Array) => Buffer.from(end).toString();
  const [, id] =
    ID_AT_END.exec(textOf(line.subarray(-END_BYTES))) ??
    ID_AT_START.exec(textOf(line.subarray(0, END_BYTES))) ??
    [];
  return id === undefined ? null : idOf(parse(`{"id":${id}}`));
}

const TEXT = String.raw`"(?:[^"\\]|\\.)*"\s*`;
const ID = String.raw`"id"\s*:\s*(${TEXT}|[\d.eE+-]+\s*)`;
const MEMBER = String.raw`"\w*"\s*:\s*${TEXT}`;
const ID_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${MEMBER},\s*)*?${ID},`);
const ID_AT_END = new RegExp(String.raw`${ID}(?:,\s*${MEMBER})*\}\s*$`);
