import { setTimeout as sleep } from 'node:timers/promises';
import { asError, ColibriError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Sooner } from '../../sooner.ts';
import { visibleLine } from '../../untrusted.ts';
import type { Address } from '../address.ts';
import {
  type Acknowledged,
  type Durable,
  ForeignSchema,
  NoLogYet,
  PlantedRow,
  type Reader,
  SCHEMA_VERSION,
  type StorageEngine,
  type StorageFacts,
  type StorageProblem,
  type Transaction,
  UnusableStorage,
} from '../engine.ts';
import { type Answer, codeOf, isLost, LostConnection, Session } from './driver.ts';
import { nameLock } from './presence.ts';
import { MARK, NAMESPACE, SCHEMA } from './schema.ts';
import { findProblems } from './self-check.ts';
import { compareStructure, DEFINITIONS, type Definition, missingParts } from './structure.ts';
import { PostgresReader, PostgresTransaction } from './transaction.ts';

export interface PostgresOptions {
  readonly address: Address;
  readonly readingIsEnough?: boolean | undefined;
  readonly readOnly?: boolean | undefined;
  readonly onUncertain?: ((error: ColibriError) => void) | undefined;
  /** Which process this is: it holds a lock of that name as long as it is there. */
  readonly process?: string | undefined;
}

/** Opens, or creates, the schema `colibri` in a database that a server holds for a team. */
export async function openPostgres(options: PostgresOptions): Promise<StorageEngine> {
  const { address, readOnly = false, readingIsEnough = false } = options;
  const session = await Session.open(address, { reads: readOnly || readingIsEnough, longReads: readOnly });
  try {
    const server = await examine(session, address);
    const writable = !readOnly && (await session.takesWrites());
    if (writable) await createSchema(session, address);
    else if ((await markOf(session)) === undefined)
      throw new NoLogYet(`There is no Colibri log in ${address.shown}. Start a client that uses it.`);
    const found = await session.ask<Definition>(DEFINITIONS);
    // Who only reads may look at whatever can be read, and says what is wrong with it.
    const problems = readOnly ? missingParts(found) : compareStructure(found);
    if (problems.length > 0) throw new ForeignSchema(address.shown, problems);
    const engine = new PostgresEngine(options, session, writable, server);
    if (writable) await engine.claimPresence();
    return engine;
  } catch (error) {
    await session.close();
    throw isLost(error) ? lostWhileOpening(address, error) : error;
  }
}

function lostWhileOpening({ shown }: Address, cause: unknown): ColibriError {
  const sentence = `The connection to ${shown} was lost while it was being opened.`;
  return new ColibriError('ERR_STORAGE_BUSY', sentence, {}, { cause });
}

const unusable = (sentence: string) => new UnusableStorage(sentence);

/** What a server is, and what its commits are worth. */
interface Server {
  readonly name: string;
  readonly acknowledged: Acknowledged;
}

/** What the server is, if it can be used: texts in UTF-8, and commits that are kept. */
async function examine(session: Session, { shown }: Address): Promise<Server> {
  const [server] = await session.ask<Settings & { version: string; encoding: string }>(
    `SELECT current_setting('server_version') AS version, current_setting('server_encoding') AS encoding,
       current_setting('synchronous_commit') AS commits, current_setting('fsync') AS fsync,
       current_setting('synchronous_standby_names') <> '' AS has_standbys`,
  );
  const { version = '', encoding = '', commits = '', fsync = '', has_standbys = 0 } = server ?? {};
  if (encoding !== 'UTF8')
    throw unusable(
      `${shown} keeps texts as ${encoding}. Create a database with ENCODING 'UTF8' and name that.`,
    );
  if (commits === 'off')
    throw unusable(
      `${shown} confirms commits before they are on disk (synchronous_commit is off), so Colibri could not promise that anything is stored. Set it to on for the server, the database or the role.`,
    );
  return {
    name: `PostgreSQL ${version.split(' ')[0]}, synchronous_commit ${commits}`,
    acknowledged: acknowledgedBy({ commits, fsync, has_standbys }),
  };
}

interface Settings {
  readonly commits: string;
  readonly fsync: string;
  readonly has_standbys: number;
}

function acknowledgedBy({ commits, fsync, has_standbys }: Settings): Acknowledged {
  const means =
    has_standbys === 1
      ? (WITH_STANDBYS[commits] ?? ON_DISK)
      : `${ON_DISK}; no standby is waited for, so a failover may lose it`;
  if (fsync === 'on') return { means };
  const risk = 'fsync is off: a power cut may lose what was acknowledged and damage the database';
  return { means, weakness: { risk, remedy: 'set fsync to on and restart the server' } };
}

