import type { Finding } from '../../verify/finding.ts';

// What the server of the live page and the page say to each other. The page believes none of it without a proof, but for
// what is marked as the server's word.

/** Begins every answer, on a line of its own; behind it stands the certificate of what is shown, if there is one. */
export interface Preamble {
  /** The name the log gives itself. */
  readonly origin: string | undefined;
  /** Audit rows there are; the server's word. */
  readonly rows: number;
  /** The newest signed head, and the key that signed it. */
  readonly head?: { readonly note: string; readonly key: string };
  /** The proof that the head extends the one of the size that was asked with. */
  readonly consistency: readonly string[];
  /** The positions or ids that were asked for, in their order; the certificate may hold more. */
  readonly asked?: readonly (string | number)[];
  /** Texts that records in the certificate name by their digests and that no call in it was given. */
  readonly texts?: readonly { readonly digest: string; readonly salt: string; readonly text: string }[];
  /** Why nothing is shown. */
  readonly reason?: string;
  /** What the server says without a proof. */
  readonly said?: unknown;
}

/** What the whole verification of the server came to. Nobody can check it without reading the log. */
export interface ServerVerdict {
  readonly checkedAt: string;
  readonly size: number;
  readonly intactThrough: number;
  readonly replayedThrough: number;
  readonly checkpointedThrough: number;
  readonly anchoredThrough: number;
  readonly findingCount: number;
  /** The first ones. */
  readonly findings: readonly Pick<Finding, 'kind' | 'record' | 'message'>[];
  readonly remarks: readonly string[];
  readonly anchors: readonly ServerAnchor[];
}

/** An anchor as the server sees it. Prepared: it exists on this machine only. */
export interface ServerAnchor {
  readonly kind: 'git' | 'tsr' | 'file';
  readonly state: 'prepared' | 'pushed' | 'time-stamped' | 'kept' | 'wrong';
  readonly size: number;
  readonly time?: string;
  readonly where: string;
}

/** What the server says of its verification at any moment. */
export interface VerdictState {
  /** How many rows it is about, while one runs. */
  readonly running?: number;
  /** How long that one has run. */
  readonly runningMs?: number;
  readonly verdict?: ServerVerdict;
  /** How long ago it ended, by the server's clock. */
  readonly ageMs?: number;
  /** Why it could not be carried out. */
  readonly failed?: string;
  /** Rows that the server has counted so far. */
  readonly counted?: number;
}

/** Where a session has more records, a certificate of it is too large for a page. */
export const SESSION_RECORDS_MAX = 1_000;
/** Related tasks of each kind that a task lists. */
export const RELATED_MAX = 30;
export const RECENT_MAX = 8;

/** Tasks whose holder is gone or silent, as one machine saw it at one time. */
export interface Abandoned {
  readonly at: string;
  readonly tasks: readonly string[];
}
