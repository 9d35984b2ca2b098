import { ColibriError, ERRORS, type ErrorCode } from '../errors.ts';
import type { ToolFamily } from '../tool.ts';

interface Failure {
  readonly ok: false;
  readonly error: { readonly code: string; readonly message: string; readonly details?: object };
}

/** Everything a client ever gets from a call. */
export type Envelope = { readonly ok: true; readonly data: unknown } | Failure;

/** The two families whose domain errors are values inside a success (pattern B); the others' are failures (pattern A). */
const PATTERN_B: readonly ToolFamily[] = ['tasks', 'proof'];

/** These come from the stages and stand for themselves; any other code of pattern A is inside a `HANDLER_ERROR`. */
const STAGE_CODES: readonly ErrorCode[] = ['INVALID_PARAMS', 'AUDIT_ENTER_FAILED', 'HANDLER_ERROR'];

const MESSAGE_CHARS_MAX = 4_000;

export function succeed(data: unknown): Envelope {
  return { ok: true, data };
}

export function fail(family: ToolFamily, error: Error): Envelope {
  const code = codeOf(error);
  const message = error.message.slice(0, MESSAGE_CHARS_MAX).toWellFormed();
  const { details = {} } = error instanceof ColibriError ? error : {};
  const known = Object.keys(details).length === 0 ? {} : { details };
  if (STAGE_CODES.includes(code)) return { ok: false, error: { code, message, ...known } };
  // What a domain refuses its caller can correct. A mode, storage and the start belong to no domain: pattern A everywhere.
  if (PATTERN_B.includes(family) && ERRORS[code].remedy === 'fix-input')
    return succeed({ ok: false, error: { code, message, ...known } });
  return { ok: false, error: { code: 'HANDLER_ERROR', message: `${code}: ${message}`, ...known } };
}

/** Whether an answer is a failure, in either pattern. No tool's own data says `ok`. */
export function isFailure(envelope: Envelope): boolean {
  return !envelope.ok || (Object(envelope.data) as Partial<Failure>).ok === false;
}

/** The code the audit row keeps: the precise one, whichever pattern carried it. */
export function codeOf(error: Error): ErrorCode {
  return error instanceof ColibriError ? error.code : 'HANDLER_ERROR';
}
