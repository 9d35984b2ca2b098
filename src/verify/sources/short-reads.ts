import type { Dialect, Reader, Row, SqlList, SqlValue, StorageEngine } from '../../storage/engine.ts';

/**
 * Reads a database that others write to in short transactions, one a query, and then from one snapshot: a snapshot that stays
 * open keeps a server from clearing up, so that every write gets slower. Rows of the log never change; the rest of the
 * database is read when the log has been.
 */
export class ShortReads implements Reader {
  readonly dialect: Dialect;
  readonly #storage: StorageEngine;
  #snapshot: Reader | undefined;
  #end: () => void = () => undefined;
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(storage: StorageEngine, dialect: Dialect) {
    this.#storage = storage;
    this.dialect = dialect;
  }

  /** Runs `work` on it and lets go of the snapshot. */
  static async run<T>(storage: StorageEngine, work: (tx: Reader) => Promise<T>): Promise<T> {
    const reads = new ShortReads(storage, await storage.read(async (tx) => tx.dialect));
    try {
      return await work(reads);
    } finally {
      reads.#end();
      await reads.#ended;
    }
  }

  get isCaughtUp(): boolean {
    return this.#snapshot !== undefined;
  }

  /** From now on, everything is read from one snapshot. */
  async catchUp(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const held = new Promise<void>((release) => {
        this.#end = release;
      });
      this.#ended = this.#storage.read(async (tx) => {
        // The first question is what takes the snapshot.
        await tx.get('SELECT 1 AS begun');
        this.#snapshot = tx;
        resolve();
        await held;
      });
      this.#ended.catch(reject);
    });
  }

  get<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T | undefined> {
    return this.#read((tx) => tx.get<T>(sql, ...params));
  }

  all<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T[]> {
    return this.#read((tx) => tx.all<T>(sql, ...params));
  }

  lists(sql: string, ...params: readonly SqlValue[]): Promise<SqlList[]> {
    return this.#read((tx) => tx.lists(sql, ...params));
  }

  isPresent(process: string): Promise<boolean> {
    return this.#read((tx) => tx.isPresent(process));
  }

  #read<T>(query: (tx: Reader) => Promise<T>): Promise<T> {
    return this.#snapshot === undefined ? this.#storage.read(query) : query(this.#snapshot);
  }
}
