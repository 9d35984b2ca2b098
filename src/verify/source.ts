import type { StateTable } from '../log/tables.ts';
import type { NamedText } from '../storage/text-ids.ts';
import type { Finding, Report } from './finding.ts';
import type { Walk } from './walk.ts';

/**
 * Everything a verifier reads, wherever it lies: a database, a bundle, a certificate, a map of files in a browser.
 * Hostile input enters here: nothing that comes out of a source is believed before it is checked.
 */
export interface Source {
  /** Whether every row from 1 on is there. Else there are some rows, each with its proof under a head. */
  readonly whole: boolean;
  /** Of a source that is not whole: ids (`T-0001`, `A-0001`) of which every row that wrote them or their records is there. */
  readonly complete?: ReadonlySet<string>;
  /** Whether several machines write to it, each with a key of its own. */
  readonly isShared?: boolean | undefined;
  /** Positions of which it will ask for `contentHashAt`. */
  readonly hashed?: ReadonlySet<unknown>;
  /** The name the log gives itself, where it gives one. */
  origin(): Promise<string | undefined>;
  /** The newest signed head of each key. */
  heads(): Promise<readonly SourceHead[]>;
  /** Signed heads that were kept, in any order. */
  kept(): Promise<readonly SourceNote[]>;
  /** Audit rows in the order in which they lie, with the payload beside each, in pages. */
  rows(): AsyncIterable<readonly SourceRow[]>;
  /**
   * Of a source that others go on writing to and that is read in short steps: stops time, so that everything read from now on
   * is of one moment. `rows` goes on with what was added meanwhile, and the heads are read again.
   */
  readonly catchUp?: (() => Promise<void>) | undefined;
  /** Every text of the calls that these are named by, by id, and perhaps others. */
  texts(named: readonly NamedText[]): Promise<ReadonlyMap<number, SourceText>>;
  /** Rows of state by id, each as the exact text that is hashed. */
  states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>>;
  /**
   * What only this kind of source can have wrong, reported in its own words: the schema, pages and indexes of a
   * database; the sums, the marker and the list of files of a bundle. Runs after the rows, with what they gave.
   */
  checkRest(walked: Walked, report: Report): Promise<void>;
}

/** Thrown by a source of which a part cannot be read. Becomes one finding. */
export class DamagedSource extends Error {
  readonly table: string;

  constructor(table: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.table = table;
  }
}

/** Runs one part of a verification. What cannot be read is a finding, and the other parts go on. */
export async function guarded<T>(report: Report, otherwise: T, part: () => Promise<T>): Promise<T> {
  try {
    return await part();
  } catch (error) {
    report(damageOf(error));
    return otherwise;
  }
}

export function damageOf(error: unknown): Finding {
  if (!(error instanceof DamagedSource)) throw error;
  const { table, message } = error;
  const what = `A part of it is damaged and ${table} cannot be read: ${message}.`;
  return { kind: 'damaged', table, record: table, message: what };
}

export interface SourceRow {
  readonly position: number;
  /** The bytes that are hashed, as text; undefined where they are not valid UTF-8, or where part of a log must have the row and does not. */
  readonly text: string | undefined;
  /** As stored; absent in a source that does not hold them. */
  readonly content_hash?: string;
  readonly chain_hash?: string;
  readonly payload?: { readonly salt: string; readonly body: string };
  /** In a source that is not whole: the chain hash of the row before it, where that is known. */
  readonly previous_chain_hash?: string;
  /** In a source that is not whole: the hashes of the row behind it, where that row itself is not in the source. */
  readonly next?: { readonly content_hash: string; readonly chain_hash: string };
  /** In a source that is not whole: the inclusion proof of this row under the newest head. */
  readonly proof?: readonly string[];
}

export interface SourceText {
  readonly digest: string;
  readonly salt: string;
  readonly text: string;
}

export interface SourceNote {
  /** A checkpoint, signed. */
  readonly note: string;
  /** Where it is, for people. */
  readonly where: string;
  /** The size and key that the source keeps beside it, where it does. */
  readonly size?: number;
  readonly key?: string;
}

export interface SourceHead extends SourceNote {
  /** The verifier key in its text form. */
  readonly key: string;
  /** Only in a database. */
  readonly chain_hash?: string;
  readonly at?: string;
  readonly frontier?: string;
}

/** What the walk over the rows found out and a source compares the rest of itself with. */
export type Walked = ReturnType<Walk['walked']>;
