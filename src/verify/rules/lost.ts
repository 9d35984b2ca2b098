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

  /** They were added in order. In a damaged log every second row may be one, so looking through all would take too long. */
  has(position: number): boolean {
    let [low, high] = [0, this.#ranges.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((this.#ranges[middle]?.to ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    return (this.#ranges[low]?.from ?? Number.POSITIVE_INFINITY) <= position;
  }
}
