import { isHash } from '../integrity/digest.ts';

// What calls name, for as many calls as there are: a few bytes each, outside the heap.

/** Pairs of a task and the exit row of a call on it. */
export class TaskCalls {
  #tasks = new Float64Array(1_024);
  #positions = new Float64Array(1_024);
  #size = 0;

  add(task: number, position: number): void {
    this.#tasks = withRoom(this.#tasks, this.#size);
    this.#positions = withRoom(this.#positions, this.#size);
    this.#tasks[this.#size] = task;
    this.#positions[this.#size] = position;
    this.#size += 1;
  }

  /** By task, then by position: the order of the table's key. */
  inOrder(): { readonly tasks: Float64Array; readonly positions: Float64Array } {
    const tasks = this.#tasks;
    // Pairs were added by position, so that their place decides between two of one task.
    const order = new Uint32Array(this.#size).map((_, i) => i);
    order.sort((a, b) => (tasks[a] ?? 0) - (tasks[b] ?? 0) || a - b);
    const sorted = (values: Float64Array) => Float64Array.from(order, (i) => values[i] ?? 0);
    return { tasks: sorted(tasks), positions: sorted(this.#positions) };
  }
}

/** Digests of texts and the enter rows that name them. Sixteen digits of a digest tell ten million apart. */
export class NamedTexts {
  #digests = new BigUint64Array(1_024);
  #positions = new Float64Array(1_024);
  #size = 0;

  add(digest: string, position: number): void {
    this.#digests = withRoom(this.#digests, this.#size);
    this.#positions = withRoom(this.#positions, this.#size);
    this.#digests[this.#size] = shortened(digest);
    this.#positions[this.#size] = position;
    this.#size += 1;
  }

  /** The position that names a digest. Looks at all of them: hardly a log asks for it. */
  positionOf(digest: string): number | undefined {
    const at = isHash(digest) ? this.#digests.subarray(0, this.#size).indexOf(shortened(digest)) : -1;
    return this.#positions.subarray(0, this.#size)[at];
  }

  /** The positions that name a digest again. */
  repeated(): number[] {
    const sorted = this.#digests.slice(0, this.#size).sort();
    const twice = new Set(sorted.filter((digest, i) => digest === sorted[i + 1]));
    const again: number[] = [];
    const seen = new Set<bigint>();
    for (let i = 0; twice.size > 0 && i < this.#size; i += 1) {
      const digest = this.#digests[i] ?? 0n;
      if (seen.has(digest)) again.push(this.#positions[i] ?? 0);
      else if (twice.has(digest)) seen.add(digest);
    }
    return again;
  }
}

function shortened(digest: string): bigint {
  return BigInt(`0x${digest.slice(0, 16)}`);
}

/** The list, or one of twice the length that begins with it where it is full. */
function withRoom<T extends Float64Array | BigUint64Array>(list: T, size: number): T {
  if (size < list.length) return list;
  const longer = new (list.constructor as new (length: number) => T)(2 * size);
  new Uint8Array(longer.buffer).set(new Uint8Array(list.buffer));
  return longer;
}
