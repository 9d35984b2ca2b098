import type { Finding } from '../../verify/finding.ts';
import type { Verdict } from '../../verify/verdict.ts';

/** What is checked, in the order it is shown. Every finding is shown under one of them. */
export const CHECKS = {
  rows: 'Each audit row is as Colibri writes it, in its place, and begins or ends one call',
  chain: 'Every row continues the one before it',
  heads: 'The rows are those that the log’s keys have signed',
  payloads: 'What calls were given and answered is what the rows say',
  texts: 'Every text is the one whose digest the rows hold, or was erased on the record',
  state: 'Tasks, thoughts and sessions are exactly what the log last wrote',
  replay: 'Every call, run again by the rules, gives what the log says',
  anchors: 'Each anchor is whole and speaks of a checkpoint that is here; who holds it is not checked here',
  files: 'There is what belongs here and nothing else',
} as const;
export type CheckName = keyof typeof CHECKS;

export interface CheckView {
  readonly name: CheckName;
  readonly state: 'holds' | 'wrong' | 'unchecked';
  /** How many things were looked at. */
  readonly count: number;
  /** One of them. */
  readonly unit: string;
  /** Why it was not checked. */
  readonly reason?: string;
}

/** A checkpoint, and what the verifier says of it. */
export interface HeadView {
  readonly where: string;
  readonly size: number;
  readonly root: string;
  /** The id of the key that signed it, where it is a known one. */
  readonly key: string;
  readonly status: string;
  readonly isWrong: boolean;
  /** Time of the last row it covers, or nothing. */
  readonly at: string;
}

/** Something that others may hold of a checkpoint. The page never looks it up: it has no network. */
export interface AnchorView {
  readonly kind: 'git' | 'tsr';
  /** Audit rows that its checkpoint covers. */
  readonly size: number;
  /** Time of the last of them, or nothing. */
  readonly at: string;
  /** Of a commit its id, where the browser can compute it. */
  readonly commit: string;
  readonly ref: string;
  /** The time that it claims for itself, or nothing. */
  readonly claims: string;
}

export interface KeyView {
  readonly id: string;
  readonly text: string;
  readonly through: number;
  readonly isVouched: boolean;
}

type Ranges = Pick<
  Verdict,
  'size' | 'intactThrough' | 'replayedThrough' | 'checkpointedThrough' | 'anchoredThrough'
>;

/** The verifier's verdict as the page shows it. */
export interface VerdictView extends Ranges {
  /** `log`, or what a bundle of one session or a certificate is about. */
  readonly subject: string;
  readonly isWhole: boolean;
  readonly origin: string;
  /** Audit rows that are here. */
  readonly rows: number;
  readonly keys: readonly KeyView[];
  /** The smallest first. */
  readonly heads: readonly HeadView[];
  /** Those of checkpoints that agree with the rows, the oldest first. */
  readonly anchors: readonly AnchorView[];
  readonly checks: readonly CheckView[];
  readonly remarks: readonly string[];
  readonly findingCount: number;
  /** The first ones. */
  readonly findings: readonly Finding[];
}

export const KINDS = ['thought', 'task', 'session', 'owner', 'read', 'failure'] as const;
export type Kind = (typeof KINDS)[number];

/** One call: its two audit rows told in a line. Every text in it is a stranger's. */
export interface Call {
  readonly position: number;
  /** 0 where the call never ended. */
  readonly exit: number;
  readonly at: string;
  readonly tool: string;
  readonly actor: string;
  readonly outcome: string;
  readonly error: string;
  readonly task: string;
  readonly kind: Kind;
  /** `created`, `moved`, `decision`. */
  readonly verb: string;
  readonly text: string;
  /** Something is wrong with one of its rows. */
  readonly isWrong: boolean;
}

export interface Task {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly project: string;
  readonly workflow: string;
  readonly status: string;
  readonly statusSince: string;
  readonly statusBy: string;
  readonly priority: string;
  readonly assignee: string;
  readonly progress: number;
  readonly labels: readonly string[];
  readonly isProofGrade: boolean;
  readonly blockedReason: string;
  readonly createdAt: string;
  readonly createdBy: string;
  /** Whether a finding speaks of it. */
  readonly isWrong: boolean;
}

export interface Leaf {
  readonly record: string;
  readonly task: string;
  readonly hash: string;
  /** Audit position of what is under it. */
  readonly position: number;
  readonly label: string;
}

export interface Session {
  readonly id: string;
  readonly task: string;
  readonly auditor: string;
  readonly reason: string;
  readonly scope: string;
  readonly status: string;
  readonly startedAt: string;
  readonly startedBy: string;
  readonly finalizedAt: string;
  readonly root: string;
  readonly position: number;
  /** The records that are here. */
  readonly leaves: readonly Leaf[];
  /** How many the seal is over; 0 while it is open. */
  readonly sealed: number;
  /** Whether a finding speaks of it. */
  readonly isWrong: boolean;
}

export interface Opened {
  readonly verdict: VerdictView;
  readonly calls: readonly Call[];
  readonly tasks: readonly Task[];
  readonly sessions: readonly Session[];
}

/** One row with what lies beside it, as they were handed over. */
export interface RowDetail {
  readonly position: number;
  readonly text: string;
  readonly contentHash: string;
  readonly payload: string | undefined;
  /** The texts whose digests stand in the payload, by field. */
  readonly texts: readonly (readonly [field: string, text: string])[];
}

export interface CallDetail {
  readonly rows: readonly RowDetail[];
  /** The way of the call's last row to the root of the newest checkpoint that covers it. */
  readonly proof: { readonly size: number; readonly steps: number; readonly holds: boolean } | undefined;
}

export interface Comparison {
  readonly state: 'agrees' | 'disagrees' | 'unknown';
  readonly message: string;
}

/** What the page was given: a bundle, or a certificate. */
export type Given =
  | { readonly zip: Blob }
  | { readonly certificate: Blob }
  | { readonly files: readonly (readonly [name: string, file: Blob])[] };

export type Question =
  | { readonly ask: 'open'; readonly given: Given }
  | { readonly ask: 'detail'; readonly position: number; readonly exit: number }
  | { readonly ask: 'compare'; readonly text: string };

export type Answer =
  | { readonly tell: 'progress'; readonly done: number; readonly total: number }
  | { readonly tell: 'opened'; readonly opened: Opened }
  | { readonly tell: 'unreadable'; readonly message: string }
  | { readonly tell: 'detail'; readonly detail: CallDetail }
  | { readonly tell: 'comparison'; readonly comparison: Comparison };
