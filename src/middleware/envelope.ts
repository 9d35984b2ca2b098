import { ColibriError, type ErrorCode } from '../errors.ts';
import type { ToolFamily } from '../tool.ts';

interface WireError {
  readonly code: string;
  readonly message: string;
  readonly details?: object;
}

/** Everything a client ever gets from a call. */
export type Envelope =
  | { readonly ok: true; readonly data: unknown }
  | { readonly ok: false; readonly error: WireError };

/** The two families whose domain errors are values inside a success (pattern B); the others' are failures (pattern A). */
const PATTERN_B: readonly ToolFamily[] = ['tasks', 'proof'];

/** These come from the stages, not from a domain, and are failures in every family. */
const STAGE_CODES: readonly ErrorCode[] = ['INVALID_PARAMS', 'AUDIT_ENTER_FAILED', 'HANDLER_ERROR'];

const MESSAGE_CHARS_MAX = 4_000;

export function succeed(data: unknown): Envelope {
  return { ok: true, data };
}

export function fail(family: ToolFamily, error: Error): Envelope {
  const message = error.message.slice(0, MESSAGE_CHARS_MAX).toWellFormed();
  if (!(error instanceof ColibriError)) return { ok: false, error: { code: 'HANDLER_ERROR', message } };
  const details = Object.keys(error.details).length === 0 ? {} : { details: error.details };
  const exact: Envelope = { ok: false, error: { code: error.code, message, ...details } };
  if (STAGE_CODES.includes(error.code)) return exact;
  if (error.code !== 'TOOL_NOT_ADMITTED' && PATTERN_B.includes(family)) return succeed(exact);
  return { ok: false, error: { code: 'HANDLER_ERROR', message: `${error.code}: ${message}`, ...details } };
}

/** The code the audit row keeps: the precise one, whichever pattern carried it. */
export function codeOf(error: Error): ErrorCode {
  return error instanceof ColibriError ? error.code : 'HANDLER_ERROR';
}
