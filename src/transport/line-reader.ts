import { LIMITS } from '../limits.ts';
import type { RequestId } from './message.ts';

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

const [QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, COMMA, COLON] =
  Buffer.from('"\\{}[],:');

/** An id written in escapes only, with its quotes and the mark before it; anything longer is none. */
const TOKEN_BYTES_MAX = LIMITS.requestIdCharsMax * '\\u0000'.length + 3;

/**
 * Watches a line that is too long to keep go by, and picks out its top-level `id`, wherever it is (many clients put
 * it last). Keeps no more than one short token at a time.
 */
export class OversizedLine {
  #depth = 0;
  #inText = false;
  #escaped = false;
  /** Begins with the brace, colon or comma before it. */
  #token: number[] = [];
  #key = '';
  #id: RequestId | null = null;

  feed(bytes: Uint8Array): void {
    for (const byte of bytes) this.#feedByte(byte);
  }

  /** The id found, or null. */
  end(): RequestId | null {
    this.#endValue();
    return this.#id;
  }

  #feedByte(byte: number): void {
    if (this.#inText) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) this.#inText = false;
    } else if (byte === QUOTE) this.#inText = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (this.#depth === 1) this.#endValue();
      this.#depth -= 1;
    } else if (this.#depth === 1 && byte === COLON) this.#key = this.#takeToken();
    else if (this.#depth === 1 && byte === COMMA) this.#endValue();
    // Only what is at the top level can be a key or the id.
    if (this.#depth === 1 && this.#token.length <= TOKEN_BYTES_MAX) this.#token.push(byte);
  }

  #endValue(): void {
    const text = this.#takeToken();
    if (this.#key !== '"id"') return;
    this.#key = '';
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === 'string' && value.length <= LIMITS.requestIdCharsMax) this.#id = value;
      if (typeof value === 'number' && Number.isFinite(value)) this.#id = value;
    } catch {
      // Cut off or no id: the client gets its answer with id null.
    }
  }

  #takeToken(): string {
    const token = this.#token.length > TOKEN_BYTES_MAX ? [] : this.#token;
    this.#token = [];
    return Buffer.from(token).toString('utf8').slice(1).trim();
  }
}
