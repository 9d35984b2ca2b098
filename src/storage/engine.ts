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
}

/** The only writer of the file, in this process and in all others, until it ends. */
export interface Transaction extends Reader {
  run(sql: string, ...params: readonly SqlValue[]): Promise<{ readonly changes: number }>;
  /**
   * Runs `work` and takes back what it wrote if it rejects; the transaction goes on. After an error of the storage itself
   * nothing goes on: every later statement and the commit reject with that error, whoever caught it.
   */
  savepoint<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * The port every engine implements. Asynchronous from the first day, so that an engine across a network drops in
 * without touching a domain. SQL that goes through it is portable; dialect matters stay in the engine's folder.
 */
export interface StorageEngine {
  /** Runs `work` on one snapshot. Never waits for a writer and never makes one wait. */
  read<T>(work: (tx: Reader) => Promise<T>): Promise<T>;
  /** Runs `work` alone, commits when it resolves, rolls back when it rejects. Committed is not yet durable: see `sync`. */
  write<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Resolves when everything committed before the call would survive a power cut, in the database that others will find.
   * Calls that wait together share one fsync. `alone` says that nobody else is waiting for anything, so that the wait may
   * be the shortest instead.
   */
  sync(options?: { readonly alone: boolean }): Promise<void>;
  /** Rejects once what is open is no longer the database that others will find: an answer from it would not be true. */
  assertInPlace(): Promise<void>;
  /** What is wrong with the schema, the indexes or the pages of the file. */
  selfCheck(tx: Reader): Promise<StorageProblem[]>;
  readonly facts: StorageFacts;
  close(): Promise<void>;
}

/** Runs a statement that must change one row. Whatever may have swallowed it, a row that was not changed was not stored. */
export async function changeOne(tx: Transaction, sql: string, ...params: SqlValue[]): Promise<void> {
  const { changes } = await tx.run(sql, ...params);
  if (changes !== 1) throw new Error(`${changes} rows changed instead of one: ${sql.slice(0, 40)}`);
}

/** Something wrong with the file itself, in one sentence. The table is `sqlite_schema` where it is none of Colibri's. */
export interface StorageProblem {
  readonly table: string;
  readonly record: string;
  readonly message: string;
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
  const refuse = () => Promise.reject(new Error('there is no database in this mode'));
  const tx: Transaction = {
    ...{ get: refuse, all: refuse, lists: refuse, run: refuse },
    savepoint: (work) => work(),
  };
  return {
    read: (work) => work(tx),
    write: (work) => work(tx),
    sync: () => Promise.resolve(),
    assertInPlace: () => Promise.resolve(),
    selfCheck: refuse,
    close: () => Promise.resolve(),
    facts: { path: '', schemaVersion: 0, engine: 'none', journal: 'none', writable: false },
  };
}
