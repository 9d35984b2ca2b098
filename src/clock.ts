import { randomFillSync, randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { withinFourDigits } from './instant.ts';
import { LIMITS } from './limits.ts';

/** The only source of time and randomness; tests put a still one in its place. */
export type Clock = typeof systemClock;

export const systemClock = Object.freeze({
  /** Wall time in milliseconds since 1970. May jump; never used for order. */
  now: () => withinFourDigits(Date.now()),
  /** Milliseconds that never run backwards, for durations and deadlines. */
  monotonic: () => performance.now(),
  uuid: (): string => randomUUID(),
  /** 128 random bits in lowercase hex. */
  salt: () => takeSalt(),
});

// One visit to the kernel for 256 salts: asking each time costs as much as hashing a row.
const pool = Buffer.alloc(4_096);
let used = pool.length;

function takeSalt(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += 16;
  return pool.toString('hex', used - 16, used);
}

/** For long reads: lets others run where that was last done longer ago than one slice. */
export function pauseEvery(
  clock: Pick<Clock, 'monotonic'>,
  pause: () => Promise<void> = nextTurn,
): () => Promise<void> {
  let last = clock.monotonic();
  return async () => {
    if (clock.monotonic() - last < LIMITS.sliceMsMax) return;
    await pause();
    last = clock.monotonic();
  };
}
