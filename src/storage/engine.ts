import { asError, ColibriError } from '../errors.ts';
import type { Sooner } from '../sooner.ts';

/**
 * The version of the schema that a database carries. Builds before 0.2.0 wrote 1 to 6 with other formats; those files are
 * refused, so the count goes on behind them.
 */
export const SCHEMA_VERSION = 7;

/** A value as it is stored. Booleans are 0 and 1, times are text; NULL becomes undefined at the repository. */
export type SqlValue = string | number | null | Uint8Array;

export type Row = Readonly<Record<string, SqlValue>>;

export type SqlList = readonly SqlValue[];

/** One consistent view of the database. */
export interface Reader {
  get<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T | undefined>;
  all<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T[]>;
  /** Each row as the list of its columns: half the cost of objects, which counts where a million are read. */
  lists(sql: string, ...params: readonly SqlValue[]): Promise<SqlList[]>;
  /** Whether a process is there now. One that cannot be seen from here counts as present. */
  isPresent(process: string): Promise<boolean>;
  readonly dialect: Dialect;
}

/** A piece of SQL with a `?` for each of its parameters. */
export interface Condition {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/**
 * What engines say differently, as pieces of SQL. Everything else is written in the SQL that all of them run alike
 * (docs/ARCHITECTURE.md). What a caller sends is only ever a parameter.
 */
export interface Dialect {
  /** Whether a text contains that of a parameter, which is bound for the `?` in the answer. */
  contains(text: string): string;
  /** The same where A and a count as one letter; other letters do not. */
  containsInAnyCase(text: string): string;
  /** Two hashes in hex at once, 64 characters each, which takes half the time; behind a space where that is not their form. */
  hexOfTwo(first: string, second: string): string;
  /** How tasks are found by words: each must begin a word, or a run of words, of the title or of the description. */
  findTasks(words: readonly string[]): TaskSearch;
}

/** A search in the index of words. Both conditions are on `tasks` and have the same answer. */
export interface TaskSearch {
  /** Fetches all that match. The fastest where few do. */
  readonly fetched: Condition;
  /** Asks each task in turn whether it matches. The fastest where a page of matches is met soon. */
  readonly asked: Condition;
  /** How many match, as `value`, without a look at the tasks. */
  readonly count: Condition;
}

/** The only writer of the database, in this process and in all others, until it ends. */
export interface Transaction extends Reader {
  /**
   * Runs a statement that must change one row. Whatever may have swallowed it, a row that was not changed was not stored.
   * It goes on before that is known: the next read, the end of the savepoint or the commit rejects.
   */
  change(sql: string, ...params: readonly SqlValue[]): void;
  /**
   * Stores rows, every one of them. A table has one list of columns; those that hold bytes are given as hex (`isBytes`). As
   * with `change`, what went wrong is known later.
   */
  insert(table: string, columns: readonly string[], rows: readonly SqlList[]): void;
  run(sql: string, ...params: readonly SqlValue[]): Promise<{ readonly changes: number }>;
  /**
   * What callers have learned of its rows, or written there: nobody else changes them meanwhile. An engine may keep it for the
   * next transaction if nobody has committed in between. Empty again once something was taken back.
   */
  readonly known: Map<string, unknown>;
  /** Commits that are known of: behind a transaction that saw n, n + 1 says that nobody else has committed. Undefined where nobody knows. */
  readonly commits?: number | undefined;
  /** The time that rows of this transaction are dated by, in milliseconds since 1970; undefined: by the clock of this process. */
  now(): number | undefined;
  /** Says by which query to find out whether the transaction was committed, where its answer is lost: it finds a row, or none. */
  foundBy(sql: string, ...params: readonly SqlValue[]): void;
  /**
   * Runs `work` and takes back what it wrote if it rejects; the transaction goes on. After an error of the storage itself
   * nothing goes on: every later statement and the commit reject with that error, whoever caught it. `undo` is told that it
   * was taken back.
   */
  savepoint<T>(work: () => Sooner<T>, undo?: () => void): Promise<T>;
  /** Makes a task found by the words of these texts. They are asked for only by an engine that does not keep its index itself. */
  indexWords(task: number, isNew: boolean, texts: () => Sooner<readonly string[]>): Sooner<void>;
}

/** When a commit must be durable, where that is not before it is answered. */
export type Durable = 'soon' | { readonly next: (tx: Transaction) => Promise<void> };

/**
 * The port every engine implements. Asynchronous from the first day, so that an engine across a network drops in
 * without touching a domain. SQL that goes through it is portable; dialect matters stay in the engine's folder.
 */
export interface StorageEngine {
  /** Runs `work` on one snapshot. Never waits for a writer and never makes one wait. */
  read<T>(work: (tx: Reader) => Promise<T>): Promise<T>;
  /**
   * Runs `work` alone, commits when it resolves, rolls back when it rejects. Committed is not yet durable: see `sync`.
   * `soon` says that nobody will wait for this commit to be durable, so that an engine may make it cheaper; `next` says so too,
   * and that another write follows at once: an engine may begin it together with this commit, and let `next` ask ahead.
   */
  write<T>(work: (tx: Transaction) => Sooner<T>, durable?: Durable): Promise<T>;
  /**
   * Resolves when everything committed before the call would survive a power cut, in the database that others will find.
   * Calls that wait together share one fsync. `alone` says that nobody else is waiting for anything, so that the wait may
   * be the shortest instead.
   */
  sync(options?: { readonly alone: boolean }): Promise<void>;
  /** Rejects once what is open is no longer the database that others will find: an answer from it would not be true. */
  assertInPlace(): Promise<void>;
  /**
   * Rewrites everything, so that what was deleted is nowhere in the bytes. Answers whether it came to its end: it cannot
   * while somebody still reads an older state. To be repeated until it did.
   */
  purge(): Promise<boolean>;
  /** What is wrong with the schema, the indexes or the pages. */
  selfCheck(tx: Reader): Promise<StorageProblem[]>;
  /** Whether the process of this name can no longer end a call that it began so long ago. */
  isGone(tx: Reader, process: string, ageMs: number): Promise<boolean>;
  readonly facts: StorageFacts;
  /** What it means that a call was acknowledged, where that depends on how a server is set up. */
  readonly acknowledged?: Acknowledged | undefined;
  /** Whether several machines write to it, each with a key of its own. */
  readonly isShared?: boolean | undefined;
  /** How long the calls of a batch may take together before they are committed, where the engine has an opinion. */
  readonly batchMsMax?: number | undefined;
  close(): Promise<void>;
}

/** Which columns hold bytes: the two hashes of an audit row. A row is hashed as hex, and an engine makes bytes of it faster. */
export function isBytes(table: string, column: string): boolean {
  return table === 'actions' && (column === 'content' || column === 'chain');
}

/** Runs a statement that must change one row. */
export function changeOne(tx: Transaction, sql: string, ...params: SqlValue[]): void {
  tx.change(sql, ...params);
}

/** What a statement is answered with that changed another number of rows than it must. */
export function notAsMany(changes: number, wanted: number, sql: string): Error {
  return new Error(`${changes} rows changed instead of ${wanted}: ${sql.slice(0, 40)}`);
}

/** Something wrong with the database itself, in one sentence. */
export interface StorageProblem {
  /** With its schema or its pages, or with an index: what is derived from other tables. */
  readonly kind: 'schema' | 'index';
  readonly table: string;
  readonly record: string;
  readonly message: string;
}

/** No library for a database can be used here. The message also says what to do. */
export class NoEngineError extends Error {}

/** Why a database cannot be Colibri's, in one sentence with what to do. */
export class UnusableStorage extends Error {}

/** Nothing is wrong with the place, and there is no log in it yet. */
export class NoLogYet extends UnusableStorage {}

/** How many differences of a schema are told. */
export const FOREIGN_TOLD_MAX = 5;

/** Nothing of the database was read but its schema. */
export class ForeignSchema extends ColibriError {
  readonly problems: readonly StorageProblem[];

