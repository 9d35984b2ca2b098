export interface TaskCall {
  readonly task: number;
  readonly position: number;
}

/** Pairs of a task and the exit row of a call on it, twelve bytes each: there is one for every second row. */
export class TaskCalls {
  #tasks = new Uint32Array(1_024);
  #positions = new Float64Array(1_024);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(task: number, position: number): void {
    if (this.#size === this.#tasks.length) this.#grow();
    this.#tasks[this.#size] = task;
    this.#positions[this.#size] = position;
    this.#size += 1;
  }

  /** By task, then by position: the order of the table's key. */
  *inOrder(): Generator<TaskCall> {
    const order = new Uint32Array(this.#size).map((_, i) => i);
    order.sort((a, b) => this.#compare(a, b));
    for (const i of order) yield { task: this.#tasks[i] ?? 0, position: this.#positions[i] ?? 0 };
  }

  // Pairs were added by position, so that their place decides between two of one task.
  #compare(a: number, b: number): number {
    return (this.#tasks[a] ?? 0) - (this.#tasks[b] ?? 0) || a - b;
  }

  #grow(): void {
    const [tasks, positions] = [this.#tasks, this.#positions];
    this.#tasks = new Uint32Array(2 * this.#size);
    this.#positions = new Float64Array(2 * this.#size);
    this.#tasks.set(tasks);
    this.#positions.set(positions);
  }
}
