/** What the caller can do about an error. */
export type Remedy = 'fix-input' | 'retry' | 'ask-owner' | 'unknown-outcome';

/** Every code Colibri answers with. The reference in docs/ is generated from this table. */
export const ERRORS = {
  INVALID_PARAMS: { remedy: 'fix-input', text: 'The arguments do not fit the tool’s schema.' },
  HANDLER_ERROR: {
    remedy: 'ask-owner',
    text: 'The tool failed; the message starts with a code where one is known.',
  },
  AUDIT_ENTER_FAILED: { remedy: 'ask-owner', text: 'The call could not be recorded, so it was not begun.' },
  TOOL_NOT_ADMITTED: { remedy: 'ask-owner', text: 'The server’s mode does not admit this tool.' },
  ERR_TASK_NOT_FOUND: { remedy: 'fix-input', text: 'No task has this id.' },
  ERR_PROJECT_NOT_FOUND: { remedy: 'fix-input', text: 'No project has this name.' },
  ERR_SESSION_NOT_FOUND: { remedy: 'fix-input', text: 'No session has this id.' },
  ERR_NOT_FOUND: { remedy: 'fix-input', text: 'There is no such task or session to verify.' },
  ERR_INVALID_TRANSITION: {
    remedy: 'fix-input',
    text: 'The task’s workflow has no such step from where it is.',
  },
  ERR_WRITEBACK_REQUIRED: {
    remedy: 'fix-input',
    text: 'A task is finished only after a thought was recorded for it.',
  },
  ERR_PROOF_REQUIRED: {
    remedy: 'fix-input',
    text: 'A proof-grade task is finished only after a session for it was finalized.',
  },
  ERR_CIRCULAR_DEPENDENCY: { remedy: 'fix-input', text: 'The task would wait for itself.' },
  ERR_SESSION_EXISTS: { remedy: 'fix-input', text: 'The task has an open session already.' },
  ERR_SESSION_REQUIRED: {
    remedy: 'fix-input',
    text: 'A thought on a proof-grade task needs an open session.',
  },
  ERR_ALREADY_FINALIZED: { remedy: 'fix-input', text: 'The session is finalized and takes nothing more.' },
  ERR_NOT_FINALIZED: {
    remedy: 'fix-input',
    text: 'The session is open and has no records yet, so it has no root.',
  },
  ERR_NO_RECORDS: { remedy: 'fix-input', text: 'The session has no records to seal.' },
  ERR_STORAGE_FULL: { remedy: 'ask-owner', text: 'The disk is full; nothing was written.' },
  ERR_STORAGE_BUSY: {
    remedy: 'retry',
    text: 'Another process held the database for too long; nothing was written.',
  },
  ERR_STORAGE_UNCERTAIN: {
    remedy: 'unknown-outcome',
    text: 'The disk failed while the call was being stored; look the call up before repeating it.',
  },
  ERR_INIT_FAILED: { remedy: 'ask-owner', text: 'The database could not be opened.' },
  ERR_CONFIG_INVALID: { remedy: 'ask-owner', text: 'A setting in the environment is invalid.' },
  ERR_INVALID_MODE: { remedy: 'ask-owner', text: 'COLIBRI_MODE names no mode.' },
} as const satisfies Record<string, { remedy: Remedy; text: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** Values a caller can act on. Never a secret, never a stack. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** An outcome the caller is meant to see. Anything else that is thrown is a bug. */
export class ColibriError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  /** `sentence` says what was wrong, what was expected and what to do next. */
  constructor(code: ErrorCode, sentence: string, details: ErrorDetails = {}, options?: { cause?: unknown }) {
    super(sentence, options);
    this.name = 'ColibriError';
    this.code = code;
    this.details = details;
  }
}

/** Whatever was thrown, as an Error. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  try {
    return new Error(String(thrown));
  } catch {
    return new Error('something without a text form was thrown');
  }
}
