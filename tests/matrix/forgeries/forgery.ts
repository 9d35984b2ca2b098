import { formatId } from '../../../src/log/tables.ts';
import type { ForgedLog, ForgedRow } from '../forge.ts';
import type { Found } from '../sources.ts';

/** One way to lie in a log, and what every source that can hold it must say. */
export interface Forgery {
  /** Its name in tests and reports. Begins with the finding or rule it is about. */
  readonly id: string;
  /** `everywhere`: any source made from the database can hold it. `database`: only the file itself can. */
  readonly holds: 'everywhere' | 'database';
  /** Forges the log and answers every finding it must lead to: one cause, one finding. */
  readonly forge: (log: ForgedLog) => Found | readonly Found[];
  /** It may take replay to find it, which the Python scripts do not do. */
  readonly takesReplay?: true;
  /** It is in data that is derived from the rows, or in the schema, which the Python scripts leave to `colibri verify`. */
  readonly isBesideRows?: true;
  /** Changes the bytes of the finished file. */
  readonly damage?: (dbPath: string, log: ForgedLog) => Found | readonly Found[];
  /** Why a database on a server cannot hold it. */
  readonly onlyInFile?: string;
  /** The record whose certificate shows it too. */
  readonly shownBy?: string;
}

/** A finding about an audit row. */
export function row(kind: Found['kind'], at: ForgedRow | number, ...columns: string[]): Found {
  const position = typeof at === 'number' ? at : at.fields.position;
  return { kind, record: `#${position}`, position, ...(columns.length > 0 && { columns }) };
}

/** A row that is not one that Colibri writes. */
export function malformed(at: ForgedRow | number): Found {
  return row('malformed', at, 'text');
}

/** What the rules do not give: the first row of state that the call wrote is named, or the call. */
export function forbidden(exit: ForgedRow, ...columns: string[]): Found {
  const [write] = exit.writes;
  if (write === undefined) return row('forbidden', exit, ...columns);
  return { ...row('forbidden', exit, ...columns), record: formatId(write.table, Number(write.row.id)) };
}

/** A call that succeeded, and the rules refuse it. */
export function refusable(exit: ForgedRow): Found {
  return forbidden(exit, 'error_code');
}

/** Rows that no known key has signed. */
export function foreign(from: number, to: number): Found {
  return { kind: 'foreign', record: from === to ? `#${from}` : `#${from} to #${to}`, position: from };
}

/** The checkpoints of all seals, where they are deleted. */
export function missingSeals(log: ForgedLog): Found[] {
  return log
    .exits('merkle_finalize')
    .map(({ fields }) => ({ kind: 'missing', record: `#${fields.position}` }));
}

/** The text under a digest, which no call speaks of. */
export function strayText(digest: string): Found {
  return { kind: 'stray', record: digest.slice(0, 16) };
}
