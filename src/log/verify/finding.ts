/** What a verifier found wrong. One finding, one record. */
export interface Finding {
  readonly kind:
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
    // What only a head kept outside the database can show.
    | 'cut-tail'
    | 'older-copy'
    | 'rewritten'
    | 'replaced'
    | 'foreign-key'
    | 'bad-checkpoint'
    | 'bad-anchor'
    | 'lost-key'
    | 'lost-memory';
  readonly table: string;
  /** The record as people name it: `#12` for an audit row, `T-0001` for a task. */
  readonly record: string;
  /** A whole sentence. */
  readonly message: string;
  /** The columns that were changed, where that can be told. */
  readonly columns?: readonly string[];
  readonly expected?: string;
  readonly actual?: string;
  /** Audit position the finding speaks of: what lies before the smallest one is intact. */
  readonly position?: number;
}

/** Called for each finding as it is made: there may be as many as there are rows. */
export type Report = (finding: Finding) => void;

export function auditRow(position: number): string {
  return `#${position}`;
}
