import type { Clock } from '../../clock.ts';
import { asError } from '../../errors.ts';
import type { ServerVerdict, VerdictState } from './form.ts';

type Judge = () => Promise<Omit<ServerVerdict, 'checkedAt'>>;

/** Between two verifications at least this, and so many times what the last one took: it must not keep a core busy. */
const REST_MS_MIN = 20_000;
const REST_FACTOR = 10;

/** Verifies the whole log, again and again as it grows, and tells what came of it last. */
export class Replay {
  readonly #judge: Judge;
  readonly #clock: Clock;
  #running: { readonly rows: number; readonly beganMs: number } | undefined;
  #verdict: ServerVerdict | undefined;
  #failed: string | undefined;
  #endedMs = Number.NEGATIVE_INFINITY;
  #tookMs = 0;

  constructor(judge: Judge, clock: Clock) {
    this.#judge = judge;
    this.#clock = clock;
  }

  state(): VerdictState {
    return {
      ...(this.#running && {
        running: this.#running.rows,
        runningMs: this.#clock.monotonic() - this.#running.beganMs,
      }),
      ...(this.#verdict && { verdict: this.#verdict, ageMs: this.#clock.monotonic() - this.#endedMs }),
      ...(this.#failed !== undefined && { failed: this.#failed }),
    };
  }

  /** Verifies where there is something new, unless it did so a moment ago. Resolves when it is done. */
  async run(rows: number): Promise<void> {
    const rested = this.#clock.monotonic() - this.#endedMs;
    if (this.#running !== undefined || rows === this.#verdict?.size) return;
    if (rested < Math.max(REST_MS_MIN, REST_FACTOR * this.#tookMs)) return;
    const beganMs = this.#clock.monotonic();
    this.#running = { rows, beganMs };
    try {
      this.#verdict = { ...(await this.#judge()), checkedAt: new Date(this.#clock.now()).toISOString() };
      this.#failed = undefined;
    } catch (error) {
      this.#failed = asError(error).message;
    }
    this.#endedMs = this.#clock.monotonic();
    this.#tookMs = this.#endedMs - beganMs;
    this.#running = undefined;
  }
}
