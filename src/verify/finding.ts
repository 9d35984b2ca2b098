/** What a verifier found wrong. One cause, one finding. */
export interface Finding {
  readonly kind: FindingKind;
  /** The table, or the file of a bundle. */
  readonly table: string;
  /** The record as people name it: `#12` for an audit row, `T-0001` for a task. */
  readonly record: string;
  /** A whole sentence. */
  readonly message: string;
  /** The columns that are wrong, where that can be told. */
  readonly columns?: readonly string[];
  readonly expected?: string;
  readonly actual?: string;
  /** Audit position the finding speaks of: what lies before the smallest one is intact. */
  readonly position?: number;
}

export type FindingKind =
  | 'missing'
  | 'altered'
  | 'unlinked'
  | 'malformed'
  | 'unpaired'
  | 'unexplained'
  | 'stray'
  | 'stale'
  | 'index'
  | 'schema'
  | 'damaged'
  /** The rules give another result than the log says. */
  | 'forbidden'
  | 'newer-rules'
  | 'bad-anchor'
  | (typeof OF_HEADS)[number];

/** What only a signed head can show. `foreign` are rows that no known key has signed. */
export const OF_HEADS = [
  ...(['foreign', 'bad-head', 'cut-tail', 'older-copy', 'rewritten'] as const),
  ...(['replaced', 'foreign-key', 'bad-checkpoint', 'lost-key', 'lost-memory'] as const),
] as const;

/** Called for each finding as it is made: there may be as many as there are rows. */
export type Report = (finding: Finding) => void;

export function auditRow(position: number): string {
  return `#${position}`;
}

/** A finding about one audit row. `more` may name another table that belongs to it. */
export function rowFinding(
  kind: FindingKind,
  position: number,
  message: string,
  more: Partial<Finding> = {},
): Finding {
  return { kind, table: 'actions', record: auditRow(position), position, message, ...more };
}
