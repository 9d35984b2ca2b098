import { LIMITS } from '../limits.ts';
import type { RequestId } from './message.ts';
import { OversizedLine } from './oversized-line.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export interface LineHandlers {
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
      this.#forget();
    }
    if (this.#passing !== undefined) this.#passing.feed(part);
    else if (part.length > 0) {
      this.#chunks.push(part);
      this.#length += part.length;
    }
  }

  #endLine(): void {
    const passing = this.#passing;
    const [only] = this.#chunks;
    const line = trim(
      this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks),
      this.#atStart,
    );
    this.#forget();
    this.#passing = undefined;
    this.#atStart = false;
    if (passing !== undefined) this.#handlers.oversized(passing.end());
    else if (line.length > 0) this.#handlers.line(line);
  }

  #forget(): void {
    this.#chunks = [];
    this.#length = 0;
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
  return byte === 0x20 || byte === 0x09 || byte === CARRIAGE_RETURN;
}
