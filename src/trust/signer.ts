import { type Clock, systemClock } from '../clock.ts';
import { createDiagnostics, type Diagnostics } from '../diagnostics.ts';
import { asError } from '../errors.ts';
import { formatCheckpoint } from '../integrity/checkpoint.ts';
import { signNote } from '../integrity/signed-note.ts';
import { Frontier } from '../integrity/tree.ts';
import type { Head, HeadKeeper } from '../log/append.ts';
import { BLOCK_ROWS } from '../log/tree.ts';
import type { Sooner } from '../sooner.ts';
import {
  changeOne,
  type Durable,
  type Reader,
  type StorageEngine,
  type Transaction,
} from '../storage/engine.ts';
import { type Adoption, acceptHeads, prepareAdoption } from './adoption.ts';
import { KeyFolder, PathMemory } from './key-folder.ts';
import { LastSigned } from './last-signed.ts';
import { forgetGone, MemoryFile, type Remembered } from './memory.ts';
import { keptName, originOfKey, treeIn } from './opening.ts';
import {
  ADOPTED,
  actsOnRecord,
  checkWholeLog,
  FULL_CHECK_EVERY_MS,
  HEAD_COLUMNS,
  type HeadRow,
  headsOf,
  isAdoptedElsewhere,
  isHeadOf,
  keptIn,
  type LogKey,
  type LogPlace,
  type LogView,
  loadOwnLog,
  type OwnLog,
  openHead,
  ownLogIn,
  readLogKeys,
  readView,
  regrow,
  requireRemembered,
  requireSigned,
  type SignedHead,
} from './own-log.ts';
import { Peers } from './peers.ts';
import { REFUSALS, RefusalError } from './refusal.ts';
import { adoptionId, type Stated, signStatement } from './statement.ts';

export interface SignerOptions extends LogPlace {
  readonly storage: StorageEngine;
  readonly diagnostics: Diagnostics;
  readonly clock: Clock;
  /** Which process signs: what it signed last is remembered under this name. */
  readonly process: string;
  /** How long after the start the whole log is read again in the background, so that starts stay cheap. */
  readonly fullCheckMsMin?: number;
}

const FULL_CHECK_DELAY_MS = 60_000;

/** A head that was committed, until it is known to be durable. */
type HeadMark = SignedHead | undefined;

/** Nothing may be signed by a key that the log does not know. */
class JoinFirst extends Error {}

/** What a commit may go on from. Without `own` the log is new, and gets its key with its first rows. */
interface Base {
  readonly own: OwnLog | undefined;
  readonly tree: Frontier;
  readonly head: SignedHead | undefined;
}

interface LeftView {
  readonly view: LogView;
  readonly commits: number;
}

