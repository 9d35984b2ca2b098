import { setTimeout as sleep } from 'node:timers/promises';

/** For a command that keeps running: whether it was told to stop. */
export interface Stopping {
  readonly stopped: boolean;
  /** Ends early when it is time to stop. */
  pause(ms: number): Promise<void>;
}

/** From now on, Ctrl-C, SIGTERM and a closed output stop the command, and it can still close its files. */
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
