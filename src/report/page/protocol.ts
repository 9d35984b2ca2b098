import type { Finding } from '../../log/verify/finding.ts';

/** What is checked, in the order it is shown. Every finding belongs to one of them. */
export const CHECKS = {
  rows: 'Each audit row is canonical, in its place, and begins or ends one call',
  chain: 'Every row continues the one before it',
  tree: 'The tree over the rows has the root that the checkpoints name',
  signature: 'The checkpoints are signed with the key in the bundle',
  payloads: 'What calls were given and answered is what the rows say',
  state: 'Tasks, thoughts and sessions are exactly what the log last wrote',
  thoughts: 'Each thought continues the one before it',
  seals: 'The seals fit the records under them',
  anchors: 'Each anchor is whole and speaks of a checkpoint in the bundle; who holds it is not checked here',
  files: 'The files are those the bundle lists',
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

export interface FindingView extends Finding {
  readonly check: CheckName;
}

export type SignatureState = 'valid' | 'unchecked' | 'invalid';

/** A checkpoint in the bundle, and what became of it. */
export interface HeadView {
  readonly name: string;
  readonly origin: string;
  readonly size: number;
  readonly root: string;
  readonly signature: SignatureState;
  /** Undefined where it could not be compared with the rows. */
  readonly agrees: boolean | undefined;
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

/** How far each kind of trust reaches, counted in audit rows. */
export interface Verdict {
  /** `log`, or the session the bundle holds. */
  readonly scope: string;
  readonly origin: string;
  /** Audit rows in the bundle. */
  readonly rows: number;
  /** Audit rows of the log, as far as the bundle tells. */
  readonly size: number;
  readonly root: string;
  readonly intactThrough: number;
  /** Rows under a checkpoint that agrees and whose signature was checked. */
  readonly checkpointedThrough: number;
  /** Rows under a checkpoint that agrees and whose signature could not be checked here. */
  readonly unsignedThrough: number;
  readonly key: { readonly name: string; readonly id: string; readonly text: string } | undefined;
  readonly heads: readonly HeadView[];
  /** Those of checkpoints that agree with the rows, the oldest first. */
  readonly anchors: readonly AnchorView[];
  readonly checks: readonly CheckView[];
  readonly findingCount: number;
  /** The first ones. */
  readonly findings: readonly FindingView[];
}

export const KINDS = ['thought', 'task', 'session', 'read', 'failure'] as const;
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
  /** Whether the log wrote exactly this. */
  readonly isVouched: boolean;
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
  readonly leaves: readonly Leaf[];
  /** Undefined while it is open: nothing is sealed yet. */
  readonly sealHolds: boolean | undefined;
}

export interface Opened {
  readonly verdict: Verdict;
  readonly calls: readonly Call[];
  readonly tasks: readonly Task[];
  readonly sessions: readonly Session[];
}

/** One row with what lies beside it, as the bundle holds them. */
export interface RowDetail {
  readonly position: number;
  readonly text: string;
  readonly contentHash: string;
  readonly payload: string | undefined;
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

/** A bundle as the page was given it. */
export type Given =
  | { readonly zip: ArrayBuffer }
  | { readonly files: readonly (readonly [name: string, file: Blob])[] };

export type Question =
  | { readonly ask: 'open'; readonly given: Given }
  | { readonly ask: 'detail'; readonly position: number; readonly exit: number }
  | { readonly ask: 'compare'; readonly text: string };

export type Answer =
  | { readonly tell: 'progress'; readonly done: number; readonly total: number; readonly rows: number }
  | { readonly tell: 'opened'; readonly opened: Opened }
  | { readonly tell: 'unreadable'; readonly message: string }
  | { readonly tell: 'detail'; readonly detail: CallDetail }
  | { readonly tell: 'comparison'; readonly comparison: Comparison };
