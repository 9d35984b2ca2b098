import { after, type Sooner } from '../../sooner.ts';
import { isBytes, type Reader, type Row, type SqlList, type SqlValue, type Transaction } from '../engine.ts';
import { isOnThisMachine, isPresent } from '../process-identity.ts';
import { Changes } from './changes.ts';
import { POSTGRES_DIALECT } from './dialect.ts';
import { type Answer, codeOf, countOf, isLost, type Session } from './driver.ts';
import { nameLock, PRESENT } from './presence.ts';
import { indexedWords } from './words.ts';

/** One consistent view, or the only writer: whoever opens it has begun its transaction. */
export class PostgresReader implements Reader {
  readonly dialect = POSTGRES_DIALECT;
  protected readonly session: Session;

  constructor(session: Session) {
    this.session = session;
  }

  async get<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T | undefined> {
    return (await this.ask(sql, params)).rows[0] as T | undefined;
  }

  async all<T extends object = Row>(sql: string, ...params: readonly SqlValue[]): Promise<T[]> {
    return (await this.ask(sql, params)).rows as T[];
  }

  async lists(sql: string, ...params: readonly SqlValue[]): Promise<SqlList[]> {
    return (await this.ask(sql, params, 'array')).rows as SqlList[];
  }

  /** By its session, wherever it is; by the process itself where that can be seen. */
  async isPresent(process: string): Promise<boolean> {
    if (isOnThisMachine(process)) return isPresent(process);
    return (await this.get(PRESENT, ...nameLock(process), process)) !== undefined;
  }

  protected async ask(sql: string, params: SqlList, rowMode?: 'array'): Promise<Answer> {
    const answer = this.session.send(sql, params, rowMode);
    this.session.flush();
    return await answer;
  }
}

/** Division by zero: what `change` provokes. */
const NOT_ONE = '22012';

/** Begun on the server when a change of it leaves: until then, changes are taken back by forgetting them. */
interface Savepoint {
  /** How many of the changes that have not left were there before it. */
  before: number;
  isBegun: boolean;
}

/** Conditions of the server under which nothing of a transaction may go on, whoever caught them. */
const FATAL = /^(08|40|53|54|55|57|58|XX)/;

/**
 * The transaction that writes. Statements whose answer nobody needs leave with the next one whose answer somebody needs: a
 * write takes as many round trips as it has questions, and not as many as it has statements.
 */
export class PostgresTransaction extends PostgresReader implements Transaction {
  readonly known = new Map<string, unknown>();
  /** Statements that were sent and whose answer was not looked at yet. */
  #unchecked: { readonly answer: Promise<unknown>; readonly savepoint: Savepoint | undefined }[] = [];
  /** Resolves when those before them were looked at. */
  #settled: Promise<unknown> = Promise.resolve();
  /** Changes that leave together. */
  readonly #changes = new Changes();
  /** Why nothing of this transaction may be committed. */
  #failure: unknown;
  #savepoint: Savepoint | undefined;
  #witness: { readonly sql: string; readonly params: SqlList } | undefined;
  readonly #now: () => number;
  /** The first thing that was asked, where it has no parameters. */
  #first: string | undefined;
  /** Asked before anybody wanted to know; forgotten once anything was changed. */
  #ahead: { readonly sql: string; readonly answer: Promise<Answer> } | undefined;

  constructor(session: Session, now: () => number) {
    super(session);
    this.#now = now;
  }

  /** Milliseconds since 1970, by the clock of the server. */
  now(): number {
    return this.#now();
  }

  foundBy(sql: string, ...params: readonly SqlValue[]): void {
    this.#witness = { sql, params };
  }

  get firstQuestion(): string | undefined {
    return this.#first;
  }

  /** Asks what will be asked first. */
  askAhead(sql: string): void {
    const answer = this.session.send(sql);
    answer.catch(() => undefined);
    this.#first = sql;
    this.#ahead = { sql, answer };
  }

  get witness() {
    return this.#witness;
  }

  async run(sql: string, ...params: readonly SqlValue[]): Promise<{ readonly changes: number }> {
    this.#sendChanges(true);
    this.#ahead = undefined;
    return { changes: countOf(await this.ask(sql, params)) };
  }

