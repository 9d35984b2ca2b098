const BYTES = 32;

/** Digests by number, 32 bytes each: a million of them in 32 MB, where a Map of strings takes four times that. */
export class Digests {
  #bytes = Buffer.alloc(1_024 * BYTES);
  readonly #slots: Map<number, number> | undefined;
  #size = 0;

  /** Dense ones are numbered 1, 2, 3 … and grow at the end only; others may have any numbers. */
  constructor(dense: boolean) {
    this.#slots = dense ? undefined : new Map();
  }

  get size(): number {
    return this.#size;
  }

  /** False for a number that would leave a gap. */
  set(number: number, hash: string): boolean {
    const slot = this.#slotFor(number);
    if (slot === undefined) return false;
    if (slot * BYTES === this.#bytes.length)
      this.#bytes = Buffer.concat([this.#bytes], 2 * this.#bytes.length);
    this.#bytes.write(hash, slot * BYTES, 'hex');
    if (slot === this.#size) this.#size += 1;
    return true;
  }

  get(number: number): string | undefined {
    const slot = this.#slots === undefined ? number - 1 : this.#slots.get(number);
    if (slot === undefined || !(slot >= 0 && slot < this.#size)) return undefined;
    return this.#bytes.toString('hex', slot * BYTES, (slot + 1) * BYTES);
  }

  #slotFor(number: number): number | undefined {
    if (this.#slots === undefined) return number >= 1 && number <= this.#size + 1 ? number - 1 : undefined;
    const slot = this.#slots.get(number) ?? this.#size;
    this.#slots.set(number, slot);
    return slot;
  }
}
