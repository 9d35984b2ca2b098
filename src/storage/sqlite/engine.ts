import { fdatasync, fdatasyncSync, statSync } from 'node:fs';
import { promisify } from 'node:util';
import { asError, ColibriError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Sooner } from '../../sooner.ts';
import {
  PlantedRow,
  type Reader,
  type StorageEngine,
  type StorageFacts,
  type StorageProblem,
  type Transaction,
} from '../engine.ts';
import { isGone } from '../process-identity.ts';
import { type Connection, openConnection, shortPause, whileBusy } from './connection.ts';
import { isTaken, loadDriver, resultOf, type SqliteDriver } from './driver.ts';
import { assertPresent, assertUnderstood, OpenFiles, preparePrivateFile, reach } from './file.ts';
import { LogFile } from './log-file.ts';
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from './schema.ts';
import { assertOwnSchema, findPageProblems } from './self-check.ts';

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** Reading is enough: where the file cannot be written, open it as it is. */
  readonly readingIsEnough?: boolean;
  /** Never create or write. */
  readonly readOnly?: boolean;
  /** Told once when a commit may or may not have happened; the process must end. */
  readonly onUncertain?: (error: ColibriError) => void;
  readonly driver?: SqliteDriver;
}

/** Whether another process has the file for itself: later it may be free again. */
export function isLocked(error: unknown): boolean {
  return resultOf(error) === 'busy' || (error instanceof ColibriError && error.code === 'ERR_STORAGE_BUSY');
}

/** Opens, or creates, the one file that holds everything. */
export async function openSqlite(options: SqliteOptions): Promise<StorageEngine> {
  const driver = options.driver ?? (await loadDriver());
  const inMemory = options.path === ':memory:';
  if (options.readOnly === true) assertPresent(options.path);
  // Another process may be creating the file, or merging its log, at this very moment.
  if (!inMemory) await whileBusy(() => assertUnderstood(driver, options.path));
  const before = reach(options.path);
  const writer = await openWriter(driver, options);
  try {
    if (writer.writable) await createSchema(writer);
    expectOwnSchema(writer, driver, options);
    await writer.begin('BEGIN');
    writer.rollback();
    const endings = writer.writable ? ['', '-wal', '-shm'] : [''];
    const paths = endings.map((ending) => options.path + ending);
    return new SqliteEngine(driver, writer, options, new OpenFiles(inMemory ? [] : paths, before));
  } catch (error) {
    writer.close();
    throw error;
  }
}

async function openWriter(
  driver: SqliteDriver,
  { path, readOnly, readingIsEnough }: SqliteOptions,
): Promise<Connection> {
  if (readOnly === true) return await openConnection(driver, path, { writable: false });
  try {
    if (path !== ':memory:') preparePrivateFile(path);
    return await openConnection(driver, path, { writable: true });
  } catch (error) {
    const code = resultOf(error) ?? (error instanceof Error && 'code' in error ? error.code : '');
    if (!CANNOT_WRITE.includes(code) || readingIsEnough !== true) throw error;
    return await openConnection(driver, path, { writable: false });
  }
}

function expectOwnSchema(db: Connection, driver: SqliteDriver, { path }: SqliteOptions): void {
  db.expectSchema(() => assertOwnSchema(driver, db, path));
}

const CANNOT_WRITE: readonly unknown[] = ['read-only', 'cannot-open', 'EACCES', 'EROFS', 'EPERM'];

/**
 * Makes the tables of a new file. The version is read again under the write lock: of eight processes that start at once
 * on no file one creates everything and seven find it done. A kill in the middle leaves an empty file.
 */
export async function createSchema(db: Connection): Promise<void> {
  if (db.pragma('user_version') === SCHEMA_VERSION) return;
  await db.alone(() => {
    const made = db.pragma('user_version');
    const marks = `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`;
    if (made === 0) db.script(`${SCHEMA}; ${marks}`);
    else if (made !== SCHEMA_VERSION)
      throw new Error(`another version of Colibri has just made it (schema ${made}); use that version`);
  });
  db.mergeLog('TRUNCATE');
}

const fdatasyncInThread = promisify(fdatasync);

/** Tries to merge the log while short readers are in the way: with three of them four busy processes had 9 MB, with ten 5. */
const MERGE_RETRIES_MAX = 10;

