import { systemClock } from '../clock.ts';
import { LIMITS } from '../limits.ts';

/**
 * Keeps the event loop turning for a moment after an answer, while a client sends each request as soon as it has the answer
 * to the one before. A loop that sleeps is woken by another core and finds its caches cold, which is a tenth of a read. It
 * takes the core from others, so it begins only after several such requests, and ends with the first that comes later.
 */
export class Wakefulness {
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** How many came at once in a row, each while nothing else was asked. */
  #quick = 0;
  /** Tells the wait that runs from those before. */
  #wait = 0;

  /** A line has come in; `isAlone`: all requests before it have their answers. */
  received(isAlone: boolean): void {
    const isQuick = isAlone && systemClock.monotonic() - this.#answeredAt < LIMITS.awakeMsMax;
    this.#quick = isQuick ? this.#quick + 1 : 0;
    this.#wait += 1;
  }

  /** The answer has left, and nobody waits for another. */
  answered(): void {
    this.#answeredAt = systemClock.monotonic();
    if (this.#quick < LIMITS.quickRequestsMin) return;
    const [wait, until] = [this.#wait, this.#answeredAt + LIMITS.awakeMsMax];
    // Counted, too: a clock that stands still must not keep a core busy for ever.
    let turns = 0;
    const turn = () => {
      turns += 1;
      const isOver = wait !== this.#wait || turns > LIMITS.awakeTurnsMax || systemClock.monotonic() >= until;
      if (!isOver) setImmediate(turn);
    };
    turn();
  }
}
