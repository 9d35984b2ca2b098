import { setTimeout as sleep } from 'node:timers/promises';

/** For a command that stays: when the person, the system or the reader of its output has had enough. */
export interface Stopping {
  readonly stopped: boolean;
  /** Ends early when it is time to stop. */
  pause(ms: number): Promise<void>;
}

/** From here on Ctrl-C, a polite kill and a reader that left end the command, and it can close what it has open. */
export function untilStopped(): Stopping {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort());
  return {
    get stopped() {
      return stop.signal.aborted;
    },
    pause: (ms) => sleep(ms, undefined, { signal: stop.signal }).catch(() => undefined),
  };
}