/** Signs every commit that adds rows, unless what is there is not what was signed. */
export class LogSigner implements HeadKeeper {
  /** The same storage, for every write: a head whose transaction was rolled back must never leave the process. */
  readonly storage: StorageEngine;
  readonly #options: SignerOptions;
  readonly #paths: PathMemory;
  #own: OwnLog | undefined;
  #memory: MemoryFile | undefined;
  #lastSigned: LastSigned | undefined;
  /** The newest head that this process committed, or saw in the database and checked. */
  #committed: HeadMark;
  /** Written by the transaction that is open. */
  #pending: HeadMark;
  #durable: HeadMark;
  /** Of the transaction that is open: the checkpoint that it files for good; and those that are committed and not yet durable. */
  #filing: HeadMark;
  #filed: readonly SignedHead[] = [];
  /** The newest head of the own key that was seen. */
  #mine: HeadMark;
  readonly #peers = new Peers();
  #record: ((key: string) => Promise<void>) | undefined;
  #isJoining = false;
  /** The own key, once it is known to be on the record. */
  #joined: string | undefined;
  /** Of the transaction that is open. Undefined: its rows stay unsigned. */
  #base: Base | undefined;
  /** What the transaction that is open found, and what it leaves if it is committed. */
  #found: LogView | undefined;
  #leaving: LeftView | undefined;
  /** What the last commit of this process left: it need not be read again while nobody else commits. */
  #left: LeftView | undefined;
  #adoption: Adoption | undefined;
  #refused: string | undefined;
  /** False until everything was checked, and again after a refusal. */
  #isChecked = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SignerOptions) {
    const { storage, configDir, dbPath, dbId = dbPath } = options;
    this.#options = options;
    this.#paths = new PathMemory(configDir, dbId);
    this.storage = Object.freeze({
      facts: storage.facts,
      batchMsMax: storage.batchMsMax,
      isShared: storage.isShared,
      read: (work) => storage.read(work),
      write: (work, durable) => this.#write(work, durable),
      sync: (waiting) => storage.sync(waiting),
      assertInPlace: () => storage.assertInPlace(),
      purge: () => storage.purge(),
      selfCheck: (tx) => storage.selfCheck(tx),
      isGone: (tx, process, ageMs) => storage.isGone(tx, process, ageMs),
      close: () => storage.close(),
    } satisfies StorageEngine);
  }

  /** Does the database still extend what was signed last? Takes the same time for every log. A no is remembered, not thrown. */
  async start(): Promise<void> {
    const { storage, diagnostics, clock, fullCheckMsMin = FULL_CHECK_DELAY_MS } = this.#options;
    try {
      await this.check();
      const [own, head] = [this.#own, this.#committed];
      if (own !== undefined && head !== undefined) {
        await storage.sync();
        this.durable(head);
        if (this.#refused === undefined) {
          forgetGone(own.folder.signedPath, requireRemembered(own), clock.now());
          await this.#fileAgain(own, head);
        }
      }
    } catch (thrown) {
      // Whatever it was, the first commit makes the same checks.
      diagnostics.error(`the signed log was not checked at start: ${asError(thrown).message}`);
    }
    this.#scheduleFullCheck(fullCheckMsMin);
  }

  async open(tx: Transaction): Promise<Head> {
    this.#base = undefined;
    const left = tx.commits !== undefined && tx.commits === this.#left?.commits ? this.#left.view : undefined;
    [this.#left, this.#leaving] = [undefined, undefined];
    const mine = this.#mine;
    const { isShared } = this.#options.storage;
    const view = left ?? (await readView(tx));
    this.#found = view;
    const isOurs = mine !== undefined && isHeadOf(mine.row, view.last);
    // Where another machine signed last, what this one signed must still be there.
    const [kept, acts] =
      isShared !== true || isOurs
        ? [mine?.row.chain_hash, []]
        : await Promise.all([mine && chainHashAt(tx, mine.row.size), this.#peers.news(tx)]);
    this.#peers.learn(acts, view, this.#own?.signer.verifierKey);
    const isKept = kept === mine?.row.chain_hash;
    this.#base = await this.#refusing(async () => {
      const base = await this.#baseFor(tx, view, isKept, left !== undefined);
      if (acts.some(({ act }) => act === ADOPTED)) base.own?.folder.noteAdoptions(this.#peers.adoptions);
      return base;
    });
    return view.last;
  }

  async close(tx: Transaction, head: Head, contentHashes: readonly string[], keep: boolean) {
    const base = this.#base;
    if (base === undefined || head.position === 0) return undefined;
    const tree = base.tree.copy();
    const blocks = new Map<number, string>();
    for (const hash of contentHashes) {
      tree.addDigest(hash);
      const block = tree.completedBlock;
      if (block !== undefined) blocks.set(tree.size / BLOCK_ROWS - 1, block);
    }
    if (tree.size !== head.position)
      throw new Error(`${contentHashes.length} rows after ${base.tree.size} do not end at ${head.position}`);
    // A transaction that was rolled back leaves the key it made; the log is still nameless, so the key is still its own.
    const create = () => this.#own ?? ownLogIn(KeyFolder.create(this.#options.configDir));
    const own = base.own ?? (await this.#refusing(create));
    if (own === undefined) return undefined;
    this.#own = own;
    if (base.own === undefined) changeOne(tx, NAME, own.folder.origin);
    const isSigned = tree.size === base.head?.row.size && base.head.row.key === own.signer.verifierKey;
    const signed = isSigned && base.head ? base.head : signHead(tx, own, tree, head);
    if (keep) changeOne(tx, KEEP, signed.row.size, signed.row.key, signed.row.checkpoint);
    // Where no row was added, an fsync that ends now may have begun before: `keep` waits for its own.
    if (keep && contentHashes.length > 0) this.#filing = signed;
    if (this.#adoption !== undefined) this.#finishAdoption(this.#adoption, own, tree.size, await keptIn(tx));
    else this.#leave(tx, own, head, signed);
    if (signed !== base.head) {
      this.#pending = signed;
      this.#notesOf(own).note(signed.row);
    }
    this.#base = { own, tree, head: signed };
    return blocks;
  }

  /** A copy that was made before a clean stop lacks the checkpoint of the stop. While its head is the newest, it is the same. */
  async #fileAgain(own: OwnLog, { row }: SignedHead): Promise<void> {
    const { storage } = this.#options;
    if (!storage.facts.writable || !own.folder.kept().includes(keptName(row.size, row.key))) return;
    const isThere = 'SELECT 1 AS found FROM checkpoints WHERE size = ? AND key = ?';
    if ((await storage.read((tx) => tx.get(isThere, row.size, row.key))) === undefined) await this.keep();
  }

  #leave({ commits }: Transaction, own: OwnLog, last: Head, { row }: SignedHead): void {
    if (commits === undefined || this.#found === undefined) return;
    const heads = [...this.#found.heads.filter(({ key }) => key !== row.key), row];
    this.#leaving = { commits: commits + 1, view: { origin: own.folder.origin, last, heads } };
  }

  /** The newest head that is known to be committed. Take it before `storage.sync()`, and hand it to `durable` afterwards. */
  committed(): HeadMark {
    return this.#committed;
  }

  /** Everything up to the mark is on the disk: it may leave, and is remembered. A failure to remember fails no call. */
  durable(mark: HeadMark): void {
    const own = this.#own;
    if (own === undefined || mark === undefined) return;
    const isNewer = mark.row.size > (this.#durable?.row.size ?? 0);
    if (isNewer) this.#durable = mark;
    try {
      this.#paths.write(own.folder.origin);
      const isLater = ({ row }: SignedHead) => row.size > mark.row.size;
      const filed = this.#filed.filter((head) => !isLater(head));
      this.#filed = this.#filed.filter(isLater);
      for (const { row } of filed) own.folder.noteKept(keptName(row.size, row.key));
      // What another machine signed, that one remembers.
      if (!isNewer || mark.row.key !== own.signer.verifierKey) return;
      this.#memory ??= new MemoryFile(own.folder.signedPath, this.#options.process, this.#memoryFailed);
      this.#memory.write({ chainHash: mark.row.chain_hash, note: mark.row.checkpoint });
    } catch (error) {
      this.#memoryFailed(error);
    }
  }

  /** The newest checkpoint that is durable, for every client that wants to be a witness. */
  newest(): string | undefined {
    return this.#durable?.row.checkpoint;
  }

  /** Why nothing is signed, where nothing is. */
  get refused(): string | undefined {
    return this.#refused;
  }

  /** What `server_health` shows. No name until the first row is signed; of the keys, the one that signs comes first. */
  state() {
    const own = this.#own;
    return {
      origin: own?.folder.origin,
      folder: own?.folder.path,
      signedThrough: this.#committed?.row.size ?? 0,
      refused: this.#refused,
      keys: own === undefined ? [] : [own.signer.verifierKey, ...own.retired],
    };
  }

  /** Which keys signed, where machines share the log. */
  async signers(tx: Reader): Promise<LogKey[] | undefined> {
    return this.#options.storage.isShared === true ? await readLogKeys(tx) : undefined;
  }

  /** Files the newest head for good and answers it. Undefined where nothing is signed. */
  async keep(): Promise<string | undefined> {
    let isFiled = false;
    const mark = await this.storage.write(async (tx) => {
      const head = await this.open(tx);
      // What was transferred elsewhere stays as it was then.
      if (head.isTransferred !== true) isFiled = (await this.close(tx, head, [], true)) !== undefined;
      return this.#base?.head;
    });
    if (mark === undefined) return undefined;
    await this.storage.sync();
    if (isFiled) this.#filed = [...this.#filed, mark];
    this.durable(mark);
    return mark.row.checkpoint;
  }

  /** What the owner decides for every machine, signed with the key of this one. */
  sign(stated: Stated): string {
    if (this.#own === undefined) throw new Error(this.#refused ?? 'this log has no key yet');
    return signStatement(this.#own.signer, stated);
  }

  /** Prepares to sign over the log as it is; no reason where nothing is wrong. Throws where even the owner cannot. */
  async adopt(): Promise<{ [K in keyof Adoption]?: Adoption[K] | undefined }> {
    await this.check();
    this.#adoption = await prepareAdoption(this.#options.storage, this.#options, this.#refused);
    return this.#adoption ?? {};
  }

  /** Keeps the last head and stops. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    try {
      if (this.#committed !== undefined) await this.keep();
      this.#memory?.close();
      this.#lastSigned?.close();
    } catch (thrown) {
      // Every row is signed already; what is missing is a checkpoint that is kept.
      this.#options.diagnostics.error(`the last checkpoint was not kept: ${asError(thrown).message}`);
    }
  }

  /** A machine that finds out only now that the log is new to it joins first, then does what it was about to do. */
  async #write<T>(work: (tx: Transaction) => Sooner<T>, durable?: Durable): Promise<T> {
    try {
      return await this.#writeOnce(work, durable);
    } catch (thrown) {
      if (!(thrown instanceof JoinFirst)) throw thrown;
      await this.join();
      return await this.#writeOnce(work, durable);
    }
  }

  async #writeOnce<T>(work: (tx: Transaction) => Sooner<T>, durable?: Durable): Promise<T> {
    let written: HeadMark;
    let filed: HeadMark;
    this.#leaving = undefined;
    const result = await this.#options.storage.write(async (tx) => {
      try {
        return await work(tx);
      } finally {
        [written, filed] = [this.#pending, this.#filing];
        [this.#pending, this.#filing] = [undefined, undefined];
      }
    }, durable);
    this.#left = this.#leaving;
    if (filed !== undefined) this.#filed = [...this.#filed, filed];
    if (written === undefined) return result;
    this.#adoption = undefined;
    if (written.row.size > (this.#committed?.row.size ?? 0)) this.#see(written);
    return result;
  }

  #see(head: SignedHead): void {
    this.#committed = head;
    if (head.row.key === this.#own?.signer.verifierKey) this.#mine = head;
  }

  async #meetPeers(tx: Reader, view: LogView): Promise<void> {
    if (this.#options.storage.isShared === true)
      await this.#peers.meet(tx, view, this.#own?.signer.verifierKey);
  }

  /** Says how to put the key of this machine on the record of a team's log. */
  onJoin(record: (key: string) => Promise<void>): void {
    this.#record = record;
  }

  /** Puts it there, where it is not yet. */
  async join(): Promise<void> {
    const own = this.#own;
    if (own === undefined || !this.#mustJoin(own) || this.#refused !== undefined) return;
    this.#isJoining = true;
    try {
      await this.#record?.(own.signer.verifierKey);
      own.folder.noteJoined();
    } finally {
      this.#isJoining = false;
    }
  }

  #mustJoin({ folder, signer: { verifierKey } }: OwnLog): boolean {
    if (this.#options.storage.isShared !== true || this.#isJoining || this.#joined === verifierKey)
      return false;
    if (originOfKey(verifierKey) !== folder.origin && !folder.hasJoined) return true;
    this.#joined = verifierKey;
    return false;
  }

  /** All checks, outside a transaction. The memory is read first: others may sign further rows at any moment. */
  async check(): Promise<void> {
    const { storage } = this.#options;
    await this.#refusing(async () => {
      const own = this.#load(await storage.read(readView));
      const remembered = own && requireRemembered(own);
      await storage.read(async (tx) => {
        const view = await readView(tx);
        await this.#checkFully(tx, view, own, remembered);
      });
    });
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

  async #baseFor(tx: Transaction, view: LogView, isKept: boolean, isLeft: boolean): Promise<Base> {
    if (this.#adoption !== undefined) return await this.#adoptedBase(tx, view, this.#adoption);
    await this.#meetPeers(tx, view);
    const known = this.#isChecked ? this.#knownBase(view, isKept, isLeft) : undefined;
    const base = known ?? (await this.#checkFully(tx, view, this.#load(view)));
    if (base.own !== undefined && this.#mustJoin(base.own)) throw new JoinFirst();
    return base;
  }

  /** The head that this process wrote or saw, or one that another process of this user signed since. */
  #knownBase(view: LogView, isKept: boolean, isLeft: boolean): Base | undefined {
    const own = this.#own;
    if (own === undefined || view.origin !== own.folder.origin) return undefined;
    const { newest: row, hasOther } = headsOf(view, own, this.#peers.keys);
    if (row === undefined || hasOther || !isHeadOf(row, view.last)) return undefined;
    const peer = this.#peers.keys.get(row.key);
    if (peer !== undefined && !isKept) return undefined;
    // Nobody else has committed since this process left its head there, or that head is the last that was signed.
    if (peer === undefined && !isLeft && !this.#notesOf(own).has(row)) return undefined;
    const isSame = (head: HeadMark) => HEAD_COLUMNS.every((column) => head?.row[column] === row[column]);
    let head = [this.#committed, this.#pending].find(isSame);
    const isNewer = row.size >= (this.#committed?.row.size ?? 0);
    if (head === undefined && isNewer && own.folder.adoptionStamp() === own.stamp)
      head = peer === undefined ? openNoted(row, own) : openHead(row, peer);
    if (head === undefined) return undefined;
    // Opened a second time, a transaction sees its own head, which is not committed yet.
    if (head !== this.#pending) this.#see(head);
    return { own, tree: head.tree, head };
  }

  #notesOf(own: OwnLog): LastSigned {
    this.#lastSigned ??= new LastSigned(own.folder.lastSignedPath);
    return this.#lastSigned;
  }

  /** The user's side of the log, read anew: the owner may have restored or renewed the key meanwhile. */
  #load(view: LogView): OwnLog | undefined {
    const before = this.#own;
    const { isShared, facts } = this.#options.storage;
    // Who only reads makes no key, and needs none where the first call of a machine makes one.
    const own = loadOwnLog(
      view,
      this.#options,
      isShared !== true ? 'refused' : facts.writable ? 'joins' : 'later',
    );
    if (own === undefined) return undefined;
    // What this process saw was given up by the owner, in another process.
    if (before?.folder.origin !== own.folder.origin || before.stamp !== own.stamp) this.#forget();
    this.#own = own;
    return own;
  }

  /** Everything that can be checked in constant time. */
  async #checkFully(
    tx: Reader,
    view: LogView,
    own: OwnLog | undefined,
    remembered: Remembered | undefined = own && requireRemembered(own),
  ): Promise<Base> {
    const { dbPath, storage } = this.#options;
    await this.#meetPeers(tx, view);
    let head: SignedHead | undefined;
    try {
      head = own && remembered && (await requireSigned(tx, view, own, remembered, dbPath, this.#peers.keys));
      // A server that fails may lose what was committed and not yet durable, and this process goes on.
      const older = (storage.isShared === true ? this.#durable : this.#committed)?.row.size ?? 0;
      if ((head?.row.size ?? 0) < older) throw REFUSALS.cutTail(dbPath, view.last.position, older);
    } catch (refusal) {
      const settled = await this.#settled(tx, view, own, refusal);
      if (settled === undefined) throw refusal;
      return await this.#checkFully(tx, view, settled);
    }
    // What this machine signs over from now on.
    if (storage.isShared === true && storage.facts.writable) own?.folder.noteAdoptions(this.#peers.adoptions);
    if (head !== undefined) this.#see(head);
    // What is remembered was durable.
    if (head?.row.size === remembered?.size) this.#durable = head;
    const finding = own?.folder.lastCheck()?.finding;
    if (finding !== undefined) throw new RefusalError(finding);
    return { own, tree: head?.tree ?? new Frontier(), head };
  }

  /** One adoption serves every machine: the memory of this one starts over where another was allowed to go on. */
  async #settled(
    tx: Reader,
    view: LogView,
    own: OwnLog | undefined,
    refusal: unknown,
  ): Promise<OwnLog | undefined> {
    const { storage, diagnostics } = this.#options;
    const isPossible = storage.isShared === true && storage.facts.writable;
    if (!(refusal instanceof RefusalError) || own === undefined || !isPossible) return undefined;
    // From the first row: what was read before may be of rows that are gone.
    const acts = await actsOnRecord(tx, 0);
    if (!(await isAdoptedElsewhere(tx, view, own, acts))) return undefined;
    own.folder.startOver(refusal.message, view.last.position, await keptIn(tx));
    own.folder.noteAdoptions(acts.filter(({ act }) => act === ADOPTED).map(adoptionId));
    diagnostics.warn(`what this machine signed is not in the log any more, and its owner has accepted that`);
    // The row by which the key of this machine joined may be among those that are gone.
    if (!acts.some(({ key }) => key === own.signer.verifierKey)) own.folder.forgetJoined();
    this.#forget();
    this.#own = ownLogIn(own.folder);
    return this.#own;
  }

  #forget(): void {
    this.#peers.forget();
    this.#memory?.close();
    this.#memory = undefined;
    this.#lastSigned?.close();
    this.#lastSigned = undefined;
    this.#committed = undefined;
    this.#mine = undefined;
    this.#pending = undefined;
    this.#durable = undefined;
    this.#filed = [];
  }

  /** Said once: it may fail for every call. */
  readonly #memoryFailed = (error: unknown): void => {
    const message = `what was signed last could not be remembered (${asError(error).message}); make ${this.#options.configDir} writable`;
    if (message !== this.#saidFailure) this.#options.diagnostics.error(message);
    this.#saidFailure = message;
  };
  #saidFailure = '';

  /** Catches up under the write lock with what was appended since the adoption was prepared. */
  async #adoptedBase(tx: Transaction, view: LogView, adoption: Adoption): Promise<Base> {
    const tree = view.last.position < adoption.tree.size ? new Frontier() : adoption.tree.copy();
    await regrow({ read: (work) => work(tx) }, tree, view.last.position, this.#options.dbPath);
    if (view.origin === undefined) changeOne(tx, NAME, adoption.own.folder.origin);
    await this.#meetPeers(tx, view);
    this.#own = await acceptHeads(tx, view, adoption.own, this.#peers.keys);
    return { own: this.#own, tree, head: undefined };
  }

  /**
   * Under the write lock, so that no other process sees the accepted head with the memory that contradicts it and goes
   * on unsigned. If the commit fails, what was put aside is still in the folder.
   */
  #finishAdoption({ reason }: Adoption, own: OwnLog, size: number, kept: ReadonlySet<string>): void {
    this.#forget();
    own.folder.startOver(reason, size, kept);
    this.#paths.write(own.folder.origin);
    this.#own = ownLogIn(own.folder);
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
      const finding = await checkWholeLog(storage, own, head, dbPath, clock.now());
      if (finding !== undefined) this.#refuse(finding);
    } catch (error) {
      diagnostics.error(`the log could not be read again: ${asError(error).message}`);
    }
  }
}

/** What a server would say of a log that it is about to sign: the key folder it would use, and why it would not. */
export async function signability(storage: StorageEngine, { dbPath, dbId, configDir }: LogPlace) {
  const diagnostics = createDiagnostics(() => undefined, 'error');
  const place = { dbPath, configDir, ...(dbId !== undefined && { dbId }) };
  const signer = new LogSigner({ storage, ...place, diagnostics, clock: systemClock, process: '' });
  await signer.check();
  return signer.state();
}

/** A head that a process of this user is known to have signed. */
function openNoted(row: HeadRow, { signer }: OwnLog): HeadMark {
  const tree = row.key === signer.verifierKey ? treeIn(row.frontier, row.size) : undefined;
  return tree && { row, tree };
}

async function chainHashAt(tx: Reader, position: number): Promise<string | undefined> {
  const sql = 'SELECT chain_hash AS hash FROM audit_rows WHERE position = ?';
  return (await tx.get<{ hash: string }>(sql, position))?.hash;
}

const NAME = 'INSERT INTO log (id, origin) VALUES (1, ?)';

const SIGN = `INSERT INTO log_heads (${HEAD_COLUMNS.join(', ')}) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET ${HEAD_COLUMNS.slice(1)
    .map((column) => `${column} = excluded.${column}`)
    .join(', ')}`;

function signHead(tx: Transaction, own: OwnLog, tree: Frontier, last: Head): SignedHead {
  const { signer } = own;
  const text = formatCheckpoint({ origin: signer.name, size: tree.size, root: tree.root() });
  const row = {
    key: signer.verifierKey,
    size: tree.size,
    chain_hash: last.chainHash,
    at: last.at,
    frontier: tree.state.hashes.join(''),
    checkpoint: signNote(text, signer),
  };
  changeOne(tx, SIGN, ...HEAD_COLUMNS.map((column) => row[column]));
  return { row, tree };
}

const KEEP = `INSERT INTO checkpoints (size, key, note) VALUES (?, ?, ?)
  ON CONFLICT (size, key) DO UPDATE SET note = checkpoints.note`;

/** Errors of the storage are not ours to judge; those of the key folder's files are a reason to sign nothing. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof RefusalError) return thrown.message;
  if (thrown instanceof Error && 'syscall' in thrown)
    return `The key folder cannot be used (${thrown.message}). Make it readable and writable by this user.`;
  throw thrown;
}
