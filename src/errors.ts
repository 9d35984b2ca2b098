/** What the caller can do about an error. */
export type Remedy = 'fix-input' | 'retry' | 'ask-owner' | 'unknown-outcome';

const fixInput = (text: string) => ({ remedy: 'fix-input', text }) as const;
const askOwner = (text: string) => ({ remedy: 'ask-owner', text }) as const;

/** Every code Colibri answers with. The reference in docs/ is generated from this table. */
export const ERRORS = {
  INVALID_PARAMS: fixInput('The arguments do not match the tool’s schema.'),
  HANDLER_ERROR: askOwner('The tool failed. If the message starts with a code, that code says what to do.'),
  AUDIT_ENTER_FAILED: askOwner('The call could not be recorded, so it was not started.'),
  TOOL_NOT_ADMITTED: askOwner('The server’s mode does not allow this tool.'),
  ERR_TASK_NOT_FOUND: fixInput('No task has this id.'),
  ERR_PROJECT_NOT_FOUND: fixInput('No project has this name.'),
  ERR_SESSION_NOT_FOUND: fixInput('No session has this id.'),
  ERR_NOT_FOUND: fixInput('There is no such task or session to verify.'),
  ERR_INVALID_TRANSITION: fixInput('The task’s workflow does not allow this step from its current status.'),
  ERR_TASK_HELD: fixInput('Another agent, or another process of this one, holds the task.'),
  ERR_WRITEBACK_REQUIRED: fixInput('A task can be finished only after a thought was recorded on it.'),
  ERR_PROOF_REQUIRED: fixInput('A proof-grade task also needs a sealed session before it can be finished.'),
  ERR_CIRCULAR_DEPENDENCY: fixInput('The task would wait for itself.'),
  ERR_SESSION_EXISTS: fixInput('The task already has an open session.'),
  ERR_SESSION_REQUIRED: fixInput('A thought on a proof-grade task needs an open session.'),
  ERR_ALREADY_FINALIZED: fixInput('The session is sealed and accepts no more records.'),
  ERR_NOT_FINALIZED: fixInput('The session is open and has no records yet, so it has no root.'),
  ERR_NO_RECORDS: fixInput('The session has no records to seal.'),
  ERR_STORAGE_FULL: askOwner('The disk is full; nothing was written.'),
  ERR_STORAGE_BUSY: {
    remedy: 'retry',
    text: 'Another process held the database for too long; nothing was written.',
  },
  ERR_STORAGE_UNCERTAIN: {
    remedy: 'unknown-outcome',
    text: 'The disk failed or the database file was replaced while the call was being stored; look the call up before you repeat it.',
  },
  ERR_INIT_FAILED: askOwner('The database could not be opened.'),
  ERR_CONFIG_INVALID: askOwner('A setting in the environment is invalid.'),
  ERR_INVALID_MODE: askOwner('COLIBRI_MODE is not one of the modes.'),
} as const satisfies Record<string, { remedy: Remedy; text: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** Values a caller can act on. Never a secret, never a stack. */
type Details = Readonly<Record<string, unknown>>;

/** An outcome the caller is meant to see. Anything else that is thrown is a bug. */
export class ColibriError extends Error {
  readonly code: ErrorCode;
  readonly details: Details;

  /** `sentence` says what was wrong, what was expected and what to do next. */
  constructor(code: ErrorCode, sentence: string, details: Details = {}, options?: { cause?: unknown }) {
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

/** Names the candidate that is a typing mistake away from `word`: ` Did you mean …?`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>, prefix = ''): string {
  let best: string | undefined;
  // More than a third of the letters wrong is another word, not a slip.
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.slice(0, 64), candidate.slice(0, 64));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best === undefined ? '' : ` Did you mean ${prefix}${best}?`;
}

/** Letters to insert, delete or replace to turn one word into the other. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
