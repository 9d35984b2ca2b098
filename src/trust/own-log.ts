import type { Config } from '../config.ts';
import { type NoteSigner, noteSigner, parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import type { Head } from '../log/head.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { KeyFolder } from './key-folder.ts';
import {
  type HeadRow,
  isHeadOf,
  type LogView,
  openHead,
  readRow,
  readView,
  type SignedHead,
} from './log-view.ts';
import { type Remembered, readRemembered } from './memory.ts';
import { isOrigin } from './origin.ts';
import { PathMemory } from './path-memory.ts';
import { REFUSALS, RefusalError } from './refusal.ts';

/** Where a database is, and where the user's side of its log is. */
export type LogPlace = Pick<Config, 'dbPath' | 'configDir'>;

/** A log with the key that this user signs it with. */
export interface OwnLog {
  readonly folder: KeyFolder;
  readonly signer: NoteSigner;
  readonly key: VerifierKey;
  /** Keys that were given up: a head by one of them may stay. */
  readonly retired: readonly string[];
  /** Which adoption this was loaded after. */
  readonly stamp: string;
}

/** The user's side of the log at a path; undefined for a new log. Refuses one that is not the log it was or has no key. */
export function loadOwnLog(
  { origin, last, heads }: LogView,
  { dbPath, configDir }: LogPlace,
): OwnLog | undefined {
  const other = new PathMemory(configDir, dbPath).otherThan(origin);
  const now = origin ?? (last.position > 0 ? 'an unsigned one' : 'an empty one');
  if (other !== undefined) throw new RefusalError(REFUSALS.replaced(other, now));
  if (origin === undefined) {
    if (last.position === 0 && heads.length === 0) return undefined;
    throw new RefusalError(REFUSALS.neverSigned(dbPath, last.position));
  }
  if (!isOrigin(origin)) throw new RefusalError(REFUSALS.misnamed(dbPath));
  const folder = new KeyFolder(configDir, origin);
  if (!folder.exists) throw new RefusalError(REFUSALS.unknownLog(origin));
  return ownLogIn(folder);
}

/** The key of a folder that is there. Refuses where it is missing or is not the one on record. */
export function ownLogIn(folder: KeyFolder): OwnLog {
  const stamp = folder.adoptionStamp();
  const signer = signerIn(folder);
  // Another key would start a second history.
  if (signer === undefined || signer.verifierKey !== folder.verifierKey())
    throw new RefusalError(REFUSALS.lostKey(folder.path));
  return { folder, signer, key: parseVerifierKey(signer.verifierKey), retired: folder.retiredKeys(), stamp };
}

/** A key that cannot be read is as good as none. */
function signerIn(folder: KeyFolder): NoteSigner | undefined {
  try {
    return noteSigner(folder.origin, folder.privateKeyPem() ?? '');
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw error;
    return undefined;
  }
}

/**
 * What this log's folder remembers; refuses where it remembers nothing, for then nobody can say what was signed. To be
 * read before the rows: others may sign further ones at any moment.
 */
export function requireRemembered({ folder, key }: OwnLog): Remembered {
  const remembered = readRemembered(folder.signedPath, key);
  if (remembered === undefined) throw new RefusalError(REFUSALS.lostMemory(folder.signedPath));
  return remembered;
}

/** The own head, and whether another one stands beside it that this user did not give up. */
export function headsOf({ heads }: LogView, { signer, retired }: OwnLog) {
  const row = heads.find(({ key }) => key === signer.verifierKey);
  const isRetired = ({ key, size }: HeadRow) => retired.includes(key) && size <= (row?.size ?? size);
  return { row, hasOther: heads.some((head) => head !== row && !isRetired(head)) };
}

/**
 * The three checks: the head is signed, it is that of its row, and no row follows. Then the one thing that a log must
 * never sign over: it still holds what was signed last. Undefined for a log without rows. What is wrong with the head
 * itself comes first: rows follow it as soon as Colibri goes on unsigned.
 */
export async function requireSigned(
  tx: Reader,
  view: LogView,
  own: OwnLog,
  { size, chainHash }: Remembered,
  dbPath: string,
): Promise<SignedHead | undefined> {
  const { last } = view;
  const { row, hasOther } = headsOf(view, own);
  if (hasOther) throw new RefusalError(REFUSALS.otherHead(dbPath));
  if (row === undefined && last.position > 0) throw new RefusalError(REFUSALS.noHead(dbPath, last.position));
  const head = row && openHead(row, own.key);
  if (row !== undefined) {
    if (head === undefined) throw new RefusalError(REFUSALS.wrongHead(dbPath));
    await requireRow(tx, last, row.size, dbPath, (signed) => isHeadOf(row, signed));
    if (last.position > row.size) throw new RefusalError(REFUSALS.foreignRows(dbPath, row.size));
  }
  await requireRow(tx, last, size, dbPath, (signed) => signed.chainHash === chainHash);
  return head;
}

/** The row at `size` is there, and is the one that was signed. */
async function requireRow(
  tx: Reader,
  last: Head,
  size: number,
  dbPath: string,
  isSigned: (row: Head) => boolean,
): Promise<void> {
  if (last.position < size) throw new RefusalError(REFUSALS.cutTail(dbPath, last.position, size));
  const row = last.position === size ? last : await readRow(tx, size);
  if (size > 0 && (row === undefined || !isSigned(row)))
    throw new RefusalError(REFUSALS.rewritten(dbPath, size));
}

/**
 * The user's side of a log that a server would go on signing; undefined for one without rows. Refuses where it would
 * not. Takes the same time for every log; `colibri verify` checks everything.
 */
export async function requireSignable(storage: StorageEngine, place: LogPlace): Promise<OwnLog | undefined> {
  const own = loadOwnLog(await storage.read(readView), place);
  if (own === undefined) return undefined;
  const remembered = requireRemembered(own);
  await storage.read(async (tx) => requireSigned(tx, await readView(tx), own, remembered, place.dbPath));
  return own;
}
