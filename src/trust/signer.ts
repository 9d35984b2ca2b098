import type { Clock } from '../clock.ts';
import type { Diagnostics } from '../diagnostics.ts';
import { asError } from '../errors.ts';
import { formatCheckpoint } from '../integrity/checkpoint.ts';
import { signNote } from '../integrity/signed-note.ts';
import { Frontier } from '../integrity/tree.ts';
import { insertOne } from '../log/append.ts';
import type { Head, HeadKeeper } from '../log/head.ts';
import type { Reader, StorageEngine, Transaction } from '../storage/engine.ts';
import { type Adoption, acceptHeads, type LostHead, prepareAdoption } from './adoption.ts';
import { checkWholeLog, FULL_CHECK_DELAY_MS, FULL_CHECK_EVERY_MS, isCheckDue } from './full-check.ts';
import { KeyFolder } from './key-folder.ts';
import { headRow, isSameHead, type LogView, openHead, readView, type SignedHead } from './log-view.ts';
import { forgetGone, MemoryFile, type Remembered } from './memory.ts';
import {
  loadOwnLog,
  type OwnLog,
  ownHead,
  ownLogIn,
  requireExtends,
  requireHead,
  requireRemembered,
} from './own-log.ts';
import { PathMemory } from './path-memory.ts';
import { REFUSALS, RefusalError } from './refusal.ts';
import { regrow } from './regrow.ts';

export interface SignerOptions {
  readonly storage: StorageEngine;
  readonly dbPath: string;
  readonly configDir: string;
  readonly diagnostics: Diagnostics;
  readonly clock: Clock;
  /** Which process signs: what it signed last is remembered under this name. */
  readonly process: string;
  /** How long after the start the whole log is read again in the background. */
  readonly fullCheckMsMin?: number;
}

/** What `server_health` shows of the log. */
export interface SignerState {
  /** Undefined until the first row is signed. */
  readonly origin: string | undefined;
  /** Rows that the newest head covers. */
  readonly signedThrough: number;
  /** Why nothing is signed any more, and what to do. */
  readonly refused: string | undefined;
  /** Keys of this log that this user has, the one that signs first. */
  readonly keys: readonly string[];
}

/** A head that was committed, until it is known to be durable. */
export type HeadMark = SignedHead | undefined;

export interface LogSigner extends HeadKeeper {
  /** Does the database still extend what was signed last? Takes the same time for every log. A no is remembered, not thrown. */
  start(): Promise<void>;
  /**
   * The same storage. Every write goes through it, so that the signer sees which commits happened: a head whose
   * transaction was rolled back must never leave the process.
   */
  readonly storage: StorageEngine;
  /** The newest head that is known to be committed. Take it before `storage.sync()`, and hand it to `durable` afterwards. */
  committed(): HeadMark;
  /** Everything up to the mark is on the disk: it may leave the process, and is remembered. */
  durable(mark: HeadMark): void;
  /** The newest checkpoint that is durable, for whoever wants to be a witness. */
  newest(): string | undefined;
  state(): SignerState;
  /** Files the newest head for good and answers it. Undefined where nothing is signed. */
  keep(): Promise<string | undefined>;
  /**
   * Prepares to accept the log as it is: the next commit signs over everything there. Throws `RefusalError` where even
   * the owner cannot accept it.
   */
  adopt(): Promise<Adopting>;
  /** Keeps the last head and stops. */
  stop(): Promise<void>;
}

/** What the owner is about to accept. */
export interface Adopting {
  /** Why the log was not signed; undefined where nothing was wrong, and nothing is prepared. */
  readonly reason: string | undefined;
  /** The largest signed head that the log no longer extends. */
  readonly lost: LostHead | undefined;
  /** The verifier key that signs from now on. */
  readonly key: string | undefined;
}

/** What a commit may go on from. Without `own` the log is new, and gets its key with its first rows. */
interface Base {
  readonly own: OwnLog | undefined;
  readonly tree: Frontier;
  readonly head: SignedHead | undefined;
}

