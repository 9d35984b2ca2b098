import { type NoteSigner, noteSigner, parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import type { Reader } from '../storage/engine.ts';
import { KeyFolder } from './key-folder.ts';
import { type HeadRow, isHeadOf, type LogView, openHead, readRow, type SignedHead } from './log-view.ts';
import { type Remembered, readRemembered } from './memory.ts';
import { isOrigin } from './origin.ts';
import { REFUSALS } from './refusal.ts';

/** A log with the key that this user signs it with. */
export interface OwnLog {
  readonly folder: KeyFolder;
  /** The private key as it was read. */
  readonly pem: string;
  readonly signer: NoteSigner;
  readonly key: VerifierKey;
  /** Keys that were given up: a head by one of them may stay. */
  readonly retired: readonly string[];
  /** Which adoption this was loaded after. */
  readonly stamp: string;
}

/**
 * The user's side of the log with this origin. Refuses where the key is missing or is not the one on record. What was
 * loaded before is taken where the files are still the same: reading a key takes a millisecond.
 */
export function loadOwnLog(configDir: string, origin: string, dbPath: string, before?: OwnLog): OwnLog {
  if (!isOrigin(origin)) throw REFUSALS.misnamed(dbPath);
  const folder = new KeyFolder(configDir, origin);
  if (!folder.exists) throw REFUSALS.unknownLog(origin);
  return ownLogIn(folder, before);
}

/** The same for a folder that is known to be there. */
export function ownLogIn(folder: KeyFolder, before?: OwnLog): OwnLog {
  const stamp = folder.adoptionStamp();
  const pem = folder.privateKeyPem();
  const isSame = before !== undefined && before.folder.path === folder.path && before.pem === pem;
  const signer = isSame ? before.signer : signerFrom(folder.origin, pem);
  // Another key would start a second history.
  if (pem === undefined || signer === undefined || signer.verifierKey !== folder.verifierKey())
    throw REFUSALS.lostKey(folder.path);
  const key = isSame ? before.key : parseVerifierKey(signer.verifierKey);
  return { folder, pem, signer, key, retired: folder.retiredKeys(), stamp };
}

/** A key that cannot be read is as good as none. */
function signerFrom(origin: string, pem: string | undefined): NoteSigner | undefined {
  try {
    return pem === undefined ? undefined : noteSigner(origin, pem);
  } catch {
    return undefined;
  }
}

function isRetired(row: HeadRow, head: HeadRow | undefined, own: OwnLog): boolean {
  return own.retired.includes(row.key) && row.size <= (head?.size ?? row.size);
}

/** The own head, if it stands alone and is that of the last row. Says nothing about its signature. */
export function ownHead({ heads, last }: LogView, own: OwnLog): HeadRow | undefined {
  const head = heads.find(({ key }) => key === own.signer.verifierKey);
  if (head === undefined || !isHeadOf(head, last)) return undefined;
  return heads.every((row) => row === head || isRetired(row, head, own)) ? head : undefined;
}

/**
 * The three checks: the head is signed, it is that of its row, and no row follows. Undefined for a log without rows.
 * What is wrong with the head itself comes first: rows follow it as soon as Colibri goes on unsigned.
 */
export async function requireHead(
  tx: Reader,
  { heads, last }: LogView,
  own: OwnLog,
  dbPath: string,
): Promise<SignedHead | undefined> {
  const row = heads.find(({ key }) => key === own.signer.verifierKey);
  if (heads.some((other) => other !== row && !isRetired(other, row, own))) throw REFUSALS.otherHead(dbPath);
  if (row === undefined) {
    if (last.position > 0) throw REFUSALS.noHead(dbPath, last.position);
    return undefined;
  }
  const head = openHead(row, own.key);
  if (head === undefined) throw REFUSALS.wrongHead(dbPath);
  if (last.position < row.size) throw REFUSALS.cutTail(dbPath, last.position, row.size);
  const signed = last.position === row.size ? last : await readRow(tx, row.size);
  if (signed === undefined || !isHeadOf(row, signed)) throw REFUSALS.rewritten(dbPath, row.size);
  if (last.position > row.size) throw REFUSALS.foreignRows(dbPath, row.size);
  return head;
}

/** What this log's folder remembers; refuses where it remembers nothing, for then nobody can say what was signed. */
export function requireRemembered(own: OwnLog): Remembered & { readonly file: string } {
  const remembered = readRemembered(own.folder.signedPath, own.key);
  if (remembered === undefined) throw REFUSALS.lostMemory(own.folder.signedPath);
  return remembered;
}

/** The log must still hold what was signed last: the one thing a log must never sign over. */
export async function requireExtends(
  tx: Reader,
  view: LogView,
  remembered: Remembered,
  dbPath: string,
): Promise<void> {
  const { size, chainHash } = remembered;
  if (view.last.position < size) throw REFUSALS.cutTail(dbPath, view.last.position, size);
  if (size === 0) return;
  if ((await readRow(tx, size))?.chainHash !== chainHash) throw REFUSALS.rewritten(dbPath, size);
}