  change(sql: string, ...params: readonly SqlValue[]): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#changes.add(sql, params);
  }

  insert(table: string, columns: readonly string[], rows: readonly SqlList[]): void {
    const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
    const stored = columns.some((column) => isBytes(table, column))
      ? rows.map((row) => row.map((value, i) => (isBytes(table, columns[i] ?? '') ? `\\x${value}` : value)))
      : rows;
    for (const row of stored) this.change(sql, ...row);
  }

  /** `isChange`: so is the statement that is sent next. */
  #sendChanges(isChange = false): void {
    const savepoint = this.#savepoint;
    if (savepoint?.isBegun === false) {
      // What was there before it cannot be taken back by it, and leaves before it.
      this.#savepoint = undefined;
      for (const { sql, params } of this.#changes.take(savepoint.before)) this.#send(sql, params);
      savepoint.before = 0;
      savepoint.isBegun = isChange || this.#changes.length > 0;
      if (savepoint.isBegun) this.#send('SAVEPOINT work');
      this.#savepoint = savepoint;
    }
    for (const { sql, params } of this.#changes.take()) this.#send(sql, params);
  }

  /** Sends a statement whose answer is checked by whoever next waits for one. */
  later(sql: string, params: SqlList = [], check?: (answer: Answer) => void): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#sendChanges();
    this.#send(sql, params, check);
  }

  #send(sql: string, params: SqlList = [], check: (answer: Answer) => void = () => undefined): void {
    this.#ahead = undefined;
    const answer = this.session.send(sql, params).then(check);
    // Whoever waits next is told; until then nobody listens.
    answer.catch(() => undefined);
    this.#unchecked.push({ answer, savepoint: this.#savepoint });
  }

  indexWords(task: number, _isNew: boolean, texts: () => Sooner<readonly string[]>): Sooner<void> {
    return after(texts(), (found) =>
      this.change(
        `INSERT INTO task_words (task_id, words) VALUES (?, ?)
         ON CONFLICT (task_id) DO UPDATE SET words = excluded.words`,
        task,
        indexedWords(found),
      ),
    );
  }

  /**
   * Nothing is waited for at its end: a statement of it that fails only turns out later, and then nothing of the transaction
   * may go on. What is refused before anything of it left costs nothing.
   */
  async savepoint<T>(work: () => Sooner<T>, undo?: () => void): Promise<T> {
    const savepoint: Savepoint = { before: this.#changes.length, isBegun: false };
    this.#savepoint = savepoint;
    try {
      const result = await work();
      if (savepoint.isBegun) this.later('RELEASE SAVEPOINT work');
      return result;
    } catch (error) {
      this.known.clear();
      undo?.();
      this.#changes.keep(savepoint.isBegun ? 0 : savepoint.before);
      if (savepoint.isBegun) await this.settle().catch(() => undefined);
      if (this.#failure !== undefined) throw this.#failure;
      if (savepoint.isBegun)
        for (const back of ['ROLLBACK TO', 'RELEASE']) this.later(`${back} SAVEPOINT work`);
      throw error;
    } finally {
      this.#savepoint = undefined;
    }
  }

  /** Takes everything back, where the server has not done so already. */
  abandon(): void {
    this.session.send('ROLLBACK').catch(() => undefined);
  }

  /** Waits for every statement that was sent. Rejects with the first that failed: those behind it failed only for that. */
  async settle(): Promise<void> {
    this.#sendChanges();
    this.session.flush();
    const sent = this.#unchecked;
    this.#unchecked = [];
    // What somebody else waits for comes first, and who is told of its failure is not only that one.
    const before = this.#settled;
    const settled = (async () => {
      await before;
      let failure: unknown;
      for (const { answer, savepoint } of sent)
        await answer.catch((error: unknown) => {
          failure ??= this.#watched(error, savepoint);
        });
      return failure ?? this.#failure;
    })();
    this.#settled = settled;
    const failure = await settled;
    if (failure !== undefined) throw failure;
  }

  protected override async ask(sql: string, params: SqlList, rowMode?: 'array'): Promise<Answer> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#sendChanges();
    const savepoint = this.#savepoint;
    const ahead = this.#ahead;
    if (params.length === 0 && rowMode === undefined) this.#first ??= sql;
    const isAhead = ahead?.sql === sql && rowMode === undefined;
    if (isAhead) this.#ahead = undefined;
    const answer = isAhead ? ahead.answer : this.session.send(sql, params, rowMode);
    // A statement before this one may have failed, and then this one only for that.
    answer.catch(() => undefined);
    await this.settle();
    try {
      return await answer;
    } catch (error) {
      throw this.#watched(error, savepoint);
    }
  }

  /** A failure outside a savepoint that can still be taken back is one of the whole transaction. */
  #watched(thrown: unknown, savepoint: Savepoint | undefined): unknown {
    const error =
      codeOf(thrown) === NOT_ONE ? new Error('a statement did not change exactly one row') : thrown;
    const isOpen = savepoint !== undefined && savepoint === this.#savepoint;
    if (!isOpen || isLost(error) || FATAL.test(codeOf(error))) this.#failure ??= error;
    return this.#failure ?? error;
  }
}
