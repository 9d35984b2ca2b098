import { FormatError } from '../integrity/c2sp-text.ts';
import { parseVerifierKey } from '../integrity/note-key.ts';
import { Frontier } from '../integrity/tree.ts';
import type { StorageEngine, Transaction } from '../storage/engine.ts';
import { KeyFolder } from './key-folder.ts';
import { type HeadRow, type LogView, readView } from './log-view.ts';
import { readRemembered } from './memory.ts';
import { openIfValid } from './opening.ts';
import { isOrigin, originOfKey } from './origin.ts';
import { type OwnLog, ownLogIn } from './own-log.ts';
import { REFUSALS, RefusalError } from './refusal.ts';
import { regrow } from './regrow.ts';

/** A signed head that the log no longer extends, given up by the owner. */
export interface LostHead {
  readonly size: number;
  readonly root: string;
  /** The verifier key that signed it. */
  readonly key: string;
}

/** The owner's decision to go on from what is there, until the commit that carries it out. */
export interface Adoption {
  readonly reason: string;
  readonly lost: LostHead | undefined;
  readonly own: OwnLog;
  /** Over every row that was there when the adoption was prepared. */
  readonly tree: Frontier;
  readonly at: string;
  /** Names what is put aside. */
  readonly suffix: string;
}

interface AdoptionOptions {
  readonly storage: StorageEngine;
  readonly configDir: string;
  readonly dbPath: string;
  /** Why the log is not signed now, as far as the checks in constant time tell. */
  readonly refused: string | undefined;
  readonly now: Date;
}

/**
 * Reads the whole log once and makes a key where there is none. Undefined where nothing stands in the way of signing.
 * Gives up as little as it can: the key stays, unless it is lost.
 */
export async function prepareAdoption(options: AdoptionOptions): Promise<Adoption | undefined> {
  const { storage, configDir, dbPath, now } = options;
  // The memory is read before the log: others may sign further rows at any moment.
  const remembered = rememberedOf(configDir, await storage.read(readView));
  const view = await storage.read(readView);
  const claims = [...remembered, ...signedIn(view, configDir)];
  const rootsAt = new Map(claims.map(({ size }) => [size, '']));
  const tree = new Frontier();
  await regrow((work) => storage.read(work), tree, view.last.position, dbPath, rootsAt);
  const [lost] = claims
    .filter(({ size, root }) => size > 0 && rootsAt.get(size) !== root)
    .sort((a, b) => b.size - a.size);
  const reason = options.refused ?? (lost && REFUSALS.rewritten(dbPath, lost.size).message);
  if (reason === undefined) return undefined;
  const suffix = now.toISOString().replaceAll(':', '-');
  return { reason, lost, tree, suffix, at: now.toISOString(), own: keyFor(view, configDir, dbPath, suffix) };
}

/**
 * Leaves only heads by keys of this log: one that created it or was given up. A head by anybody else goes, for it would
 * stand in the way of every later commit.
 */
export async function acceptHeads(tx: Transaction, view: LogView, own: OwnLog): Promise<OwnLog> {
  const others = view.heads.filter(({ key }) => key !== own.signer.verifierKey);
  for (const head of others) {
    const isOurs = head.size <= view.last.position && signedBy(head, own.folder).length > 0;
    if (isOurs) own.folder.retire(head.key);
    else await tx.run('DELETE FROM log_heads WHERE key = ?', head.key);
  }
  return others.length === 0 ? own : ownLogIn(own.folder);
}

function rememberedOf(configDir: string, view: LogView): LostHead[] {
  const folder = folderOf(view, configDir);
  const key = folder?.verifierKey();
  if (folder === undefined || key === undefined) return [];
  const verifier = keyIn(key);
  const last = verifier && readRemembered(folder.signedPath, verifier);
  return last === undefined ? [] : [{ size: last.size, root: last.root, key }];
}

function signedIn(view: LogView, configDir: string): LostHead[] {
  const folder = folderOf(view, configDir);
  return folder === undefined ? [] : view.heads.flatMap((head) => signedBy(head, folder));
}

/** What a head says, if a key of this log signed it. The name of a log vouches for the key that created it. */
function signedBy({ key, checkpoint }: HeadRow, folder: KeyFolder): LostHead[] {
  const verifier = keyIn(key);
  if (verifier === undefined) return [];
  if (originOfKey(key) !== folder.origin && !folder.keys().includes(key)) return [];
  const opened = openIfValid(checkpoint, [verifier]);
  return opened?.origin === folder.origin ? [{ size: opened.size, root: opened.root, key }] : [];
}

function keyIn(text: string) {
  try {
    return parseVerifierKey(text);
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}

/** The folder the log belongs to, there or not. Where its name is gone, a head by a key that is here still tells it. */
function folderOf(view: LogView, configDir: string): KeyFolder | undefined {
  if (view.origin !== undefined)
    return isOrigin(view.origin) ? new KeyFolder(configDir, view.origin) : undefined;
  for (const { key } of view.heads) {
    const name = key.slice(0, key.indexOf('+'));
    const folder = isOrigin(name) ? new KeyFolder(configDir, name) : undefined;
    if (folder?.verifierKey() === key) return folder;
  }
  return undefined;
}

function keyFor(view: LogView, configDir: string, dbPath: string, suffix: string): OwnLog {
  const folder = folderOf(view, configDir);
  if (folder === undefined) {
    // The name of a log never changes, not even to a better one.
    if (view.origin !== undefined) throw REFUSALS.misnamed(dbPath);
    return ownLogIn(KeyFolder.create(configDir));
  }
  if (!folder.exists) return ownLogIn(KeyFolder.createFor(configDir, folder.origin));
  try {
    return ownLogIn(folder);
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    folder.renewKey(suffix);
    return ownLogIn(folder);
  }
}
