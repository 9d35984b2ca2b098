import type { StorageEngine } from '../../storage/engine.ts';
import { Tally } from '../glance.ts';
import { callsBetween, tellCalls } from '../past-calls.ts';

const WINDOW_ROWS = 1_000;

/**
 * Counts the calls of a log in the background and goes on where it stopped when there are more. What it says is the word of
 * this process: nobody can check a count without reading the log.
 */
export class Counting {
  readonly tally = new Tally();
  /** The last row that was counted. */
  through = 0;
  readonly #storage: StorageEngine;
  readonly #pause: () => Promise<void>;
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(storage: StorageEngine, pause: () => Promise<void>) {
    this.#storage = storage;
    this.#pause = pause;
  }

  /** Resolves when everything up to this row is counted. */
  async catchUp(size: number): Promise<void> {
    while (this.through < size && !this.#isStopped) {
      this.#running ??= this.#count(size).finally(() => {
        this.#running = undefined;
      });
      await this.#running;
    }
  }

  /** Counts no further: the database is about to be closed. */
  stop(): void {
    this.#isStopped = true;
  }

  async #count(size: number): Promise<void> {
    while (this.through < size && !this.#isStopped) {
      const [first, last] = [this.through + 1, Math.min(size, this.through + WINDOW_ROWS)];
      // A transaction for each, so that none lasts long.
      const calls = await this.#storage.read(async (tx) =>
        tellCalls(tx, await callsBetween(tx, first, last)),
      );
      for (const call of calls) this.tally.add(call);
      this.through = last;
      await this.#pause();
    }
  }
}
