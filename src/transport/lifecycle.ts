import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '../limits.ts';
import type { StdioTransport } from './stdio.ts';

/** Exit codes a supervisor can tell apart. */
export const EXIT = { ok: 0, refused: 1, io: 74, startupTimeout: 75, secondSignal: 130 } as const;

/** What stopping means to the rest of the server. */
interface Stoppable {
  /** Calls that were not begun are not begun any more; resolves when the running one has ended. */
  finishRunning(): Promise<void>;
  /** Merges and closes the database. */
  close(): Promise<void>;
}

/**
 * Ends the process when its client goes, whichever way it goes: end of input, a signal, or a parent that died without
 * either. stdin closing is the only one of these that every platform delivers. The answer ends it with a code, for when
 * something outside the calls makes going on wrong.
 */
export function superviseProcess(
  transport: StdioTransport,
  server: Stoppable,
  log: (...parts: unknown[]) => void,
): (code: number) => void {
  let stopping = false;
  let exitCode: number = EXIT.ok;
  const parent = process.ppid;

  async function stop(reason: string, drainMsMax: number, code: number): Promise<void> {
    // The database may fail during a stop that began for another reason.
    exitCode = Math.max(exitCode, code);
    if (stopping) return;
    stopping = true;
    log(`stopping: ${reason}`);
    transport.stopReading();
    if (drainMsMax > 0) await within(transport.drained(), drainMsMax);
    await within(
      server.finishRunning().then(() => transport.drained()),
      LIMITS.stopWaitMsMax,
    );
    await within(transport.flushed(), LIMITS.drainMsMax);
    await within(server.close(), LIMITS.drainMsMax);
    process.exit(exitCode);
  }

  function onSignal(signal: NodeJS.Signals): void {
    if (stopping) process.exit(EXIT.secondSignal);
    void stop(`received ${signal}`, 0, EXIT.ok);
  }

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  // A client that was killed behind a wrapper leaves our stdin open; then only the parent's death tells.
  setInterval(() => {
    if (process.ppid !== parent) void stop('the parent process is gone', 0, EXIT.ok);
  }, LIMITS.parentCheckMs).unref();

  // The client closed its end: answer what it sent, then go.
  transport.onend = () => void stop('end of input', LIMITS.drainMsMax, EXIT.ok);
  return (code) => void stop('the database failed', 0, code);
}

/** Waits for `work`, but not longer than `msMax`, and not for its error. Answers whether it ended in time. */
export async function within(work: Promise<unknown>, msMax: number): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(msMax, false, { signal: timer.signal });
  const ended = work.then(
    () => true,
    () => true,
  );
  return await Promise.race([ended, late.catch(() => false)]).finally(() => timer.abort());
}