class SqliteEngine implements StorageEngine {
  readonly facts: StorageFacts;
  readonly #driver: SqliteDriver;
  readonly #options: SqliteOptions;
  readonly #writer: Connection;
  readonly #inMemory: boolean;
  readonly #files: OpenFiles;
  readonly #log: LogFile;
  readonly #idleReaders: Connection[] = [];
  /** Snapshots that this process reads right now. */
  #reading = 0;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #lastSync: Promise<void> = Promise.resolve();
  /** Flushes that run right now: one, or none. */
  #syncing = 0;
  #nextSync: Promise<void> | undefined;
  /** What would come during a flush that stops the event loop would wait for a slow disk. */
  #isDiskSlow = false;
  #closed = false;
  /** Runs out when no commit has come for a moment. */
  #quiet: NodeJS.Timeout | undefined;
  /** How long the log was when readers began to block its merge. */
  #unmergedFrom: number | undefined;
  /** When a search ended last. */
  #searchedAt = Number.NEGATIVE_INFINITY;
  /** When the files were last found in their places. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Set by the first failed write or sync; from then on nothing of this process can be called durable. */
  #failed: ColibriError | undefined;

  constructor(driver: SqliteDriver, writer: Connection, options: SqliteOptions, files: OpenFiles) {
    this.#driver = driver;
    this.#writer = writer;
    this.#options = options;
    this.#files = files;
    this.#log = new LogFile(`${options.path}-wal`, writer.pragma('page_size'));
    this.#inMemory = options.path === ':memory:';
    this.facts = Object.freeze({
      path: options.path,
      schemaVersion: writer.pragma('user_version'),
      engine: `SQLite ${driver.sqliteVersion} (${driver.name})`,
      journal: writer.journal,
      writable: writer.writable,
    });
  }

