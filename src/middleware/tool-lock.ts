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

/** What is known of a batch once the next one may begin. */
export interface Served {
  /** Resolves when its answers have left. Absent where it is not worth waiting for the calls that follow them. */
  readonly left?: Promise<void> | undefined;
}

/** What the queue asks of the stages behind it. None of it rejects. */
interface Behind<C> {
  /** Runs calls that were taken together. */
  serve(batch: readonly C[]): Promise<Served>;
  /** While the client does not read: resolves when there is room for more. */
  room?(): Promise<void> | undefined;
}

/**
 * Stage 1, one queue for the whole server: first come, first served. Calls that wait together are handed to `serve`
 * together, in their order, and the next batch begins when it is done.
 */
export function createToolLock<C extends Queued>({ serve, room }: Behind<C>) {
  const waiting: C[] = [];
  /** Set while a batch is held back: how many calls it is held for, and what lets it begin. */
  let held: { readonly calls: number; begin(why: LetGo): void } | undefined;
  /** How many batches begin at once after calls did not come back in time, and how many of them are still to come. */
  let [doubt, unheld] = [0, 0];
  /** How many batches in a row were worth holding back. */
  let worth = 0;
  /** Writing calls of the batch that was taken last, and all that were taken and whose answers have not left. */
  let [taken, unanswered] = [0, 0];
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
    const more = room?.();
    if (more !== undefined) await Promise.race([more, ended]);
    return !isClosed;
  }

  async function run(): Promise<void> {
    // Everything that came in one chunk of input is added before this goes on: a call that comes alone need not wait a turn.
    await mayBegin();
    for (; waiting.length > 0; await hasRoom()) {
      const batch = waiting.splice(0, batchLength(waiting));
      if (batch.length === 0) continue;
      taken = batch.filter(isWriting).length;
      unanswered += taken;
      const [before, tookAll] = [unanswered, waiting.length === 0];
      const { left } = await serve(batch);
      // How many of those whose answers have left since are on their way back already, nobody can say.
      const inFlight = Math.max(before, unanswered + waiting.length);
      const writes = taken;
      const answered = () => {
        unanswered -= writes;
      };
      if (left === undefined) answered();
      else await hold(left.then(answered), tookAll ? inFlight : 0);
    }
    running = undefined;
  }

  /**
   * Holds the next batch back until as many writes wait as were in flight. A client that has many of them sends the next as
   * soon as it is answered. Taken in two groups in turns, each with two commits and two signatures, they cost a fifth more.
   * A read waits for nobody, and nothing waits for a slow disk: other calls can be served during its sync.
   */
  async function hold(left: Promise<void>, calls: number): Promise<void> {
    if (calls < 2 || calls > LIMITS.batchCallsMax || isClosed || !waiting.every(isWriting)) return;
    if (unheld > 0) {
      unheld -= 1;
      return;
    }
    const why = await new Promise<LetGo>((resolve) => {
      const timer = setTimeout(() => begin('late'), LIMITS.holdMsMax);
      const begin = (reason: LetGo) => {
        clearTimeout(timer);
        held = undefined;
        resolve(reason);
      };
      const own = { calls, begin };
      held = own;
      void left.then(() => {
        if (held === own) timer.refresh();
      });
    });
    // A wait for nothing costs as much as several that were worth it gain. After many of these, a single one says nothing: the
    // client has stopped for a moment, or has sent all it had.
    if (why === 'late' && worth < WORTH_MANY) doubt = Math.min(DOUBT_STEP * (doubt + 1) - 1, DOUBT_MAX);
    if (why === 'complete') doubt = Math.floor(doubt / 2);
    if (why !== 'passed') worth = why === 'complete' ? worth + 1 : 0;
    unheld = doubt;
  }

  function refuseAll(): void {
    for (const call of waiting.splice(0)) call.refuse(new NotBegunError());
  }

  return {
    /** Whether nobody waits, for a turn or for an answer, but the calls that run. */
    get isAlone(): boolean {
      return waiting.length === 0 && unanswered === taken;
    },
    add(call: C): void {
      waiting.push(call);
      if (!isWriting(call)) held?.begin('passed');
      else if (held !== undefined && waiting.length >= held.calls) held.begin('complete');
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
      held?.begin('passed');
      end();
      refuseAll();
      await running;
      await beside;
    },
  };
}

/** Why a batch that was held back begins: all are there, they did not come in time, or somebody came who waits for nobody. */
type LetGo = 'complete' | 'late' | 'passed';

/** How many batches begin at once, at most, for one that was held back for nothing, and how fast it comes to that. */
const DOUBT_MAX = 63;
const DOUBT_STEP = 4;
/** After so many that were worth it, one that was not is forgiven. */
const WORTH_MANY = 8;

function isWriting({ kind }: Queued): boolean {
  return kind === 'writes';
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
