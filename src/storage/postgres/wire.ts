import type { SqlList, SqlValue } from '../engine.ts';

/** A statement as the server knows it. */
export interface Prepared {
  /** '' where it is prepared for one use only. */
  readonly name: string;
  readonly text: string;
  /** Whether the server has it: not yet, by what was sent last, or it failed there and nobody knows. */
  state: 'new' | 'sent' | 'unsure';
  /** How its rows are read; undefined until the server has told. */
  columns: readonly Column[] | undefined;
}

export interface Column {
  readonly name: string;
  readonly parse: (text: string) => SqlValue;
}

const BIGGEST = 9_223_372_036_854_775_807n;

/** A number as the server reads it. Beyond what 64 bits hold, every number is the largest. */
function textOf(value: number): string {
  return String(value > -9e18 && value < 9e18 ? value : value > 0 ? BIGGEST : -BIGGEST - 1n);
}

/** The protocol's messages by their first byte. */
const [PARSE, BIND, DESCRIBE, EXECUTE, CLOSE, SYNC] = [...'PBDECS'].map((code) => code.charCodeAt(0)) as [
  ...[number, number, number, number, number, number],
];

const KEPT_BYTES = 16_384;
const KEPT_BYTES_MAX = 1_048_576;

/** The protocol counts them in two bytes. */
const PARAMS_MAX = 65_535;

/** Bytes that a number, a name or what frames them can take at most. */
const SMALL = 64;

/**
 * Statements on their way, written one behind the other into one piece: the library sends each of its messages by itself,
 * describes what is known, and lets the server answer every statement in a packet of its own.
 */
export class Outbox {
  #bytes = Buffer.allocUnsafe(KEPT_BYTES);
  #length = 0;

  /** Adds a statement. The server describes its rows only as long as nobody knows them. */
  add(prepared: Prepared, params: SqlList): void {
    const { name, text, state } = prepared;
    if (params.length > PARAMS_MAX) throw new Error(`${params.length} parameters of one statement`);
    if (state === 'unsure') this.#message(CLOSE, () => this.#string(`S${name}`));
    if (state !== 'sent' || name === '')
      this.#message(PARSE, () => {
        this.#string(name);
        this.#string(text);
        this.#short(0);
      });
    this.#message(BIND, () => this.#bind(name, params));
    if (prepared.columns === undefined) this.#message(DESCRIBE, () => this.#string('P'));
    this.#message(EXECUTE, () => {
      this.#string('');
      this.#long(0);
    });
    prepared.state = 'sent';
  }

  /** Everything that was added, as one piece that the server answers as a whole. */
  take(): Buffer {
    this.#message(SYNC, () => undefined);
    const taken = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    // What one large text needed is not kept for ever.
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = Buffer.allocUnsafe(KEPT_BYTES);
    return taken;
  }

  #bind(name: string, params: SqlList): void {
    this.#string('');
    this.#string(name);
    this.#short(params.length);
    this.#room(2 * params.length);
    for (const value of params) this.#short(value instanceof Uint8Array ? 1 : 0);
    this.#short(params.length);
    for (const value of params) this.#value(value);
    // Every column as text.
    this.#short(0);
  }

  #value(value: SqlValue): void {
    if (value === null) this.#long(-1);
    else if (value instanceof Uint8Array) {
      this.#room(value.length);
      this.#long(value.length);
      this.#bytes.set(value, this.#length);
      this.#length += value.length;
    } else {
      const text = typeof value === 'number' ? textOf(value) : value;
      this.#room(3 * text.length);
      const at = this.#length;
      this.#length += 4;
      this.#length += this.#bytes.write(text, this.#length);
      this.#bytes.writeInt32BE(this.#length - at - 4, at);
    }
  }

  /** A message: its code, its length without the code, and what it says. */
  #message(code: number, write: () => void): void {
    this.#room(0);
    this.#bytes[this.#length] = code;
    const at = this.#length + 1;
    this.#length += 5;
    write();
    this.#bytes.writeInt32BE(this.#length - at, at);
  }

  #string(text: string): void {
    this.#room(3 * text.length);
    this.#length += this.#bytes.write(text, this.#length);
    this.#bytes[this.#length] = 0;
    this.#length += 1;
  }

  #short(value: number): void {
    this.#room(0);
    this.#length = this.#bytes.writeUInt16BE(value, this.#length);
  }

  #long(value: number): void {
    this.#room(0);
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
  }

  /** Makes room for so many bytes and what frames them. */
  #room(more: number): void {
    const wanted = this.#length + more + SMALL;
    if (wanted <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * wanted);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