const ON_DISK = 'on the disk of the server';

const WITH_STANDBYS: Readonly<Record<string, string>> = {
  on: 'on the disks of the server and of its synchronous standbys',
  remote_apply: 'on the disks of the server and of its synchronous standbys, and can be read there',
  remote_write: 'on the disk of the server and in the memory of its synchronous standbys',
  local: `${ON_DISK}; synchronous standbys are not waited for, so a failover may lose it`,
};

/** What the table log is marked with, '' where it has no mark; undefined where there is no such table. */
async function markOf(session: Session): Promise<string | undefined> {
  const sql =
    "SELECT CASE WHEN log IS NOT NULL THEN coalesce(obj_description(log, 'pg_class'), '') END AS mark FROM to_regclass('colibri.log') AS log";
  return (await session.ask<{ mark: string | null }>(sql))[0]?.mark ?? undefined;
}

/**
 * Makes everything in one transaction. Of eight processes that start at once on an empty database one makes it, and seven
 * are told that it is there already.
 */
async function createSchema(session: Session, address: Address): Promise<void> {
  const mark = await markOf(session);
  // Without a mark, what else is wrong with it is said by whoever compares it.
  if (mark === MARK || mark === '') return;
  if (mark !== undefined)
    throw unusable(
      `${address.shown} was created by another version of Colibri (${visibleLine(mark)}; this one knows schema ${SCHEMA_VERSION}). It was left untouched; use that version.`,
    );
  const [there] = await session.ask<{ found: number }>(
    'SELECT count(*) AS found FROM pg_namespace WHERE nspname = ?',
    NAMESPACE,
  );
  const namespace = there?.found === 0 ? `CREATE SCHEMA ${NAMESPACE};` : '';
  try {
    await session.script(`BEGIN; ${namespace} ${SCHEMA}; COMMIT`);
  } catch (error) {
    await session.script('ROLLBACK');
    // Another process has made it meanwhile.
    if ((await markOf(session)) === MARK) return;
    const reason = asError(error).message;
    throw unusable(
      `Colibri’s tables could not be created in ${address.shown} (${reason}). Start Colibri once with a role that may create a schema, or see the guide on a team’s database.`,
    );
  }
}

const RECONNECT_PAUSE_MS = 200;

/** How long a write that was begun ahead waits for somebody to go on with it. */
const BEGUN_MS_MAX = 200;

class PostgresEngine implements StorageEngine {
  readonly facts: StorageFacts;
  readonly acknowledged: Acknowledged;
  readonly isShared = true;
  readonly batchMsMax = LIMITS.remoteBatchMsMax;
  readonly #options: PostgresOptions;
  readonly #idleReaders: Session[] = [];
  #writer: Session;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #closed = false;
  /** Whether the log has its row: without one, the whole table must be locked. It is never deleted. */
  #isNamed = false;
  /** Whether everything this process saw committed is durable. */
  #isSynced = false;
  /** The session on which something was seen or committed last. On another server, what was not durable may never have been. */
  #seenOn: Session | undefined;
  #failed: ColibriError | undefined;
  #presence: NodeJS.Timeout | undefined;
  /** The next write, begun together with the commit of the last one. */
  #begun:
    | { readonly session: Session; readonly tx: PostgresTransaction; readonly timer: NodeJS.Timeout }
    | undefined;

  constructor(options: PostgresOptions, writer: Session, writable: boolean, server: Server) {
    this.#options = options;
    this.#writer = writer;
    this.acknowledged = server.acknowledged;
    this.facts = Object.freeze({
      path: options.address.shown,
      schemaVersion: SCHEMA_VERSION,
      engine: server.name,
      journal: 'wal',
      writable,
    });
  }

  async read<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    const { address, readOnly = false } = this.#options;
    let session: Session | undefined;
    try {
      session = await this.#takeReader(address, readOnly);
      // It leaves with the first question.
      session.send('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY').catch(() => undefined);
      const result = await work(new PostgresReader(session));
      session.send('COMMIT').catch(() => undefined);
      return result;
    } catch (error) {
      session?.send('ROLLBACK').catch(() => undefined);
      throw this.#refusal(error);
    } finally {
      if (session?.isLost === false && this.#idleReaders.length < LIMITS.idleReadersMax && !this.#closed)
        this.#idleReaders.push(session);
      else await session?.close();
    }
  }

