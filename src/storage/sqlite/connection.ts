import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '../../limits.ts';
import { after, type Sooner } from '../../sooner.ts';
import { notAsMany, type Row, type SqlList, type SqlValue, type Transaction } from '../engine.ts';
import { isPresent } from '../process-identity.ts';
import { SQLITE_DIALECT } from './dialect.ts';
import { resultOf, type SqliteConnection, type SqliteDriver, type SqliteStatement } from './driver.ts';
import { insertions, type NewRow } from './insertions.ts';
import { INDEX_NEW_TASKS, INDEXED_TO, NewTasks } from './word-index.ts';

/** In kilobytes, negative as SQLite wants it. A call needs few pages, and every write empties the readers' caches anyway. */
const CACHE_SIZE = -2_000;

/** Of a connection that reads everything: at a million rows, checking the indexes takes a quarter less time with it. */
const LARGE_CACHE_SIZE = -64_000;

/** What each connection is set to, and what it must read back. A setting that did not take is a refusal to start. */
const WRITER_PRAGMAS: Readonly<Record<string, number>> = {
  // NORMAL: a commit reaches the kernel, a checkpoint syncs. The engine fsyncs the log itself before a call is answered.
  synchronous: 1,
  foreign_keys: 1,
  trusted_schema: 0,
  cell_size_check: 1,
  fullfsync: 1,
  checkpoint_fullfsync: 1,
  // SQLite's own merge lets other processes commit meanwhile, so that with four busy ones the log never starts over: it
  // grew to 54 MB. The engine merges under the write lock instead. A log that was longer is cut back when it starts over.
  wal_autocheckpoint: 0,
  journal_size_limit: LIMITS.logBytesOverdue,
};

const READER_PRAGMAS: Readonly<Record<string, number>> = {
  query_only: 1,
  trusted_schema: 0,
  cell_size_check: 1,
};

