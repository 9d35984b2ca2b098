import { LIMITS } from '../limits.ts';
import type { RequestId } from './message.ts';

const [QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, COMMA, COLON] = [
  ...'"\\{}[],:',
].map((c) => c.charCodeAt(0));

/** An id written in escapes only, with its quotes; anything longer is none. */
const TOKEN_BYTES_MAX = LIMITS.requestIdCharsMax * '\\u0000'.length + 2;

/**
 * Watches a line that is too long to keep go by, and picks out its top-level `id`, wherever it stands (many clients put
 * it last). Keeps no more than one short token at a time.
 */
export class OversizedLine {
  #depth = 0;
  #inText = false;
  #escaped = false;
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
      this.#keep(byte);
      return;
    }
    if (byte === QUOTE) this.#inText = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#close();
    if (this.#depth === 1 && byte === COLON) this.#endKey();
    else if (this.#depth === 1 && byte === COMMA) this.#endValue();
    else if (byte !== OPEN_BRACE) this.#keep(byte);
  }

  /** Only what stands at the top level can be a key or the id. */
  #keep(byte: number): void {
    if (this.#depth === 1 && this.#token.length <= TOKEN_BYTES_MAX) this.#token.push(byte);
  }

  #close(): void {
    if (this.#depth === 1) this.#endValue();
    this.#depth -= 1;
  }

  #endKey(): void {
    this.#key = this.#takeToken();
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
    const text = this.#token.length > TOKEN_BYTES_MAX ? '' : Buffer.from(this.#token).toString('utf8').trim();
    this.#token = [];
    return text;
  }
}
