import type { StateTable } from '../log/tables.ts';
import type { Report } from './finding.ts';
import type { TaskCalls } from './named.ts';

/**
 * Everything a verifier reads, wherever it lies: a database, a bundle, a certificate, a map of files in a browser.
 * Hostile input enters here: nothing that comes out of a source is believed before it is checked.
 */
export interface Source {
  /** Whether every row from 1 on is there. Else there are some rows, each with its proof under a head. */
  readonly whole: boolean;
  /** Of a source that is not whole: ids (`T-0001`, `A-0001`) of which every row that wrote them or their records is there. */
  readonly complete?: ReadonlySet<string>;
  /** Never asks for `contentHashAt`: 32 bytes a row need not be kept. */
  readonly dropsContentHashes?: boolean;
  /** The name the log gives itself, where it gives one. */
  origin(): Promise<string | undefined>;
  /** The newest signed head of each key. */
  heads(): Promise<readonly SourceHead[]>;
  /** Signed heads that were kept, in any order. */
  kept(): Promise<readonly SourceNote[]>;
  /** How many rows will come, as far as the source can tell: for progress only. */
  count(): Promise<number>;
  /** Audit rows in the order in which they lie, with the payload beside each, in pages. */
  rows(): AsyncIterable<readonly SourceRow[]>;
  /** Texts by their digests; those that are not there are absent from the answer. */
  texts(digests: readonly string[]): Promise<ReadonlyMap<string, SourceText>>;
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
  readonly salt: string;
  readonly text: string;
}

export interface SourceHead {
  /** The verifier key in its text form. */
  readonly key: string;
  readonly checkpoint: string;
  /** Where the source keeps them beside the signed note: a database. */
  readonly size?: number;
  readonly chain_hash?: string;
  readonly at?: string;
  readonly frontier?: string;
  /** Where it lies, for people. */
  readonly where: string;
}

export interface SourceNote {
  readonly note: string;
  readonly where: string;
  /** The size and key that its place in the source claims, where it has one. */
  readonly size?: number;
  readonly key?: string;
}

/** What the walk over the rows found out and a source compares the rest of itself with. */
export interface Walked {
  /** The last position that was read, and how many rows were. */
  readonly size: number;
  readonly rows: number;
  readonly root: string;
  /** Undefined for a row that is not there or not as it was written, and in a source that drops them. */
  readonly contentHashAt: (position: number) => string | undefined;
  /** Writing calls that have no exit row yet, with the process that began each. */
  readonly open: ReadonlyMap<number, string>;
  /** Calls of which nobody can say whether they ended: a row behind them is lost, and was reported. */
  readonly doubtful: ReadonlySet<number>;
  /** Exit rows whose calls are not what they say: what was derived from them follows from that. */
  readonly doubtfulExits: ReadonlySet<number>;
  /** The time of the last row of each process; undefined where rows name one that cannot be theirs. */
  readonly lastSeen: ReadonlyMap<string, string> | undefined;
  /** How many rows each table of state must have: the largest id that was ever written. */
  readonly created: ReadonlyMap<string, number>;
  /** How many texts the rows speak of and the source has; undefined where arguments are lost, so that nobody can say. */
  readonly texts: number | undefined;
  /** Texts that are not what was said. */
  readonly badTexts: ReadonlySet<string>;
  /** How many payloads lie beside rows. */
  readonly payloads: number;
  /** Records that a finding was already made against, as findings name them. What only follows from it need not be said again. */
  readonly found: ReadonlySet<string>;
  /** Root of each full block of 256 rows. Only of a whole log. */
  readonly blocks: readonly string[];
  /** Exit positions of writing calls by the task they name or made; undefined where lost rows or arguments leave gaps in them. */
  readonly taskCalls: TaskCalls | undefined;
  /** Derived columns of a task as they must be; undefined where nobody can say. */
  readonly derivedOf: (
    task: number,
  ) => { readonly unmet: number; readonly is_final: number; readonly queue: number } | undefined;
  /** Whether every row was read and is as it was written. Else what the lost ones said cannot be told. */
  readonly isComplete: boolean;
  /** Whether a position is lost: rows that are missing or unreadable. */
  readonly isLost: (position: number) => boolean;
}