  constructor(path: string, problems: readonly StorageProblem[]) {
    const told = problems.slice(0, FOREIGN_TOLD_MAX).map(({ message }) => message);
    const more = problems.length > FOREIGN_TOLD_MAX ? ` And ${problems.length - FOREIGN_TOLD_MAX} more.` : '';
    const sentence = `${path} does not have the schema of this Colibri version, so it is not used. ${told.join(' ')}${more} Remove what does not belong there, or restore a good copy.`;
    super('ERR_INIT_FAILED', sentence, { reason: told[0] });
    this.problems = problems;
  }
}

/** Somebody has put a row where a new one belongs: Colibri numbers its rows under the write lock, and never twice alike. */
export class PlantedRow extends Error {
  constructor(path: string, cause: unknown) {
    const { message } = asError(cause);
    const sentence = `${path} already has a row where a new one belongs (${message}): something other than Colibri wrote it. Nothing was written. Run "colibri verify" to see which row it is, remove it or restore a good copy, then repeat the call.`;
    super(sentence, { cause });
  }
}

export interface Acknowledged {
  /** Where the call is by then, as the end of a sentence. */
  readonly means: string;
  /** What could still lose it, and how to set the server so that nothing does. */
  readonly weakness?: { readonly risk: string; readonly remedy: string };
}

/** What `server_health` shows about the open database. */
export interface StorageFacts {
  readonly path: string;
  readonly schemaVersion: number;
  readonly engine: string;
  readonly journal: string;
  readonly writable: boolean;
}

/** For where no database is open. Handlers that need none run; one that asks for a row is a bug. */
export function createNoStorage(): StorageEngine {
  const none = () => new Error('there is no database in this mode');
  const refuse = () => Promise.reject(none());
  const refuseNow = () => {
    throw none();
  };
  const tx: Transaction = {
    ...{
      get: refuse,
      all: refuse,
      lists: refuse,
      isPresent: refuse,
      run: refuse,
      change: refuseNow,
      insert: refuseNow,
      indexWords: refuse,
    },
    savepoint: async (work) => await work(),
    known: new Map(),
    now: () => undefined,
    foundBy: () => undefined,
    dialect: NO_DIALECT,
  };
  return {
    read: (work) => work(tx),
    write: async (work) => await work(tx),
    sync: () => Promise.resolve(),
    assertInPlace: () => Promise.resolve(),
    purge: refuse,
    selfCheck: refuse,
    isGone: refuse,
    close: () => Promise.resolve(),
    facts: { path: '', schemaVersion: 0, engine: 'none', journal: 'none', writable: false },
  };
}

const NO_DIALECT: Dialect = {
  ...{
    contains: () => '',
    containsInAnyCase: () => '',
    hex: () => '',
    hexOfTwo: () => '',
  },
  findTasks: () => ({ fetched: NOTHING, asked: NOTHING, count: NOTHING }),
};

const NOTHING: Condition = { sql: 'FALSE', params: [] };
