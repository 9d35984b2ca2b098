import type { Diagnostics } from '../diagnostics.ts';
import { asError } from '../errors.ts';
import { type Checkpoint, formatCheckpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { isHash } from '../integrity/digest.ts';
import { type NoteSigner, parseVerifierKey } from '../integrity/note-key.ts';
import { openNote, signNote } from '../integrity/signed-note.ts';
import { Frontier } from '../integrity/tree.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { readHead } from './append.ts';
import { CheckpointFiles } from './checkpoint-files.ts';
import { LogFolder, originOf, PathMemory } from './log-folder.ts';

export interface SignerOptions {
  readonly storage: StorageEngine;
  readonly dbPath: string;
  readonly configDir: string;
  readonly diagnostics: Diagnostics;
  /** Runs `work` while no other process on this machine does the same for the same lock file. */
  readonly exclusively: <T>(lockPath: string, work: () => Promise<T>) => Promise<T>;
}

/** What `server_health` shows of the log. */
export interface SignerState {
  readonly origin: string | undefined;
  /** Rows covered by the newest checkpoint. */
  readonly signedThrough: number;
  /** Why nothing is signed any more. */
  readonly refused: string | undefined;
  /** The check at start is not over: a long log is still being read. */
  readonly checking: boolean;
}

export interface LogSigner {
  /** At start: does the database still extend what was last signed? Never throws; a no is remembered and refused by. */
  check(): Promise<void>;
  /** Resolves when that check is over. */
  checked(): Promise<void>;
  /** There are new rows: sign within seconds, off the path of the call; at once when a session was sealed. */
  touch(sealed: boolean): void;
  /** Signs now, unless there is nothing new. `keep` files the checkpoint for good. */
  sign(keep: boolean): Promise<string | undefined>;
  /** The newest checkpoint, for whoever wants to be a witness. */
  newest(): string | undefined;
  state(): SignerState;
  /** Signs what is left and stops. */
  close(): Promise<void>;
}

/** How long rows may wait for a signature while the server runs. */
const DELAY_MS = 2_000;

/** Refusals, each with what to do. Thrown inside, remembered by the signer. */
class RefusalError extends Error {}

export function createSigner(options: SignerOptions): LogSigner {
  const { storage, diagnostics } = options;
  const files = new CheckpointFiles(options.dbPath);
  const memory = new PathMemory(options.configDir, options.dbPath);
  let folder: LogFolder | undefined;
  // Grown from the rows themselves: stored block roots could be left standing beside rewritten rows.
  let tree = new Frontier();
  let newest: string | undefined;
  let signedThrough = 0;
  let refused: string | undefined;
  let checking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  /** One after the other within the process; the lock file does it between processes. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = queue.then(work);
    queue = turn.catch(() => undefined);
    return turn;
  }

  async function guarded<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (refused !== undefined) return undefined;
    try {
      return await work();
    } catch (thrown) {
      const { message } = asError(thrown);
      if (thrown instanceof RefusalError) refused = message;
      diagnostics.error(
        thrown instanceof RefusalError
          ? `degraded, nothing is signed: ${message}`
          : `signing failed, will be tried again: ${message}`,
      );
      return undefined;
    }
  }

  async function check(opened: Promise<LogFolder | undefined>): Promise<void> {
    await guarded(async () => {
      folder = await opened;
      const known = folder;
      if (known === undefined) return;
      // Read before the snapshot is taken: another process may sign further rows at any moment.
      const last = lastSigned(known);
      await storage.read((tx) => extend(tx, last));
    });
  }

  async function sign(keep: boolean): Promise<string | undefined> {
    return await inTurn(() => guarded(() => signHead(keep)));
  }

  async function signHead(keep: boolean): Promise<string | undefined> {
    folder ??= await openFolder();
    if (folder === undefined) return undefined;
    const known = folder;
    return await options.exclusively(known.lockPath, () =>
      storage.read((tx) => signUnderLock(tx, known, keep)),
    );
  }

  /**
   * As a writer, and the first of this process: no row can appear between the look at the log and the note that this
   * path was seen empty, neither by a call that waits at the gate nor by another process. And no call can lengthen a log
   * that was cut before anybody has counted its rows.
   */
  function openFolder(): Promise<LogFolder | undefined> {
    return storage.write(async (tx) => {
      const known = identify(await firstHash(tx), options.configDir, memory, files);
      if (known === undefined) return undefined;
      requireSigner(known);
      const { position } = await readHead(tx);
      const { size } = lastSigned(known);
      if (position < size) throw new RefusalError(cutTail(options.dbPath, position, size));
      return known;
    });
  }

  async function signUnderLock(tx: Reader, known: LogFolder, keep: boolean): Promise<string | undefined> {
    const last = lastSigned(known);
    await extend(tx, last);
    const head = await readHead(tx);
    if (head.position > last.size) {
      const signer = requireSigner(known);
      const grown = await growTo(tx, head.position);
      // A row that a power cut could still take back must not be vouched for: the next start would cry rollback.
      // Only now: rows may have come since the signing began.
      await storage.sync();
      const note = signNote(
        formatCheckpoint({ origin: known.origin, size: grown.size, root: grown.root() }),
        signer,
      );
      known.remember(note);
      if (memory.read() !== known.origin) memory.write(known.origin);
      [newest, signedThrough] = [note, grown.size];
    }
    if (newest !== undefined) files.write(signedThrough, newest, keep);
    return newest;
  }

  /** The database must still begin with what was signed last. Anything else is the one thing a log must never sign over. */
  async function extend(tx: Reader, last: LastSigned): Promise<void> {
    const head = await readHead(tx);
    if (head.position < last.size) throw new RefusalError(cutTail(options.dbPath, head.position, last.size));
    const there = await growTo(tx, last.size);
    if (there.root() !== last.root) throw new RefusalError(rewritten(options.dbPath, last.size));
    if (last.size > 0) [newest, signedThrough] = [last.note, last.size];
  }

  async function growTo(tx: Reader, size: number): Promise<Frontier> {
    if (tree.size > size) tree = new Frontier();
    while (tree.size < size) {
      const rows = await tx.all<{ content_hash: string }>(
        'SELECT content_hash FROM actions WHERE position > ? AND position <= ? ORDER BY position LIMIT ?',
        tree.size,
        size,
        PAGE,
      );
      if (rows.length === 0) throw new RefusalError(rewritten(options.dbPath, size));
      for (const { content_hash } of rows) {
        if (!isHash(content_hash)) throw new RefusalError(rewritten(options.dbPath, size));
        tree.add(content_hash);
      }
      // A long log takes seconds to read again; calls go first.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return tree;
  }

  return {
    check() {
      const opened = openFolder();
      opened.catch(() => undefined);
      checking = inTurn(() => check(opened)).finally(() => {
        checking = undefined;
      });
      return checking;
    },
    checked: () => checking ?? Promise.resolve(),
    sign,
    touch(sealed) {
      if (refused !== undefined) return;
      if (sealed) setImmediate(() => void sign(true));
      timer ??= setTimeout(() => {
        timer = undefined;
        void sign(false);
      }, DELAY_MS).unref();
    },
    newest: () => newest,
    state: () => ({ origin: folder?.origin, signedThrough, refused, checking: checking !== undefined }),
    async close() {
      clearTimeout(timer);
      await sign(true);
    },
  };
}

const PAGE = 2_000;

async function firstHash(tx: Reader): Promise<string | undefined> {
  return (await tx.get<{ content_hash: string }>('SELECT content_hash FROM actions WHERE position = 1'))
    ?.content_hash;
}

/**
 * Finds the folder of this log, or makes it for a log that began here. A database with a past that this user's folder
 * knows nothing of is refused: signing it anew would quietly forget whatever protected it before.
 */
function identify(
  first: string | undefined,
  configDir: string,
  memory: PathMemory,
  files: CheckpointFiles,
): LogFolder | undefined {
  const seen = memory.read();
  if (first === undefined) {
    if (typeof seen === 'string') throw new RefusalError(replaced(seen, 'an empty one'));
    memory.write(null);
    return undefined;
  }
  const folder = new LogFolder(configDir, originOf(first));
  if (typeof seen === 'string' && seen !== folder.origin)
    throw new RefusalError(replaced(seen, folder.origin));
  if (folder.exists) return folder;
  // Only a log that was seen here from its start is new. One that was signed before, here or elsewhere, lost its key.
  if (seen !== null || files.newest() !== undefined) throw new RefusalError(unknownLog(folder.origin));
  folder.create();
  return folder;
}

/** What was signed last, with the note that says so. */
interface LastSigned extends Checkpoint {
  readonly note: string;
}

function lastSigned(folder: LogFolder): LastSigned {
  const note = folder.lastSigned();
  if (note === undefined) throw new RefusalError(lostMemory(folder));
  return { ...openOwn(note, folder), note };
}

/** The key, which must be the one whose public half is on record: another one would start a second history. */
function requireSigner(folder: LogFolder): NoteSigner {
  try {
    const signer = folder.signer();
    if (signer !== undefined && signer.verifierKey === folder.verifierKey()) return signer;
  } catch {
    // Falls through: a key that cannot be read is as good as none.
  }
  throw new RefusalError(lostKey(folder));
}

/** Opens a note that must be this log's own. */
function openOwn(note: string, folder: LogFolder): Checkpoint {
  const key = folder.verifierKey();
  if (key === undefined) throw new RefusalError(lostKey(folder));
  try {
    const checkpoint = parseCheckpoint(openNote(note, [parseVerifierKey(key)]).text);
    if (checkpoint.origin === folder.origin) return checkpoint;
  } catch {
    // Falls through: a memory that cannot be read is as good as none.
  }
  throw new RefusalError(lostMemory(folder));
}

const ACCEPT =
  'If you know why, "colibri checkpoint --adopt" goes on from what is there and says so in the log folder';

function cutTail(path: string, found: number, signed: number): string {
  return `${path} has ${found} audit rows, but ${signed} were signed: its newest rows were cut off or an older copy was put back. Put the newest copy back. ${ACCEPT}.`;
}

function rewritten(path: string, signed: number): string {
  return `the first ${signed} audit rows of ${path} are not the ones that were signed: history was rewritten. "colibri verify" shows where. ${ACCEPT}.`;
}

function replaced(before: string, now: string): string {
  return `the database at this path was the log ${before} and is now ${now}. Put the old one back, or keep the new one at another path. ${ACCEPT}.`;
}

function unknownLog(origin: string): string {
  return `the log ${origin} has rows, but this user has no key for it: it was moved from another machine or user, or the key folder was lost. Bring the folder "logs" of the old configuration along. ${ACCEPT}.`;
}

function lostKey(folder: LogFolder): string {
  return `the key in ${folder.path} is gone or is another one. Restore it from a backup. ${ACCEPT}.`;
}

function lostMemory(folder: LogFolder): string {
  return `${folder.path}/last-signed is missing or damaged, so nobody can say what was signed last. Restore it from a backup, or compare the newest checkpoint you hold elsewhere with "colibri verify --against". ${ACCEPT}.`;
}
