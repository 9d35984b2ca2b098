export type ToolLock = ReturnType<typeof createToolLock>;

/** Thrown to work that was still waiting when the server was told to stop. */
export class NotBegunError extends Error {
  constructor() {
    super('The server is stopping and did not begin this call. Start it again and repeat the call.');
  }
}

/** Stage 1, one queue for the whole server: first come, first served; one at a time; released whatever the work does. */
export function createToolLock() {
  let tail: Promise<void> = Promise.resolve();
  let release: () => void = () => undefined;
  let closed = false;
  let places = 0;

  async function acquire(): Promise<void> {
    places += 1;
    const before = tail;
    let free: () => void = () => undefined;
    tail = new Promise((resolve) => {
      free = () => {
        places -= 1;
        resolve();
      };
    });
    await before;
    release = free;
  }

  return {
    /** Whether nobody holds it and nobody waits for it. */
    get isFree(): boolean {
      return places === 0;
    },
    /** Runs `work` when everything that asked before has ended. Never rejects by itself. */
    async run<T>(work: () => Promise<T>): Promise<T> {
      await acquire();
      try {
        if (closed) throw new NotBegunError();
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
      closed = true;
      // Work that yields gives up its place and takes a new one: wait until no place is taken.
      for (let last: Promise<void> | undefined; last !== tail; ) {
        last = tail;
        await last;
      }
    },
  };
}