export async function openConnection(
  driver: SqliteDriver,
  path: string,
  { writable, readsAll = false }: { readonly writable: boolean; readonly readsAll?: boolean | undefined },
): Promise<Connection> {
  const configured = async (db: SqliteConnection) => {
    const connection = new Connection(db, writable, new NewTasks(driver));
    try {
      await connection.configure(path === ':memory:' ? 'memory' : 'wal', {
        ...(writable ? WRITER_PRAGMAS : READER_PRAGMAS),
        cache_size: readsAll ? LARGE_CACHE_SIZE : CACHE_SIZE,
      });
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  };
  try {
    return await configured(driver.open(path, { readOnly: !writable }));
  } catch (error) {
    // A database with a write-ahead log wants a file next to it even to be read. Where none can be made and none is left
    // over, nobody can be writing either, and the file can be read as it is.
    const isSealed = resultOf(error) === 'cannot-open' && existsSync(path) && !existsSync(`${path}-wal`);
    if (writable || !isSealed) throw error;
    return await configured(driver.openUnchanging(path));
  }
}

/** One open connection with its prepared statements. Holds what must be closed. */
export class Connection implements Transaction {
  readonly writable: boolean;
  readonly dialect = SQLITE_DIALECT;
  journal = '';
  readonly #db: SqliteConnection;
  readonly #statements = new Map<string, SqliteStatement>();
  readonly #listing = new Map<string, SqliteStatement>();
  /** Run by each transaction that finds another schema than the last one did. */
  #checkSchema: (() => void) | undefined;
  /** The version of the schema that SQLite has in memory, if that one was found to be ours. Somebody may set back the number in the file. */
  #checkedVersion: number | undefined;
  readonly known = new Map<string, unknown>();
  commits = 0;
  /** Another number whenever others have committed, and the one at the last look. */
  #others: number | undefined;
  /** When it was seen last that others have committed. */
  othersAt = Number.NEGATIVE_INFINITY;
  #isWriting = false;
  /** What the index of words gets at the end: it writes a part of its own whenever a savepoint ends. */
  #words: Waiting[] = [];
  /** The last task that is new in this transaction, and whether one of those has a long text. */
  #newest = 0;
  #isLong = false;
  /** How many new tasks wait for the index of words. */
  #newTasksWaiting = 0;
  /** What is to be written, in its order: rows of one table that follow each other leave together. */
  #waiting: Waiting[] = [];
  /** The savepoint that is open: where its writes begin among those that wait, and whether SQLite knows of it. */
  #savepoint: { from: number; begun: boolean } | undefined;
  /** How the storage failed in the transaction that writes; SQLite may have ended it already, as it does on a full disk. */
  #failure: unknown;

  readonly #newTasks: NewTasks;

  constructor(db: SqliteConnection, writable: boolean, newTasks: NewTasks) {
    this.#db = db;
    this.writable = writable;
    this.#newTasks = newTasks;
    newTasks.makeSearchable(db);
  }

  async configure(journal: 'memory' | 'wal', pragmas: Readonly<Record<string, number>>): Promise<void> {
    await whileBusy(
      () => {
        if (this.writable) this.#db.exec('PRAGMA journal_mode = WAL');
        this.journal = String(this.#value('PRAGMA journal_mode'));
      },
      undefined,
      () => this.#commitsOfOthers(),
    );
    if (this.writable && this.journal !== journal) {
      const hint = 'the file system may not support shared memory';
      throw new Error(`journal_mode is ${this.journal}, not ${journal}; ${hint}`);
    }
    for (const [name, wanted] of Object.entries(pragmas)) {
      this.#db.exec(`PRAGMA ${name} = ${wanted}`);
      const found = this.pragma(name);
      if (found !== wanted)
        throw new Error(`SQLite did not take PRAGMA ${name} = ${wanted} (it reads ${found})`);
    }
  }

  /** How often somebody has searched for words. */
  get searches(): number {
    return this.#newTasks.searches;
  }

  async isPresent(process: string): Promise<boolean> {
    return isPresent(process);
  }

  // SQLite answers at once; promises only so that the port can be served by an engine that does not.
  async get<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T | undefined> {
    return this.#read('get', this.#statements, sql, params) as T | undefined;
  }

  async all<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T[]> {
    return this.#read('all', this.#statements, sql, params) as T[];
  }

  async lists(sql: string, ...params: readonly SqlValue[]): Promise<SqlList[]> {
    return this.#read('all', this.#listing, sql, params) as SqlList[];
  }

  async run(sql: string, ...params: readonly SqlValue[]): Promise<{ readonly changes: number }> {
    this.#writeWaiting(true);
    return this.#run(sql, params);
  }

  change(sql: string, ...params: readonly SqlValue[]): void {
    this.#waiting.push({ sql, params });
  }

  insert(table: string, columns: readonly string[], rows: readonly SqlList[]): void {
    for (const params of rows) this.#waiting.push({ table, columns, params });
  }

  /** Writes what waits, and begins the savepoint before the first thing that it might have to take back. */
  #writeWaiting(andMore = false): void {
    if (this.#waiting.length === 0 && !andMore) return;
    const [waiting, savepoint] = [this.#waiting, this.#savepoint];
    this.#waiting = [];
    try {
      if (savepoint?.begun === false) {
        this.#writeAll(waiting.splice(0, savepoint.from));
        savepoint.from = 0;
        savepoint.begun = andMore || waiting.length > 0;
        if (savepoint.begun) this.#run('SAVEPOINT work', []);
      }
      this.#writeAll(waiting);
    } catch (error) {
      // It may be of a call that has ended well: nothing of this transaction may be committed.
      this.#failure ??= error;
      throw error;
    }
  }

  #writeAll(waiting: readonly Waiting[]): void {
    for (let i = 0; i < waiting.length; ) {
      const first = waiting[i]!;
      if (first.sql !== undefined) {
        this.#change(1, first.sql, first.params);
        i += 1;
        continue;
      }
      const rows: NewRow[] = [];
      for (let row: Waiting | undefined = first; row?.table === first.table; row = waiting[i]) {
        rows.push(row);
        i += 1;
      }
      for (const { sql, params, count } of insertions(rows)) this.#change(count, sql, params);
    }
  }

  #change(wanted: number, sql: string, params: SqlList): void {
    const { changes } = this.#run(sql, params);
    if (changes !== wanted) throw notAsMany(changes, wanted, sql);
  }

  #run(sql: string, params: SqlList): { readonly changes: number } {
    const [marked, values] = withWholeTexts(sql, params);
    if (this.#failure !== undefined) throw this.#failure;
    try {
      return this.#prepared(marked).run(...values);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** The database is on this machine. */
  now(): undefined {}

  /** The answer to a commit is never lost on its way here. */
  foundBy(): void {}

  indexWords(task: number, isNew: boolean, texts: () => Sooner<readonly string[]>): Sooner<void> {
    if (isNew) {
      this.#newest = task;
      if (this.#isLong) return undefined;
      // A search takes such a text apart each time as long as it waits.
      return after(texts(), (found) => {
        this.#isLong = found.reduce((chars, text) => chars + text.length, 0) > LONG_TEXT_CHARS;
      });
    }
    if (task > this.#indexedTo()) return undefined;
    return after(texts(), (found) => {
      this.#words.push({ sql: REINDEX_WORDS, params: [task, ...found] });
    });
  }

  /** The last task whose words are in the index. */
  #indexedTo(): number {
    try {
      return (this.#prepared(INDEXED_TO).get() as { id: number }).id;
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /**
   * New tasks are indexed together, which takes less than half the time. Until then a search looks at each of them. Answers
   * whether it was done.
   */
  #indexIfMany(many: number): boolean {
    if (this.#newest === 0) return false;
    this.#newTasksWaiting = this.#newest - this.#indexedTo();
    if (!this.#isLong && this.#newTasksWaiting < many) return false;
    this.#run(INDEX_NEW_TASKS, []);
    return true;
  }

  /** Whether so many new tasks wait that it is worth a commit. */
  get hasManyNewTasks(): boolean {
    return this.#newTasksWaiting >= LIMITS.newTasksDue;
  }

  /** Enters them, if there are many. It fails at once where somebody else writes. */
  async indexNewTasks(): Promise<void> {
    if (!this.hasManyNewTasks) return;
    await this.alone(() => this.run(INDEX_NEW_TASKS), { isPatient: false });
    this.#newTasksWaiting = 0;
  }

  /** At the end, unless somebody else writes just now: then that one will do it. */
  indexRest(): void {
    if (this.#newTasksWaiting === 0) return;
    try {
      for (const sql of ['BEGIN IMMEDIATE', INDEX_NEW_TASKS, 'COMMIT']) this.#prepared(sql).run();
    } catch {
      this.rollback();
    }
  }

  async savepoint<T>(work: () => Sooner<T>, undo?: () => void): Promise<T> {
    const outer = this.#savepoint;
    if (outer !== undefined) this.#writeWaiting(true);
    const savepoint = { from: this.#waiting.length, begun: false };
    this.#savepoint = savepoint;
    const [{ length }, newest] = [this.#words, this.#newest];
    try {
      const result = await work();
      if (savepoint.begun) this.#run('RELEASE work', []);
      return result;
    } catch (error) {
      this.known.clear();
      this.#words.length = length;
      this.#newest = newest;
      // Where writing what waits has failed, nothing waits any more.
      this.#waiting.length = savepoint.begun ? 0 : Math.min(savepoint.from, this.#waiting.length);
      if (savepoint.begun && this.#failure === undefined) this.#takeBack();
      undo?.();
      throw error;
    } finally {
      this.#savepoint = outer;
    }
  }

  #takeBack(): void {
    try {
      for (const sql of ['ROLLBACK TO work', 'RELEASE work']) this.#prepared(sql).run();
    } catch (failure) {
      // What should be gone may still be there: nothing of this transaction may be committed.
      this.#failure = failure;
    }
  }

  /** Without a promise, for what is looked up while a transaction begins. */
  rows<T extends object>(sql: string): T[] {
    return this.#prepared(sql).all() as T[];
  }

  /** Several statements at once; for the schema only. */
  script(sql: string): void {
    this.#db.exec(sql);
  }

  /** Outside a transaction, SQLite may read another schema for it. */
  pragma(name: string): number {
    [this.#checkedVersion, this.#others] = [undefined, undefined];
    return Number(this.#value(`PRAGMA ${name}`));
  }

  /** BEGIN IMMEDIATE to write. A plain BEGIN reads; looking at the schema takes its snapshot, because that may meet a busy moment. */
  async begin(statement: 'BEGIN' | 'BEGIN IMMEDIATE', isPatient = true): Promise<void> {
    const begin = () => {
      this.#prepared(statement).run();
      const others = this.#dataVersion();
      // What nobody else has changed is as this connection left it, and as it is known to be.
      if (this.known.size > LIMITS.knownRowsMax) this.known.clear();
      if (others === this.#others) return;
      if (this.#others !== undefined) this.othersAt = performance.now();
      this.known.clear();
      this.#assertSchema();
      this.commits += 1;
      this.#others = others;
    };
    if (!isPatient) return begin();
    await whileBusy(
      begin,
      () => {
        if (statement === 'BEGIN') this.rollback();
      },
      () => this.#commitsOfOthers(),
    );
  }

  /** Another number whenever another connection has committed; undefined while not even that can be read. */
  #commitsOfOthers(): number | undefined {
    try {
      return this.#dataVersion();
    } catch {
      return undefined;
    }
  }

  #dataVersion(): number {
    return (this.#prepared('PRAGMA data_version').get() as { data_version: number }).data_version;
  }

  /** From now on, every transaction rejects where `check` throws. Under the write lock, nobody can change the schema behind it. */
  expectSchema(check: () => void): void {
    this.#checkSchema = check;
  }

  #assertSchema(): void {
    const { schema_version: version } = this.#prepared('PRAGMA schema_version').get() as {
      schema_version: number;
    };
    if (this.#checkSchema === undefined || version === this.#checkedVersion) return;
    this.#checkedVersion = undefined;
    this.#checkSchema();
    this.#checkedVersion = version;
  }

  /** Runs `work` alone and commits, or takes all of it back. Fewer than `newTasks` wait for the index of words then. */
  async alone<T>(
    work: () => T,
    { newTasks = LIMITS.newTasksMax, isPatient = true }: { newTasks?: number; isPatient?: boolean } = {},
  ): Promise<Awaited<T>> {
    try {
      await this.begin('BEGIN IMMEDIATE', isPatient);
      [this.#isWriting, this.#failure] = [true, undefined];
      const result = await work();
      this.#writeWaiting();
      this.#writeAll(this.#words);
      const isIndexed = this.#indexIfMany(newTasks);
      this.#run('COMMIT', []);
      if (isIndexed) this.#newTasksWaiting = 0;
      this.commits += 1;
      return result;
    } catch (error) {
      this.rollback();
      this.known.clear();
      throw error;
    } finally {
      [this.#isWriting, this.#failure] = [false, undefined];
      [this.#words, this.#waiting, this.#newest, this.#isLong] = [[], [], 0, false];
    }
  }

  /** Also right after a failure that has ended the transaction already, as a full disk does. */
  rollback(): void {
    try {
      this.#prepared('ROLLBACK').run();
    } catch {
      // No transaction was open: nothing to take back.
    }
  }

  /** Merges the write-ahead log into the file, and says whether it could: not while another process writes or reads from it. */
  mergeLog(andThen: 'RESTART' | 'TRUNCATE'): boolean {
    try {
      const { busy } = this.#prepared(`PRAGMA wal_checkpoint(${andThen})`).get() as { busy: number };
      return busy === 0;
    } catch {
      // Nothing is lost by a merge that fails: the log is left as it was, and the next merge copies all of it again. Should
      // the disk have forgotten part of the log, our own sync of it is told as well.
      return false;
    }
  }

  /**
   * Builds the index of words and the whole file anew: of a deleted row, the index keeps its words, and pages keep copies
   * of it from when they were split.
   */
  async rebuild(): Promise<void> {
    await this.alone(async () => {
      await this.run(INDEX_NEW_TASKS);
      await this.run("INSERT INTO task_words (task_words) VALUES ('rebuild')");
    });
    await whileBusy(
      () => this.#prepared('VACUUM').run(),
      undefined,
      () => this.#commitsOfOthers(),
    );
  }

  /** Merges the write-ahead log and cuts it off, and says whether it could: it waits some time for whoever reads from it. */
  async cutLog(): Promise<boolean> {
    const since = performance.now();
    for (let tries = 0; !this.mergeLog('TRUNCATE'); tries += 1) {
      if (performance.now() - since > LIMITS.purgeWaitMsMax) return false;
      await shortPause(tries);
    }
    return true;
  }

  /** Pages in the write-ahead log, each once per commit that wrote it. Undefined while a transaction is open. */
  logFrames(): number | undefined {
    try {
      return (this.#prepared('PRAGMA wal_checkpoint(NOOP)').get() as { log: number }).log;
    } catch {
      return undefined;
    }
  }

  close(): void {
    this.#statements.clear();
    this.#listing.clear();
    this.#newTasks.close();
    this.#db.close();
  }

  /**
   * Reads with integers as numbers. No call stores one that a number cannot hold, but a changed file may: they are rounded,
   * so that the verifier can name the row. To read every integer as a bigint would make every call slower.
   */
  #read(how: 'get' | 'all', among: Map<string, SqliteStatement>, sql: string, params: SqlList): unknown {
    this.#writeWaiting();
    const [marked, values] = withWholeTexts(sql, params);
    if (this.#failure !== undefined) throw this.#failure;
    try {
      return this.#prepared(marked, among)[how](...values);
    } catch (error) {
      if (Reflect.get(Object(error), 'code') !== 'ERR_OUT_OF_RANGE') throw this.#noted(error);
      const statement = this.#prepared(marked, among);
      statement.setReadBigInts(true);
      const read = statement[how](...values);
      statement.setReadBigInts(false);
      return rounded(read);
    }
  }

  /** In a transaction that writes, no statement is run after one that met a failing storage. */
  #noted(error: unknown): unknown {
    if (this.#isWriting && resultOf(error) !== undefined) this.#failure = error;
    return error;
  }

  #prepared(sql: string, among = this.#statements): SqliteStatement {
    const known = among.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    if (among === this.#listing) statement.setReturnArrays(true);
    among.set(sql, statement);
    return statement;
  }

  #value(sql: string): unknown {
    return Object.values(this.#db.prepare(sql).get() ?? {})[0];
  }
}

/** A statement that changes one row, or a row of a table. */
type Waiting =
  | { readonly sql: string; readonly params: SqlList; readonly table?: undefined }
  | ({ readonly sql?: undefined } & NewRow);

/** A task with a longer text is indexed at once: many of them would hold up each search. */
const LONG_TEXT_CHARS = 1_000;

const REINDEX_WORDS = 'INSERT OR REPLACE INTO task_words (rowid, title, description) VALUES (?, ?, ?)';

const hasNul = (value: SqlValue) => typeof value === 'string' && value.includes('\0');

/**
 * The package binds a text only up to its first U+0000, so that a search for one would find another. No call stores such a
 * text, but a changed file may hold one: it is bound as its bytes.
 */
function withWholeTexts(sql: string, params: SqlList): readonly [sql: string, params: SqlList] {
  if (!params.some(hasNul)) return [sql, params];
  const texts = params.map(hasNul).values();
  const marked = sql.replaceAll('?', () => (texts.next().value === true ? 'CAST(? AS TEXT)' : '?'));
  return [marked, params.map((value) => (hasNul(value) ? Buffer.from(String(value)) : value))];
}

/** Rows, or one row, with their integers as numbers. */
function rounded(rows: object | undefined): object | undefined {
  for (const [key, value] of Object.entries(rows ?? {}))
    if (typeof value === 'bigint') Object.assign(rows ?? {}, { [key]: Number(value) });
    else if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) rounded(value);
  return rows;
}

/**
 * The wait for other processes is ours, not SQLite's: its own sleeps stop the event loop and let newcomers overtake
 * (worst wait with eight writers 2.8 s, against 0.19 s with this jitter). It ends when one of them has held the lock for
 * too long, not when many had it in turn: `turn` answers something else after each of their commits. The pauses grow, or
 * the tries of 120 processes would take all the time of two cores and leave none to the one that has the lock.
 */
export async function whileBusy(
  work: () => void,
  beforeNextTry: () => void = () => undefined,
  turn: () => number | undefined = () => undefined,
): Promise<void> {
  let since: number | undefined;
  let before: number | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      work();
      return;
    } catch (error) {
      if (resultOf(error) !== 'busy') throw error;
      beforeNextTry();
      if (since === undefined) [since, before] = [performance.now(), turn()];
      if (performance.now() - since > LIMITS.lockWaitMsMax) {
        const now = turn();
        if (now === before) throw error;
        [since, before] = [performance.now(), now];
      }
    }
    if (tries < LIMITS.lockTriesSoon) doze();
    else await shortPause(tries - LIMITS.lockTriesSoon);
  }
}

const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * About a tenth of a millisecond, for which the event loop stops: no timer of it is that short, and a small commit takes a
 * few of these. Linux adds most of it to what is asked for.
 */
function doze(): void {
  Atomics.wait(never, 0, 0, 0.02);
}

/** A moment, drawn at random so that processes that wait together do not come back together. */
export function shortPause(tries = 0): Promise<void> {
  const longest = Math.min(LIMITS.lockRetryMsMax + tries / 4, 10 * LIMITS.lockRetryMsMax);
  return sleep(1 + Math.random() * (longest - 1));
}
