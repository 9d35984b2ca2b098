const NEWLINE = 0x0a;

/** Where the lines of a file begin and end, without their newlines. A last line that does not end is an error. */
export class Lines {
  readonly bytes: Uint8Array;
  /** Beginnings; one more than there are lines. */
  readonly #starts: number[] = [0];

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, end + 1))
      this.#starts.push(end + 1);
  }

  get length(): number {
    return this.#starts.length - 1;
  }

  get isCutOff(): boolean {
    return this.#starts.at(-1) !== this.bytes.length;
  }

  at(index: number): Uint8Array {
    return this.bytes.subarray(this.#starts[index], (this.#starts[index + 1] ?? 1) - 1);
  }
}
