export type ToolLock = ReturnType<typeof createToolLock>;

/** Thrown to work that was still waiting when the server was told to stop. */
export class NotBegunError extends Error {
  constructor() {
    super('The server is stopping and did not begin this call. Start it again and repeat the call.');
  }
}

/** Stage 1, one queue for the whole server: first come, first served; one at a time; released whatever the work does. */
export function createToolLock() {
  const waiting: (() => void)[] = [];
  let isHeld = false;
  let isClosed = false;

  async function acquire(): Promise<void> {
    if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
    isHeld = true;
  }

  /** Hands it to the one that waits longest: it is held meanwhile, so that nobody can come in between. */
  function release(): void {
    const next = waiting.shift();
    if (next === undefined) isHeld = false;
    else next();
  }

  return {
    /** Whether nobody holds it and nobody waits for it. */
    get isFree(): boolean {
      return !isHeld;
    },
    /** Runs `work` when everything that asked before has ended. Never rejects by itself. */
    async run<T>(work: () => Promise<T>): Promise<T> {
      await acquire();
      try {
        if (isClosed) throw new NotBegunError();
        return await work();
      } finally {
        release();
      }
    },
    /** From inside `work`: lets everybody who waits go first, then goes on. */
    async yieldToWaiting(): Promise<void> {
      // A full turn of the event loop, so that what has just arrived can queue up. The lock is still held meanwhile:
      // free and without this work in the queue, it would look to `close` as if nothing ran.
      await new Promise((resolve) => setImmediate(resolve));
      release();
      await acquire();
    },
    /** From now on waiting work is told not to begin; resolves when nothing runs. */
    async close(): Promise<void> {
      isClosed = true;
      // Work that yields goes to the end of the queue, behind us: wait until nobody is left.
      while (isHeld) {
        await acquire();
        release();
      }
    },
  };
}
