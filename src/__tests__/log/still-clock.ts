import type { Clock } from '../../clock.ts';

/** A clock that stands until it is set, with ids and salts that only count. */
export interface StillClock extends Clock {
  set(ms: number): void;
}

export const NEW_YEAR = Date.UTC(2026, 0, 1);

export function stillClock(at: number = NEW_YEAR): StillClock {
  let now = at;
  let count = 0;
  const next = (digits: number) => {
    count += 1;
    return String(count).padStart(digits, '0');
  };
  return {
    now: () => now,
    monotonic: () => now - at,
    uuid: () => `00000000-0000-4000-8000-${next(12)}`,
    salt: () => next(32),
    set(ms) {
      now = ms;
    },
  };
}