/** Signs every commit that adds rows, unless what is there is not what was signed. */
export function createSigner(options: SignerOptions): LogSigner {
  return new Signer(options);
}

class Signer implements LogSigner {
  readonly storage: StorageEngine;
  readonly #options: SignerOptions;
  readonly #paths: PathMemory;
  #own: OwnLog | undefined;
  #memory: MemoryFile | undefined;
  /** The newest head that this process committed, or saw in the database and checked. */
  #committed: SignedHead | undefined;
  /** Written by the transaction that is open. */
  #pending: SignedHead | undefined;
  /** A transaction of the watched storage is open. */
  #isWriting = false;
  #durable: SignedHead | undefined;
  /** Of the transaction that is open. Undefined: its rows stay unsigned. */
  #base: Base | undefined;
  #adoption: Adoption | undefined;
  #refused: string | undefined;
  /** False until everything was checked, and again after a refusal. */
  #isChecked = false;
  /** The largest size that any process was seen to remember. */
  #rememberedSize = 0;
  /** What is remembered of the path, as far as this process has made sure of it. */
  #pathOrigin: string | undefined;
  #isMemoryFailing = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SignerOptions) {
    this.#options = options;
    this.storage = this.#watched(options.storage);
    this.#paths = new PathMemory(options.configDir, options.dbPath);
  }

  async start(): Promise<void> {
    const { storage, diagnostics, fullCheckMsMin = FULL_CHECK_DELAY_MS } = this.#options;
    try {
      await this.#checkNow();
      if (this.#committed !== undefined) {
        const mark = this.#committed;
        await storage.sync();
        this.durable(mark);
      }
      this.#tidyMemory();
    } catch (thrown) {
      // Whatever it was, the first commit makes the same checks.
      diagnostics.error(`the signed log was not checked at start: ${asError(thrown).message}`);
    }
    this.#scheduleFullCheck(fullCheckMsMin);
  }

  async open(tx: Transaction): Promise<Head> {
    this.#base = undefined;
    const view = await readView(tx);
    this.#base = await this.#refusing(() => this.#baseFor(tx, view));
    return view.last;
  }

  async close(tx: Transaction, head: Head, contentHashes: readonly string[], keep: boolean): Promise<void> {
    const base = this.#base;
    if (base === undefined || head.position === 0) return;
    const tree = new Frontier(base.tree.state);
    for (const hash of contentHashes) tree.add(hash);
    if (tree.size !== head.position)
      throw new Error(`${contentHashes.length} rows after ${base.tree.size} do not end at ${head.position}`);
    const own = base.own ?? (await this.#refusing(() => this.#createLog()));
    if (own === undefined) return;
    if (base.own === undefined) await insertName(tx, own);
    const signed = tree.size === base.head?.row.size ? base.head : await this.#sign(tx, own, tree, head);
    if (keep) await keepNote(tx, signed);
    if (this.#adoption !== undefined) this.#finishAdoption(this.#adoption, own, tree.size);
    if (signed !== base.head) this.#pending = signed;
    this.#base = { own, tree, head: signed };
  }

  committed(): HeadMark {
    return this.#committed;
  }

  durable(mark: HeadMark): void {
    if (mark === undefined || mark.row.size <= (this.#durable?.row.size ?? 0)) return;
    this.#durable = mark;
    this.#remember(mark);
  }

  newest(): string | undefined {
    return this.#durable?.row.checkpoint;
  }

  state(): SignerState {
    const own = this.#own;
    return {
      origin: own?.folder.origin,
      signedThrough: this.#committed?.row.size ?? 0,
      refused: this.#refused,
      keys: own === undefined ? [] : [own.signer.verifierKey, ...own.retired],
    };
  }

  async keep(): Promise<string | undefined> {
    const mark = await this.storage.write(async (tx) => {
      const head = await this.open(tx);
      await this.close(tx, head, [], true);
      return this.#base?.head;
    });
    if (mark === undefined) return undefined;
    await this.storage.sync();
    this.durable(mark);
    return mark.row.checkpoint;
  }

  async adopt(): Promise<Adopting> {
    const { storage, configDir, dbPath, clock } = this.#options;
    await this.#checkNow();
    const refused = this.#refused;
    const now = new Date(clock.now());
    this.#adoption = await prepareAdoption({ storage, configDir, dbPath, refused, now });
    if (this.#adoption === undefined) return { reason: undefined, lost: undefined, key: undefined };
    const { reason, lost, own } = this.#adoption;
    return { reason, lost, key: own.signer.verifierKey };
  }

  async stop(): Promise<void> {
    const { diagnostics } = this.#options;
    this.#isStopped = true;
    clearTimeout(this.#timer);
    try {
      if (this.#committed !== undefined) await this.keep();
      this.#memory?.close();
    } catch (thrown) {
      // Every row is signed already; what is missing is a checkpoint that is kept.
      diagnostics.error(`the last checkpoint was not kept: ${asError(thrown).message}`);
    }
  }

  #watched(storage: StorageEngine): StorageEngine {
    return Object.freeze({
      facts: storage.facts,
      read: (work) => storage.read(work),
      write: (work) => this.#write(storage, work),
      sync: (options) => storage.sync(options),
      selfCheck: (tx) => storage.selfCheck(tx),
      close: () => storage.close(),
    } satisfies StorageEngine);
  }

  async #write<T>(storage: StorageEngine, work: (tx: Transaction) => Promise<T>): Promise<T> {
    let written: SignedHead | undefined;
    const result = await storage.write(async (tx) => {
      this.#pending = undefined;
      this.#isWriting = true;
      try {
        return await work(tx);
      } finally {
        written = this.#pending;
        this.#isWriting = false;
      }
    });
    if (written === undefined) return result;
    this.#adoption = undefined;
    if (written.row.size > (this.#committed?.row.size ?? 0)) this.#committed = written;
    return result;
  }

  /** All checks, outside a transaction. The memory is read first: others may sign further rows at any moment. */
  async #checkNow(): Promise<void> {
    const { storage } = this.#options;
    await this.#refusing(async () => {
      const { origin } = await storage.read(readView);
      const remembered = this.#rememberedNow(origin);
      await storage.read(async (tx) => this.#checkFully(tx, await readView(tx), remembered));
    });
  }

  /** Undefined where there is none or it cannot be read; the full check then says why. */
  #rememberedNow(origin: string | undefined): Remembered | undefined {
    try {
      return origin === undefined ? undefined : requireRemembered(this.#load(origin));
    } catch (error) {
      if (error instanceof RefusalError) return undefined;
      throw error;
    }
  }

  /** Runs a check. A refusal, or a key folder that cannot be used, is remembered and leaves the rows unsigned. */
  async #refusing<T>(check: () => Promise<T> | T): Promise<T | undefined> {
    try {
      const result = await check();
      if (this.#refused !== undefined) this.#options.diagnostics.warn('the log is signed again');
      this.#refused = undefined;
      this.#isChecked = true;
      return result;
    } catch (thrown) {
      this.#refuse(reasonOf(thrown));
      return undefined;
    }
  }

  #refuse(reason: string): void {
    if (this.#refused === undefined)
      this.#options.diagnostics.error(`degraded, nothing is signed: ${reason}`);
    this.#refused = reason;
    this.#isChecked = false;
  }

  async #baseFor(tx: Transaction, view: LogView): Promise<Base> {
    if (this.#adoption !== undefined) return await this.#adoptedBase(tx, view, this.#adoption);
    const known = this.#isChecked ? this.#knownBase(view) : undefined;
    return known ?? (await this.#checkFully(tx, view));
  }

  /** The head that this process wrote or saw, or one that another process of this user signed since. */
  #knownBase(view: LogView): Base | undefined {
    const own = this.#own;
    if (own === undefined || view.origin !== own.folder.origin) return undefined;
    const row = ownHead(view, own);
    if (row === undefined) return undefined;
    const seen = [this.#committed, this.#pending].find(
      (head) => head !== undefined && isSameHead(head.row, row),
    );
    const head = seen ?? this.#signedElsewhere(row, own);
    if (head === undefined) return undefined;
    // Opened a second time, a transaction sees its own head, which is not committed yet.
    if (head !== this.#pending || !this.#isWriting) this.#committed = head;
    return { own, tree: head.tree, head };
  }

  #signedElsewhere(row: SignedHead['row'], own: OwnLog): SignedHead | undefined {
    const isOlder = row.size < (this.#committed?.row.size ?? 0);
    return isOlder || own.folder.adoptionStamp() !== own.stamp ? undefined : openHead(row, own.key);
  }

  /** Everything that can be checked in constant time. */
  async #checkFully(tx: Reader, view: LogView, known?: Remembered): Promise<Base> {
    const { dbPath } = this.#options;
    const { origin, last, heads } = view;
    const before = this.#paths.otherThan(origin);
    if (before !== undefined)
      throw REFUSALS.replaced(before, origin ?? (last.position > 0 ? 'an unsigned one' : 'an empty one'));
    if (origin === undefined) {
      if (last.position > 0 || heads.length > 0) throw REFUSALS.neverSigned(dbPath, last.position);
      if (this.#committed !== undefined) throw REFUSALS.cutTail(dbPath, 0, this.#committed.row.size);
      return { own: undefined, tree: new Frontier(), head: undefined };
    }
    const own = this.#load(origin);
    const head = await requireHead(tx, view, own, dbPath);
    const older = this.#committed?.row.size ?? 0;
    if ((head?.row.size ?? 0) < older) throw REFUSALS.cutTail(dbPath, last.position, older);
    const remembered = known ?? requireRemembered(own);
    await requireExtends(tx, view, remembered, dbPath);
    this.#rememberedSize = remembered.size;
    if (head !== undefined) this.#committed = head;
    const { finding } = own.folder.lastCheck() ?? {};
    if (finding !== undefined) throw new RefusalError(finding);
    return { own, tree: head?.tree ?? new Frontier(), head };
  }

  /** The user's side of the log, read anew: the owner may have restored or renewed the key meanwhile. */
  #load(origin: string): OwnLog {
    const { configDir, dbPath } = this.#options;
    const before = this.#own;
    const own = loadOwnLog(configDir, origin, dbPath, before);
    const isOther = before !== undefined && (before.folder.origin !== origin || before.stamp !== own.stamp);
    // What this process saw was given up by the owner, in another process.
    if (isOther) this.#forget();
    this.#own = own;
    return own;
  }

  #forget(): void {
    this.#memory?.close();
    this.#memory = undefined;
    this.#committed = undefined;
    this.#pending = undefined;
    this.#durable = undefined;
    this.#rememberedSize = 0;
  }

  #createLog(): OwnLog {
    // A transaction that was rolled back leaves the key it made; the log is still nameless, so the key is still its own.
    this.#own ??= ownLogIn(KeyFolder.create(this.#options.configDir));
    return this.#own;
  }

  async #sign(tx: Transaction, own: OwnLog, tree: Frontier, last: Head): Promise<SignedHead> {
    const { folder, signer } = own;
    const text = formatCheckpoint({ origin: folder.origin, size: tree.size, root: tree.root() });
    const row = headRow(signer, tree, last, signNote(text, signer));
    await insertOne(
      tx,
      `INSERT INTO log_heads (key, size, chain_hash, at, frontier, checkpoint) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET size = excluded.size, chain_hash = excluded.chain_hash, at = excluded.at,
         frontier = excluded.frontier, checkpoint = excluded.checkpoint`,
      row.key,
      row.size,
      row.chain_hash,
      row.at,
      row.frontier,
      row.checkpoint,
    );
    return { row, tree };
  }

  /** A failure here costs protection against an older copy, not the call; it is said once and tried again. */
  #remember({ row }: SignedHead): void {
    const own = this.#own;
    if (own === undefined) return;
    try {
      if (this.#pathOrigin !== own.folder.origin) this.#paths.write(own.folder.origin);
      this.#pathOrigin = own.folder.origin;
      if (row.size <= this.#rememberedSize) return;
      this.#memory ??= new MemoryFile(own.folder.signedPath, this.#options.process, (error) =>
        this.#memoryFailed(error),
      );
      this.#memory.write({ chainHash: row.chain_hash, note: row.checkpoint });
      this.#rememberedSize = row.size;
      this.#isMemoryFailing = false;
    } catch (error) {
      this.#memoryFailed(error);
    }
  }

  #memoryFailed(error: unknown): void {
    if (!this.#isMemoryFailing)
      this.#options.diagnostics.error(
        `what was signed last could not be remembered: ${asError(error).message}`,
      );
    this.#isMemoryFailing = true;
  }

  #tidyMemory(): void {
    if (this.#own === undefined || this.#refused !== undefined) return;
    forgetGone(this.#own.folder.signedPath, requireRemembered(this.#own), this.#options.clock.now());
  }

  /** Catches up under the write lock with what was appended since the adoption was prepared. */
  async #adoptedBase(tx: Transaction, view: LogView, adoption: Adoption): Promise<Base> {
    const { dbPath } = this.#options;
    const tree = view.last.position < adoption.tree.size ? new Frontier() : new Frontier(adoption.tree.state);
    await regrow((work) => work(tx), tree, view.last.position, dbPath);
    if (view.origin === undefined) await insertName(tx, adoption.own);
    this.#own = await acceptHeads(tx, view, adoption.own);
    return { own: this.#own, tree, head: undefined };
  }

  /**
   * Under the write lock, so that no other process sees the accepted head beside the memory that contradicts it and goes
   * on unsigned. If the commit fails, what was put aside still lies in the folder.
   */
  #finishAdoption(adoption: Adoption, own: OwnLog, size: number): void {
    const { folder } = own;
    this.#forget();
    folder.giveUpMemory(adoption.suffix);
    folder.noteAdoption({ at: adoption.at, reason: adoption.reason, size });
    this.#paths.write(folder.origin);
    this.#own = ownLogIn(folder, own);
  }

  #scheduleFullCheck(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      void this.#fullCheck().finally(() => this.#scheduleFullCheck(FULL_CHECK_EVERY_MS));
    }, delayMs).unref();
  }

  async #fullCheck(): Promise<void> {
    const { storage, dbPath, clock, diagnostics } = this.#options;
    const [own, head] = [this.#own, this.#committed];
    if (own === undefined || head === undefined) return;
    try {
      if (!isCheckDue(own.folder, clock.now())) return;
      const finding = await checkWholeLog(storage, own, head, dbPath, clock.now());
      if (finding !== undefined) this.#refuse(finding);
    } catch (error) {
      diagnostics.error(`the log could not be read again: ${asError(error).message}`);
    }
  }
}

async function insertName(tx: Transaction, own: OwnLog): Promise<void> {
  await insertOne(tx, 'INSERT INTO log (id, origin) VALUES (1, ?)', own.folder.origin);
}

async function keepNote(tx: Transaction, { row }: SignedHead): Promise<void> {
  await tx.run(
    'INSERT INTO checkpoints (size, key, note) VALUES (?, ?, ?) ON CONFLICT (size, key) DO NOTHING',
    row.size,
    row.key,
    row.checkpoint,
  );
}

/** Errors of the storage are not ours to judge; those of the key folder's files are a reason to sign nothing. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof RefusalError) return thrown.message;
  if (thrown instanceof Error && 'syscall' in thrown)
    return `The key folder cannot be used (${thrown.message}). Make it readable and writable for this user.`;
  throw thrown;
}
