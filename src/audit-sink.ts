import type { Transaction } from './storage/engine.ts';
import type { Effect } from './tool.ts';

/** How a call ended, as its exit row says it. */
export type CallOutcome = 'ok' | 'error' | 'rejected' | 'denied' | 'crashed';

/** What stage 3 tells the sink. Frozen. */
export interface ToolEnterEvent {
  readonly tool: string;
  /** After validation; the raw arguments when they were rejected. */
  readonly args: unknown;
  /** Monotonic milliseconds at the moment the call entered. */
  readonly timestamp: number;
  readonly correlationId: string;
  readonly actor: string;
  readonly mutates: boolean;
  readonly schemaValid: boolean;
  /** Which arguments were repaired before validation, by path. */
  readonly repaired: readonly string[];
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

/** Where the calls of this server are written down. The log is one; a test's array is another. */
export interface AuditSink {
  enter(event: ToolEnterEvent): Promise<void> | void;
  /** For a writing call `tx` is the transaction of its effects: the row must go into it, so that both exist or neither. */
  exit(event: ToolExitEvent, tx?: Transaction): Promise<void> | void;
  /** Where in the log the exit row of the call that owns `tx` will stand, and the time it will carry at the earliest. */
  place?(tx: Transaction): Promise<{ readonly position: number; readonly at: string }>;
}