  async #takeReader(address: Address, longReads: boolean): Promise<Session> {
    for (let idle = this.#idleReaders.pop(); idle !== undefined; idle = this.#idleReaders.pop())
      if (!idle.isLost) return idle;
    return await Session.open(address, { reads: true, longReads });
  }

  async write<T>(work: (tx: Transaction) => Sooner<T>, durable?: Durable): Promise<T> {
    const turn = this.#lastWrite.then(() => this.#writeAlone(work, durable));
    this.#lastWrite = turn.catch(() => undefined);
    return await turn;
  }

  async #writeAlone<T>(work: (tx: Transaction) => Sooner<T>, durable?: Durable): Promise<T> {
    if (this.#failed !== undefined) throw this.#failed;
    // From now on this process may see what others committed and what is not durable yet, whatever becomes of this write.
    if (this.#isSynced) this.#seenOn = this.#writer;
    this.#isSynced = false;
    const session = await this.#connected();
    const tx = this.#takeBegun(session) ?? (await this.#begin(session));
    let result: T;
    try {
      result = await work(tx);
      if (durable !== undefined) tx.later('SET LOCAL synchronous_commit = off');
      tx.later('COMMIT', [], assertCommitted);
    } catch (error) {
      tx.abandon();
      throw this.#refusal(error);
    }
    try {
      if (typeof durable === 'object') await this.#beginNext(session, tx, durable.next);
      await tx.settle();
      this.#isSynced = durable === undefined;
      this.#seenOn = session;
    } catch (error) {
      this.#abandonBegun();
      tx.abandon();
      if (!isLost(error)) throw this.#refusal(error);
      if (!(await this.#wasCommitted(tx, error))) throw this.#refusal(error);
      this.#isSynced = false;
      // Found on this one.
      this.#seenOn = this.#writer;
    }
    return result;
  }

  /** Begins the next write before this one is answered. It asks what this one asked first, and what somebody knows will be asked. */
  async #beginNext(
    session: Session,
    { firstQuestion }: PostgresTransaction,
    next: (tx: Transaction) => Promise<void>,
  ): Promise<void> {
    if (!this.#isNamed) return;
    const tx = await this.#begin(session);
    if (firstQuestion !== undefined) tx.askAhead(firstQuestion);
    // Whoever goes on with it is told what went wrong.
    next(tx).catch(() => undefined);
    // Nobody else can write meanwhile.
    const timer = setTimeout(() => this.#abandonBegun(), BEGUN_MS_MAX);
    this.#begun = { session, tx, timer };
  }

  #takeBegun(session: Session): PostgresTransaction | undefined {
    if (this.#begun?.session !== session) return undefined;
    const { tx, timer } = this.#begun;
    clearTimeout(timer);
    this.#begun = undefined;
    return tx;
  }

  #abandonBegun(): void {
    const { session, tx, timer } = this.#begun ?? {};
    this.#begun = undefined;
    clearTimeout(timer);
    if (session?.isLost === false) tx?.abandon();
  }

  /** Begins a transaction under the write lock, and learns what time it is. All of it leaves with the first question. */
  async #begin(session: Session): Promise<PostgresTransaction> {
    const local = () => performance.timeOrigin + performance.now();
    let ahead = 0;
    const tx = new PostgresTransaction(session, () => Math.floor(local() + ahead));
    tx.later('BEGIN ISOLATION LEVEL READ COMMITTED');
    if (this.#isNamed) tx.later(LOCK, [], assertLocked);
    else await this.#lockFirst(tx);
    tx.later('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now', [], ({ rows }) => {
      ahead = Number(Reflect.get(Object(rows[0]), 'now')) - local();
    });
    return tx;
  }

  /** A log gets its row with its first rows: until then, the table is locked. */
  async #lockFirst(tx: PostgresTransaction): Promise<void> {
    try {
      const lock = async () => (await tx.all(LOCK)).length > 0;
      this.#isNamed = await lock();
      if (this.#isNamed) return;
      await tx.run('LOCK TABLE log IN SHARE ROW EXCLUSIVE MODE');
      this.#isNamed = await lock();
    } catch (error) {
      tx.abandon();
      throw this.#refusal(error);
    }
  }

  /**
   * The connection was lost while the server committed. Another one waits for the write lock, so that by then the first has
   * ended one way or the other, and looks for what it wrote.
   */
  async #wasCommitted({ witness }: PostgresTransaction, cause: unknown): Promise<boolean> {
    const until = performance.now() + LIMITS.reconnectMsMax;
    for (;;) {
      try {
        const session = await this.#connected();
        const tx = await this.#begin(session);
        try {
          return witness !== undefined && (await tx.all(witness.sql, ...witness.params)).length > 0;
        } finally {
          tx.abandon();
        }
      } catch {
        if (performance.now() > until || this.#closed) throw this.#uncertain(cause);
      }
      await sleep(RECONNECT_PAUSE_MS);
    }
  }

  /** The session that writes, opened again where it was lost. */
  async #connected(): Promise<Session> {
    if (!this.#writer.isLost) return this.#writer;
    await this.#writer.close();
    const { address } = this.#options;
    this.#writer = await Session.open(address);
    try {
      // Somebody may have put another database in its place meanwhile.
      const problems = compareStructure(await this.#writer.ask<Definition>(DEFINITIONS));
      if (problems.length > 0) throw new ForeignSchema(address.shown, problems);
      await this.#holdName(this.#writer);
    } catch (error) {
      await this.#writer.close();
      throw this.#refusal(error);
    }
    return this.#writer;
  }

  /**
   * Takes the lock that says that this process is there. It belongs to the session: behind a pooler that hands sessions
   * from one transaction to the next it would belong to nobody, so such a pooler is found out and refused.
   */
  async claimPresence(): Promise<void> {
    const { address } = this.#options;
    const pid = async () =>
      (await this.#writer.ask<{ pid: number }>('SELECT pg_backend_pid() AS pid'))[0]?.pid;
    const before = await pid();
    await this.#holdName(this.#writer);
    const other = await Session.open(address, { reads: true });
    try {
      // The other holds a session of the server meanwhile, maybe the one that this had.
      await other.script('BEGIN; SELECT 1');
      const after = await pid().catch((error: unknown) => {
        // Behind a pooler it gets no answer; where the connection is gone, nobody knows.
        if (this.#writer.isLost) throw error;
      });
      await other.script('ROLLBACK');
      if (before !== after)
        throw unusable(
          `${address.shown} is behind a pooler that shares sessions between transactions. Connect to the server itself, or to a pooler in session mode.`,
        );
      this.#idleReaders.push(other);
    } catch (error) {
      await other.close();
      throw error;
    }
    if (this.#options.process !== undefined) this.#stayPresent();
  }

  async #holdName(session: Session): Promise<void> {
    const { process } = this.#options;
    if (process !== undefined)
      await session.ask('SELECT pg_try_advisory_lock(?, ?) AS held', ...nameLock(process));
  }

  /** A process on another machine has been silent for a while, by the clock of the server, and its session is gone. */
  async isGone(tx: Reader, process: string): Promise<boolean> {
    return !(await tx.isPresent(process));
  }

  /** A process that makes no call for an hour is still there: its session is looked after, also when the server was restarted. */
  #stayPresent(): void {
    this.#presence = setInterval(() => {
      const turn = this.#lastWrite.then(() => this.#connected());
      this.#lastWrite = turn.catch(() => undefined);
    }, LIMITS.presenceMs);
    this.#presence.unref();
  }

  /** A commit that nobody called `soon` is durable when it returns. What others committed may not be. */
  async sync(): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
    if (this.#isSynced || !this.facts.writable) return;
    // Of that one, whatever is committed on another one meanwhile.
    const seenOn = this.#seenOn;
    const turn = this.#lastWrite.then(async () => {
      this.#abandonBegun();
      try {
        const session = await this.#connected();
        if (seenOn !== undefined && seenOn !== session)
          throw new LostConnection('the connection was lost before the commit was durable');
        if (this.#isSynced) return;
        // An empty transaction, and one that only has a number, is not waited for: 200 of 200 were not on the disk.
        await session.ask("SELECT pg_logical_emit_message(true, 'colibri', '')");
        this.#isSynced = true;
      } catch (error) {
        throw this.#refusal(error);
      }
    });
    this.#lastWrite = turn.catch(() => undefined);
    await turn;
  }

  /** Others find what the server has: there is no path that could lead elsewhere. */
  async assertInPlace(): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
  }

  /**
   * Writes the tables anew that hold texts and words. Only who owns them may. Waits for readers of an older state. What the
   * server keeps in its own log, on standbys and in backups is out of reach.
   */
  async purge(): Promise<boolean> {
    const { address } = this.#options;
    const session = await Session.open(address, { longReads: true });
    try {
      const [owned] = await session.ask<{ owned: number }>(OWNS_TABLES);
      if (owned?.owned !== 1)
        throw unusable(
          `This role does not own the tables of ${address.shown}, so their free space still holds what was erased. Ask their owner to run: VACUUM (FULL) ${PURGED.join(', ')}.`,
        );
      const until = performance.now() + LIMITS.purgeWaitMsMax;
      for (const table of PURGED)
        while (!(await isRewritten(session, table))) {
          if (performance.now() > until) return false;
          await sleep(RECONNECT_PAUSE_MS);
        }
      return true;
    } catch (error) {
      if (codeOf(error) === '55P03') return false;
      throw this.#refusal(error);
    } finally {
      await session.close();
    }
  }

  async selfCheck(tx: Reader): Promise<StorageProblem[]> {
    return await findProblems(tx);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#presence);
    await this.#lastWrite;
    this.#abandonBegun();
    for (const session of [this.#writer, ...this.#idleReaders.splice(0)]) await session.close();
  }

  /** What an error means for the call: nothing was written. */
  #refusal(cause: unknown): unknown {
    if (cause instanceof ColibriError) return cause;
    const { shown } = this.#options.address;
    const code = codeOf(cause);
    const refused = (what: 'ERR_STORAGE_BUSY' | 'ERR_STORAGE_FULL', sentence: string, details = {}) =>
      new ColibriError(what, sentence, details, { cause });
    if (code === '53100')
      return refused(
        'ERR_STORAGE_FULL',
        `The server of ${shown} has no space left; nothing was written. Reading still works. Ask its owner to free some space, then repeat the call.`,
      );
    if (isLost(cause))
      return refused(
        'ERR_STORAGE_BUSY',
        `The connection to ${shown} was lost; nothing was written. Repeat the call.`,
      );
    if (code === TAKEN) return new PlantedRow(shown, cause);
    if (code === DENIED)
      return unusable(
        `This role lacks a right on ${shown} (${asError(cause).message}); nothing was written. Ask the owner of the tables for it: the guide on a team’s database lists the rights.`,
      );
    const waited_ms = LIMITS.lockWaitMsMax;
    if (code === '55P03' || code === '57014')
      return refused(
        'ERR_STORAGE_BUSY',
        `Another process held ${shown} for more than ${waited_ms / 1000} s; nothing was written. Repeat the call; if this continues, look for a suspended process.`,
        { waited_ms },
      );
    return cause;
  }

  #uncertain(cause: unknown): ColibriError {
    if (this.#failed !== undefined) return this.#failed;
    const { shown } = this.#options.address;
    const sentence = `The connection to ${shown} was lost during a commit and did not come back. It is not known whether the call was stored. The server stops. When the database can be reached, start the server again, and look the call up before you repeat it.`;
    this.#failed = new ColibriError(
      'ERR_STORAGE_UNCERTAIN',
      sentence,
      { reason: 'connection lost' },
      { cause },
    );
    this.#options.onUncertain?.(this.#failed);
    return this.#failed;
  }
}

/** What PostgreSQL answers whoever lacks a right, and where there is such a row already. */
const [DENIED, TAKEN] = ['42501', '23505'];

/** The row that whoever writes must hold. It never changes, so that it never grows old versions. */
const LOCK = 'SELECT id FROM log WHERE id = 1 FOR UPDATE';

/** Where texts and their words are. */
const PURGED = [`${NAMESPACE}.texts`, `${NAMESPACE}.task_words`];

const OWNS_TABLES = `SELECT pg_has_role(relowner, 'USAGE') AS owned FROM pg_class WHERE oid = '${PURGED[0]}'::regclass`;

/** Writes a table anew. Answers whether what was deleted from it is gone: somebody may still read an older state. */
async function isRewritten(session: Session, table: string): Promise<boolean> {
  const said = await session.told(`VACUUM (FULL, VERBOSE) ${table}`);
  // "0 dead row versions cannot be removed yet", in the language of the server.
  return !said.some((detail) => /^[1-9]/.test(detail));
}

function assertLocked({ rows }: Answer): void {
  if (rows.length !== 1) throw new Error('the name of the log is gone');
}

/** In a transaction that failed, the server answers COMMIT with what it did instead. */
function assertCommitted({ command }: Answer): void {
  if (command !== 'COMMIT') throw new Error('the server rolled the transaction back');
}
