import { randomBytes, randomUUID } from 'node:crypto';

/** The only source of time and randomness; tests put a still one in its place. */
export interface Clock {
  /** Wall time in milliseconds since 1970. May jump; never used for order. */
  now(): number;
  /** Milliseconds that never run backwards, for durations and deadlines. */
  monotonic(): number;
  uuid(): string;
  /** 128 random bits in lowercase hex. */
  salt(): string;
}

export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  uuid: () => randomUUID(),
  salt: () => randomBytes(16).toString('hex'),
});
