/** Positions whose rows are missing, unreadable or not what was hashed. What such a row said is unknown. */
export class LostRows {
  readonly #ranges: { readonly from: number; readonly to: number }[] = [];

  add(from: number, to: number = from): void {
    this.#ranges.push({ from, to });
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0;
  }

  /** The last lost position, 0 where none is. */
  get last(): number {
    return this.#ranges.at(-1)?.to ?? 0;
  }

  has(position: number): boolean {
    return this.#ranges.some(({ from, to }) => position >= from && position <= to);
  }
}
