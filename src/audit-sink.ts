import type { CallSource } from './log/row.ts';
import type { KeptArguments } from './log/texts.ts';
import type { Transaction } from './storage/engine.ts';
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
  /** What a writing call was told from outside the database. */
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
}

/** Where in the log the exit row of a writing call will be, and the one time the call has. */
export interface Reserved {
  readonly position: number;
  readonly at: string;
  readonly process: string;
}

/** Where the calls of this server are written down. The log is one; a test's array is another. */
export interface AuditSink {
  enter(event: ToolEnterEvent): Promise<void> | void;
  /** `reserved` is what `reserve` answered: the row of a writing call goes into that transaction, both or neither. */
  exit(event: ToolExitEvent, reserved?: Reserved): Promise<void> | void;
  /** Reads the head of the log once for the transaction that a writing call is about to fill. */
  reserve?(tx: Transaction): Promise<Reserved>;
}
