import { setTimeout as sleep } from 'node:timers/promises';

export type Stopping = ReturnType<typeof untilStopped>;

/**
 * For a command that keeps running: from now on, Ctrl-C, SIGTERM and a closed output stop it, and it can still close its
 * files.
 */
export function untilStopped() {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort());
  const { signal } = stop;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);
  return {
    get stopped() {
      return signal.aborted;
    },
    /** Ends early when it is time to stop. */
    pause,
    /** Repeats `step` with the position that the step before it reached, and pauses where that was no further one. */
    async follow(from: number, ms: number, step: (position: number) => Promise<number>): Promise<void> {
      for (let position = from; !signal.aborted; ) {
        const reached = await step(position);
        if (reached === position) await pause(ms);
        position = reached;
      }
    },
  };
}
