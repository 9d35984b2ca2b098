import type { Clock } from './clock.ts';
import type { CallSource } from './log/row.ts';
import type { KeptArguments } from './log/texts.ts';
import type { Sooner } from './sooner.ts';
import type { StorageEngine, Transaction } from './storage/engine.ts';
import type { Effect } from './tool.ts';

/** How a call ended, as its exit row says it. */
export type CallOutcome = 'ok' | 'error' | 'rejected' | 'denied' | 'crashed';

/** What stage 3 tells the sink. Frozen. */
export interface ToolEnterEvent {
  readonly tool: string;
  /** After validation; the raw arguments when they were rejected. */
  readonly args: unknown;
  /** The valid arguments as they are kept, with the texts that were taken out of them. */
  readonly kept: KeptArguments | undefined;
  /** Monotonic milliseconds at the moment the call entered. */
  readonly timestamp: number;
  readonly correlationId: string;
  readonly actor: string;
  readonly source: CallSource;
  readonly mutates: boolean;
  readonly schemaValid: boolean;
  /** Which arguments were repaired before validation, by path. */
  readonly repaired: readonly string[];
  /** What a writing call was told from outside the database before its transaction. */
  readonly outside: Readonly<Record<string, unknown>>;
}

/** What stage 5 tells the sink. Frozen. */
export interface ToolExitEvent {
  /** The event this one ends. */
  readonly entered: ToolEnterEvent;
  readonly tool: string;
  readonly correlationId: string;
  readonly durationMs: number;
  readonly outcome: CallOutcome;
  /** The handler's value; present on success. */
  readonly result?: unknown;
  /** Present on failure. */
  readonly error?: Error;
  readonly errorCode?: string;
  readonly effects: readonly Effect[];
  /** All that a writing call was told from outside the database. */
  readonly outside: Readonly<Record<string, unknown>>;
}

/** Where in the log the exit row of a writing call will be, and the one time the call has. */
export interface Reserved {
  /** Position of its enter row; 0 of a call that gets one when it ends. */
  readonly enter: number;
  readonly position: number;
  readonly at: string;
  readonly process: string;
}

/** Where the calls of this server are written down, each one's enter and exit in turn. A test's array is one. */
export interface AuditSink {
  enter(event: ToolEnterEvent): Sooner<void>;
  /** `reserved` where the row goes into the transaction of a writing call: both or neither. */
  exit(event: ToolExitEvent, reserved?: Reserved): Sooner<void>;
}

/** One transaction that handlers fill, and the exit rows of their calls in it. */
export interface OpenRows {
  readonly tx: Transaction;
  /** Where the next exit row will be, if it is that of this call. */
  reserve(entered: ToolEnterEvent): Reserved;
  /** From now on the transaction sees the rows and the texts so far. */
  flush(): Promise<void>;
  /** Whether there are texts that it does not see yet: rows of the log alone are nothing that a point read looks at. */
  hasNewTexts(): boolean;
  /** When an actor of this process last got a row in this transaction. */
  lastSeen(actor: string): string | undefined;
  /** As that of the transaction; rows are taken back with it. */
  savepoint<T>(work: () => Sooner<T>): Promise<T>;
  exit(event: ToolExitEvent, reserved?: Reserved): Sooner<void>;
}

/** Asks on a transaction that was begun what will be asked there first, and lets it remember the answers. */
export type AskAhead = (tx: Transaction) => Promise<void>;

/** What the stages write to: Colibri's own log, which takes calls together, or a sink that takes one at a time. */
export interface CallSink {
  readonly takesBatches: boolean;
  /** The process that the rows name. */
  readonly process: string;
  /** Commits so far. */
  commits(): number;
  /**
   * Stage 3 of calls that were taken together. A long read is recorded before it runs, as a writing call is. `next` may be
   * asked to learn ahead what stage 4 will want to know.
   */
  enter(events: readonly ToolEnterEvent[], isLong?: boolean, next?: AskAhead): Promise<void>;
  /** Stages 4 and 5 in one commit. `soon` as with `StorageEngine`: where none of the calls writes. */
  write<T>(work: (rows: OpenRows) => Sooner<T>, durable?: 'soon'): Promise<T>;
  /**
   * Stage 5 of calls that wrote nothing. Rows that could not be written, though the call's enter row is there, are owed.
   * `held` says why there is no point in trying to write them now.
   */
  exit(events: readonly ToolExitEvent[], held?: Error): Promise<void>;
}

/** Tells a plain sink of one call after the other. */
export function inTurn(sink: AuditSink, storage: StorageEngine, clock: Clock): CallSink {
  return {
    takesBatches: false,
    process: '',
    commits: () => 0,
    async enter(events) {
      for (const event of events) await sink.enter(event);
    },
    write: (work) =>
      storage.write((tx) =>
        work({
          tx,
          reserve: () => ({ enter: 0, position: 0, at: new Date(clock.now()).toISOString(), process: '' }),
          flush: () => Promise.resolve(),
          hasNewTexts: () => false,
          lastSeen: () => undefined,
          savepoint: (inner) => tx.savepoint(inner),
          exit: (event, reserved) => sink.exit(event, reserved),
        }),
      ),
    async exit(events) {
      for (const event of events) await sink.exit(event);
    },
  };
}