  async read<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    // A database in memory has one connection and no snapshots: reads there see the present.
    if (this.#inMemory) return await work(this.#writer);
    let reader: Connection | undefined;
    let searches: number | undefined;
    this.#reading += 1;
    try {
      reader = this.#idleReaders.pop() ?? (await this.#openReader());
      searches = reader.searches;
      await reader.begin('BEGIN');
      return await work(reader);
    } catch (error) {
      throw this.#refusal(error) ?? this.#damage(error) ?? error;
    } finally {
      this.#reading -= 1;
      if (reader?.searches !== searches) this.#searchedAt = performance.now();
      reader?.rollback();
      if (this.#idleReaders.length < LIMITS.idleReadersMax && !this.#closed && reader !== undefined)
        this.#idleReaders.push(reader);
      else reader?.close();
    }
  }

  async #openReader(): Promise<Connection> {
    const { path, readOnly } = this.#options;
    const reader = await openConnection(this.#driver, path, { writable: false, readsAll: readOnly });
    expectOwnSchema(reader, this.#driver, this.#options);
    return reader;
  }

  async write<T>(work: (tx: Transaction) => Sooner<T>): Promise<T> {
    const turn = this.#lastWrite.then(() => this.#writeAlone(work));
    this.#lastWrite = turn.catch(() => undefined);
    return await turn;
  }

  /**
   * BEGIN IMMEDIATE, never a plain BEGIN: a reader that turns writer is refused at once whatever the busy timeout says
   * (3,500 of 4,000 appends by eight processes were lost that way).
   */
  async #writeAlone<T>(work: (tx: Transaction) => Sooner<T>): Promise<T> {
    try {
      // Other processes may use the log beside a new file already, and behind a cut nobody would find the commit. What only
      // the log itself tells is found by the look that follows every commit, and no answer is given before that one.
      if (performance.now() - this.#lookedAt > LIMITS.lookAgainMs) this.#assertUnchanged({ readsLog: false });
      // Where others write there may be no quiet moment, and where somebody searches, tasks that wait cost more than they save.
      const mayWait = performance.now() - Math.max(this.#writer.othersAt, this.#searchedAt) > LIMITS.busyMs;
      const newTasks = mayWait ? LIMITS.newTasksMax : LIMITS.newTasksDue;
      const result = await this.#writer.alone(() => work(this.#writer), { newTasks });
      await this.#keepLogShort(mayWait ? LIMITS.logBytesOverdue : LIMITS.logBytesMax);
      this.#keepUpSoon();
      return result;
    } catch (error) {
      throw this.#refusal(error) ?? (this.#damage(error) === undefined ? error : this.#uncertain(error));
    }
  }

  /**
   * What has to be done now and then is done as soon as no commit has come for a moment, so that few calls wait for it. What
   * is known of the log is from the last look, which comes after each commit: the timer starts with the next one.
   */
  #keepUpSoon(): void {
    if (this.#log.bytes <= LIMITS.logBytesMax && !this.#writer.hasManyNewTasks) return;
    this.#quiet ??= setTimeout(() => this.#keepUp(), LIMITS.quietMs).unref();
    this.#quiet.refresh();
  }

  #keepUp(): void {
    const turn = this.#lastWrite.then(async () => {
      // The next call finds out what is wrong, and says so.
      if (this.#closed || this.#failed !== undefined || this.#whatHappened() !== undefined) return;
      await this.#writer.indexNewTasks();
      await this.#mergeLog(LIMITS.logBytesMax);
    });
    // No call depends on it: what fails is done later, and a disk that has failed is told to the next sync.
    this.#lastWrite = turn.catch(() => undefined);
  }

  /**
   * Merges the log once it is longer than `most`. A reader in the middle of it prevents that, so a writer gives short readers
   * of other processes a moment to end; a slow one must not slow the writers, and one of our own would wait for us.
   */
  async #keepLogShort(most: number): Promise<void> {
    if (this.#log.bytes <= most) this.#unmergedFrom = undefined;
    else for (let tries = 0; await this.#isWorthAnotherTry(most, tries); tries += 1) await shortPause();
  }

  async #isWorthAnotherTry(most: number, tries: number): Promise<boolean> {
    const left = await this.#mergeLog(most);
    this.#unmergedFrom = left === 0 ? undefined : Math.min(left, this.#unmergedFrom ?? left);
    const grown = left - (this.#unmergedFrom ?? left);
    const isWorthIt = grown > LIMITS.logGrowthPatient && grown < LIMITS.logGrowthHopeless;
    return isWorthIt && this.#reading === 0 && tries < MERGE_RETRIES_MAX;
  }

  /**
   * Merges the log if it is longer than `most`. Answers how long it is if it could not be merged, otherwise 0. Whatever the disk
   * says, the commits in it have happened.
   */
  async #mergeLog(most: number): Promise<number> {
    const bytesNow = this.#log.bytesOf(this.#writer.logFrames() ?? 0);
    if (bytesNow <= most) return 0;
    // A file that was cut short would look whole again.
    await this.assertInPlace();
    const bytes = this.#databaseBytes();
    if (!this.#writer.mergeLog('RESTART')) return bytesNow;
    this.#files.noteBytes(this.#options.path, bytes);
    return 0;
  }

  /**
   * Commits reach the kernel at once (synchronous = NORMAL) and the disk here, in one fdatasync of the write-ahead log
   * for all calls that wait together. A caller that arrives while one runs waits for the next: its commit may be too late for this one.
   */
  async sync({ alone }: { readonly alone: boolean } = { alone: false }): Promise<void> {
    if (this.#inMemory || !this.#writer.writable) return;
    // Handing the fsync to another thread costs half as much again as the fsync; with nobody to share it, do it here.
    if (alone && this.#syncing === 0 && this.#nextSync === undefined && !this.#isDiskSlow)
      return await this.#flush('here');
    this.#nextSync ??= this.#lastSync.then(() => {
      this.#nextSync = undefined;
      const running = this.#flush('in a thread');
      this.#lastSync = running.catch(() => undefined);
      return running;
    });
    await this.#nextSync;
  }

  async #flush(where: 'here' | 'in a thread'): Promise<void> {
    // The kernel reports a failed flush once and forgets the pages: the next fdatasync would succeed and mean nothing.
    if (this.#failed !== undefined) throw this.#failed;
    this.#syncing += 1;
    const began = performance.now();
    try {
      if (where === 'here') fdatasyncSync(this.#log.fd);
      else await fdatasyncInThread(this.#log.fd);
      const isSlow = performance.now() - began > LIMITS.flushHereMsMax;
      // On a fast disk, too, the answer of a thread may be late.
      if (where === 'here' || !isSlow) this.#isDiskSlow = isSlow;
      await this.assertInPlace();
    } catch (error) {
      throw this.#uncertain(error);
    } finally {
      this.#syncing -= 1;
    }
  }

  /** Looks at the paths and at the end of the log, 15 us. Not before the fsync: what happens during it would go unseen. */
  async assertInPlace(): Promise<void> {
    this.#assertUnchanged({ readsLog: true });
  }

  #assertUnchanged({ readsLog }: { readonly readsLog: boolean }): void {
    const what = this.#whatHappened(readsLog);
    if (this.#failed !== undefined || what !== undefined) throw this.#uncertain(undefined, what);
    this.#lookedAt = performance.now();
  }

  #whatHappened(readsLog = true): string | undefined {
    return this.#files.whatHappened((path, shrank) => {
      if (path === this.#options.path) return shrank && this.#hasLostPages();
      // Of the shared memory, it matters only that all processes have the same: it holds their locks.
      if (path !== this.#log.path || !(shrank || readsLog)) return false;
      return this.#log.isCut(() => this.#writer.logFrames());
    });
  }

  /** Whether the database file has become shorter than SQLite made it. */
  #hasLostPages(): boolean {
    try {
      return statSync(this.#options.path).size < this.#databaseBytes();
    } catch {
      return true;
    }
  }

  /** How long the file is, or will be when the log has been merged. */
  #databaseBytes(): number {
    return this.#writer.pragma('page_count') * this.#writer.pragma('page_size');
  }

  async purge(): Promise<boolean> {
    const turn = this.#lastWrite.then(() => this.#rebuild());
    this.#lastWrite = turn.catch(() => undefined);
    await turn;
    if (this.#inMemory) return true;
    // The log still holds the pages as they were.
    return await this.#writer.cutLog();
  }

  async #rebuild(): Promise<void> {
    try {
      this.#assertUnchanged({ readsLog: true });
      await this.#writer.rebuild();
    } catch (error) {
      throw this.#refusal(error) ?? (this.#damage(error) === undefined ? error : this.#uncertain(error));
    }
  }

  async selfCheck(tx: Reader): Promise<StorageProblem[]> {
    return await findPageProblems(this.#driver, tx);
  }

  async isGone(_: Reader, process: string, ageMs: number): Promise<boolean> {
    return isGone(process, ageMs);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#quiet);
    await this.#lastWrite;
    await (this.#nextSync ?? this.#lastSync).catch(() => undefined);
    await this.assertInPlace().catch(() => undefined);
    // Merging could spoil what is at the path now, or what a new start will find out from; closing would merge too.
    if (this.#failed !== undefined) return;
    for (const reader of this.#idleReaders.splice(0)) reader.close();
    if (this.#writer.writable) {
      this.#writer.indexRest();
      this.#writer.mergeLog('TRUNCATE');
    }
    this.#writer.close();
    this.#log.close();
  }

  /** Errors after which it is certain that nothing was written. */
  #refusal(cause: unknown): Error | undefined {
    const { path } = this.#options;
    const result = resultOf(cause);
    if (result === 'full') {
      const sentence = `The disk that holds ${path} is full; nothing was written. Reading still works. Free some space and repeat the call.`;
      return new ColibriError('ERR_STORAGE_FULL', sentence, {}, { cause });
    }
    if (isTaken(cause)) return new PlantedRow(path, cause);
    if (result !== 'busy') return undefined;
    const waited = LIMITS.lockWaitMsMax;
    const sentence = `Another process held ${path} for more than ${waited / 1000} s; nothing was written. Repeat the call; if this continues, look for a suspended process.`;
    return new ColibriError('ERR_STORAGE_BUSY', sentence, { waited_ms: waited }, { cause });
  }

  /** A file or a disk that can no longer be trusted. A read of it has failed and no more; a write of it is another matter. */
  #damage(cause: unknown): Error | undefined {
    const result = resultOf(cause);
    if (result === undefined || !DAMAGED.includes(result)) return undefined;
    const reason = asError(cause).message;
    const sentence = `${this.#options.path} cannot be read (${reason}). "colibri verify" says up to which row it is intact; restore a good copy.`;
    return new Error(sentence, { cause });
  }

  /** After a failed write or fsync, and in a file that is no longer the one at the path, nobody will find the rows for sure. */
  #uncertain(cause: unknown, what = this.#whatHappened()): ColibriError {
    if (this.#failed !== undefined) return this.#failed;
    const reason = what ?? asError(cause).message;
    const failure = what ?? `The disk failed on ${this.#options.path} (${reason}).`;
    const sentence = `${failure} It is not known whether the call was stored. The server stops. Make sure that the database is in place, start the server again, and look the call up before you repeat it.`;
    this.#failed = new ColibriError('ERR_STORAGE_UNCERTAIN', sentence, { reason }, { cause });
    this.#options.onUncertain?.(this.#failed);
    return this.#failed;
  }
}

const DAMAGED: readonly string[] = ['io', 'corrupt', 'not-a-database', 'read-only'];
