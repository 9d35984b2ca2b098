import { setImmediate as nextTurn } from 'node:timers/promises';
import { LIMITS } from '../limits.ts';
import type { ReadKind } from '../tool.ts';

/** Told to calls that were still waiting when the server was told to stop. */
export class NotBegunError extends Error {
  constructor() {
    super('The server is stopping and did not start this call. Restart the server and repeat the call.');
  }
}

/** What the queue knows of a call. */
export interface Queued {
  readonly kind: ReadKind | 'writes';
  readonly raw: unknown;
  /** The call will not begin. */
  refuse(error: NotBegunError): void;
}

/**
 * Stage 1, one queue for the whole server: first come, first served. Calls that wait together are handed to `serve`
 * together, in their order; `serve` never rejects, and the next batch begins when it is done.
 */
export function createToolLock<C extends Queued>(
  serve: (batch: readonly C[]) => Promise<void>,
  room: () => Promise<void> | undefined = () => undefined,
) {
  const waiting: C[] = [];
  let running: Promise<void> | undefined;
  let beside: Promise<unknown> = Promise.resolve();
  let isClosed = false;
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });

  /** Waits while the client does not read. Answers whether calls may still begin. */
  async function hasRoom(): Promise<boolean> {
    // First a turn of the event loop: answers leave, and what has come in meanwhile is waiting then.
    await nextTurn();
    return await mayBegin();
  }

  async function mayBegin(): Promise<boolean> {
    const more = room();
    if (more !== undefined) await Promise.race([more, ended]);
    return !isClosed;
  }

  async function run(): Promise<void> {
    // Everything that came in one chunk of input is added before this goes on: a call that comes alone need not wait a turn.
    await mayBegin();
    for (; waiting.length > 0; await hasRoom()) {
      const batch = waiting.splice(0, batchLength(waiting));
      if (batch.length > 0) await serve(batch);
    }
    running = undefined;
  }

  function refuseAll(): void {
    for (const call of waiting.splice(0)) call.refuse(new NotBegunError());
  }

  return {
    /** Whether nobody waits. */
    get isFree(): boolean {
      return waiting.length === 0;
    },
    add(call: C): void {
      waiting.push(call);
      if (isClosed) refuseAll();
      else running ??= run();
    },
    hasRoom,
    /** Runs work that may take long beside the batches, one piece after the other. It never rejects. */
    runBeside(work: () => Promise<void>): void {
      beside = beside.then(hasRoom).then(work);
    },
    /** From now on no call begins; resolves when nothing runs. */
    async close(): Promise<void> {
      isClosed = true;
      end();
      refuseAll();
      await running;
      await beside;
    },
  };
}

/** How many calls from the front of the queue are taken together. A snapshot shows what was committed, so it is not taken with writes. */
function batchLength(waiting: readonly Queued[]): number {
  let bytes = 0;
  const kinds = new Set<Queued['kind']>();
  for (const [length, { kind, raw }] of waiting.entries()) {
    kinds.add(kind);
    // The first is taken whatever its size: no need to measure a call that is alone.
    if (waiting.length > 1) bytes += bytesOf(raw);
    const isApart = kinds.has('long') || (kinds.has('snapshot') && kinds.has('writes'));
    const isTooMuch = length === LIMITS.batchCallsMax || bytes > LIMITS.batchBytesMax;
    if (length > 0 && (isApart || isTooMuch)) return length;
  }
  return waiting.length;
}

/** About as long as their JSON: to write most arguments as JSON only to measure them takes as long as to validate them. */
function bytesOf(raw: unknown): number {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return jsonLength(raw);
  let bytes = 0;
  for (const [name, value] of Object.entries(raw))
    bytes += name.length + (typeof value === 'string' ? value.length : jsonLength(value));
  return bytes;
}

function jsonLength(value: unknown): number {
  try {
    return JSON.stringify(value)?.length ?? 0;
  } catch {
    // Nested deeper than anything recursive can follow: it will be refused, and may take its time alone.
    return Number.POSITIVE_INFINITY;
  }
}
