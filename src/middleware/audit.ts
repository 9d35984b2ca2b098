import type { AuditSink, CallOutcome, Reserved, ToolEnterEvent, ToolExitEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { asError, ColibriError } from '../errors.ts';
import type { Transaction } from '../storage/engine.ts';
import type { Effect } from '../tool.ts';
import { codeOf } from './envelope.ts';

/** How a handler ended. */
export type Settled = { readonly result: unknown } | { readonly error: Error };

export type EnterFacts = Omit<ToolEnterEvent, 'timestamp' | 'correlationId'>;

/** Stages 3 and 5 around one sink. */
export interface AuditStage {
  /** Stage 3. A call that cannot be recorded is not begun. */
  enter(facts: EnterFacts): Promise<ToolEnterEvent>;
  /** Stage 5. With `tx` a failure rolls the call back; without, it is logged and changes no answer. */
  exit(entered: ToolEnterEvent, settled: Settled, end: End): Promise<void>;
}

/** What a call leaves behind beside its answer. */
export interface End {
  readonly outside: Readonly<Record<string, unknown>>;
  readonly effects?: readonly Effect[];
  /** Of a writing call that succeeded: the transaction of its effects, and what was reserved in it. */
  readonly tx?: Transaction;
  readonly reserved?: Reserved;
}

export function createAuditStage(
  sink: AuditSink,
  clock: Clock,
  log: (...parts: unknown[]) => void,
): AuditStage {
  return {
    async enter(facts) {
      const event: ToolEnterEvent = Object.freeze({
        ...facts,
        timestamp: clock.monotonic(),
        correlationId: clock.uuid(),
      });
      try {
        await sink.enter(event);
      } catch (thrown) {
        const error = enterFailure(asError(thrown));
        await recordEnd(describeExit(event, { error }, { outside: {} }, clock));
        throw error;
      }
      return event;
    },
    async exit(entered, settled, end) {
      const event = describeExit(entered, settled, end, clock);
      await (end.tx === undefined ? recordEnd(event) : sink.exit(event, end.tx, end.reserved));
    },
  };

  async function recordEnd(event: ToolExitEvent): Promise<void> {
    try {
      await sink.exit(event);
    } catch (thrown) {
      log(
        `the end of ${event.tool} (${event.correlationId}) could not be recorded:`,
        asError(thrown).message,
      );
    }
  }
}

/** Storage says what went wrong better than this stage can. */
function enterFailure(error: Error): ColibriError {
  if (error instanceof ColibriError) return error;
  return new ColibriError(
    'AUDIT_ENTER_FAILED',
    `The call could not be recorded and was not begun: ${error.message}. Look at server_health, then call again.`,
    {},
    { cause: error },
  );
}

function describeExit(
  entered: ToolEnterEvent,
  settled: Settled,
  { outside, effects = [] }: End,
  clock: Clock,
): ToolExitEvent {
  const base = {
    entered,
    tool: entered.tool,
    correlationId: entered.correlationId,
    durationMs: Math.max(0, Math.floor(clock.monotonic() - entered.timestamp)),
    outside,
  };
  if ('result' in settled)
    return Object.freeze({
      ...base,
      outcome: 'ok',
      result: settled.result,
      effects: Object.freeze([...effects]),
    });
  const errorCode = codeOf(settled.error);
  return Object.freeze({
    ...base,
    outcome: outcomeOf(entered, errorCode),
    error: settled.error,
    errorCode,
    effects: Object.freeze([]),
  });
}

function outcomeOf(entered: ToolEnterEvent, code: string): CallOutcome {
  if (!entered.schemaValid) return 'rejected';
  return code === 'TOOL_NOT_ADMITTED' ? 'denied' : 'error';
}
