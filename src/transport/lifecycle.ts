import { LIMITS } from '../limits.ts';

/** Exit codes a supervisor can tell apart. */
export const EXIT = { ok: 0, refused: 1, io: 74, startupTimeout: 75, secondSignal: 130 } as const;

/** What stopping means to the rest of the server. */
export interface Stoppable {
  /** Reads no more input. */
  stopReading(): void;
  /** Resolves when everything received was answered. */
  drained(): Promise<void>;
  /** Calls that were not begun are not begun any more; resolves when the running one has ended. */
  finishRunning(): Promise<void>;
  /** Resolves when the last answer left the process. */
  flushed(): Promise<void>;
  /** Merges and closes the database. */
  close(): Promise<void>;
}

export interface Lifecycle {
  /** The client closed its end: answer what it sent, then go. */
  endOfInput(): void;
  /** Something outside the calls makes going on wrong: go with this code. */
  abort(code: number): void;
}

/**
 * Ends the process when its client goes, whichever way it goes: end of input, a signal, or a parent that died without
 * either. stdin closing is the only one of these that every platform delivers.
 */
export function superviseProcess(
  server: Stoppable,
  log: (...parts: unknown[]) => void,
  exit = process.exit,
): Lifecycle {
  let stopping = false;
  const parent = process.ppid;

  async function stop(reason: string, drainMsMax: number, code: number): Promise<void> {
    if (stopping) return;
    stopping = true;
    log(`stopping: ${reason}`);
    server.stopReading();
    if (drainMsMax > 0) await within(server.drained(), drainMsMax);
    await within(
      server.finishRunning().then(() => server.drained()),
      LIMITS.stopWaitMsMax,
    );
    await within(server.flushed(), LIMITS.drainMsMax);
    await within(server.close(), LIMITS.drainMsMax);
    exit(code);
  }

  function onSignal(signal: NodeJS.Signals): void {
    if (stopping) exit(EXIT.secondSignal);
    void stop(`received ${signal}`, 0, EXIT.ok);
  }

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  // A client that was killed behind a wrapper leaves our stdin open; then only the parent's death tells.
  setInterval(() => {
    if (process.ppid !== parent) void stop('the parent process is gone', 0, EXIT.ok);
  }, LIMITS.parentCheckMs).unref();

  return {
    endOfInput: () => void stop('end of input', LIMITS.drainMsMax, EXIT.ok),
    abort: (code) => void stop('the database failed', 0, code),
  };
}

/** Waits for `work`, but not longer than `msMax`, and not for its error: a stop goes on. */
export async function within(work: Promise<unknown>, msMax: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, msMax);
  });
  await Promise.race([work.then(undefined, () => undefined), deadline]);
  clearTimeout(timer);
}
