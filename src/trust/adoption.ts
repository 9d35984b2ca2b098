import { Frontier } from '../integrity/tree.ts';
import { changeOne, type StorageEngine, type Transaction } from '../storage/engine.ts';
import { KeyFolder } from './key-folder.ts';
import { slotsIn } from './memory.ts';
import { isOrigin, keyIn, openIfValid, originOfKey } from './opening.ts';
import {
  type HeadRow,
  keptIn,
  type LogPlace,
  type LogView,
  type OwnLog,
  ownLogIn,
  type Peers,
  readView,
  regrow,
} from './own-log.ts';
import { REFUSALS, RefusalError } from './refusal.ts';

/** The owner's decision to go on from what is there, until the commit that carries it out. */
export type Adoption = Readonly<NonNullable<Awaited<ReturnType<typeof prepareAdoption>>>>;

/**
 * Reads the whole log once and makes a key where there is none. Undefined where nothing stands in the way of signing.
 * Gives up as little as it can: the key stays, unless it is lost. `refused` is why the log is not signed now, as far as
 * the checks in constant time tell.
 */
export async function prepareAdoption(storage: StorageEngine, place: LogPlace, refused: string | undefined) {
  const { dbPath, configDir } = place;
  // The memory is read before the log: others may sign further rows at any moment.
  const before = folderOf(await storage.read(readView), configDir);
  const known = before?.verifierKey();
  const slots = before === undefined || known === undefined ? [] : slotsIn(before.signedPath);
  const remembered = slots.map(({ note }) => ({ key: known ?? '', checkpoint: note }));
  const view = await storage.read(readView);
  const folder = folderOf(view, configDir);
  const claims = [...remembered, ...view.heads].flatMap((head) => signedBy(head, folder));
  const rootsAt = new Map(claims.map(({ size }) => [size, '']));
  /** Over every row that is there now. */
  const tree = new Frontier();
  await regrow(storage, tree, view.last.position, dbPath, rootsAt);
  /** The largest signed head that the log no longer extends. */
  const [lost] = claims
    .filter(({ size, root }) => size > 0 && rootsAt.get(size) !== root)
    .sort((a, b) => b.size - a.size);
  const there = await storage.read(keptIn);
  const missing = folder?.kept().find((name) => !there.has(name));
  const refusal =
    (lost && REFUSALS.rewritten(dbPath, lost.size)) ??
    (missing === undefined ? undefined : REFUSALS.lostCheckpoint(dbPath, missing.split(' ', 1).join()));
  const reason = refused ?? refusal?.message;
  if (reason === undefined) return undefined;
  // The name of a log never changes, not even to a better one.
  if (folder === undefined && view.origin !== undefined) throw REFUSALS.misnamed(dbPath);
  const own = ownLogFor(folder, configDir);
  return { reason, lost, own, tree };
}

/** Leaves only heads by keys that created this log or were given up: any other would stand in the way of every commit. */
export async function acceptHeads(
  tx: Transaction,
  view: LogView,
  own: OwnLog,
  peers: Peers = new Map(),
): Promise<OwnLog> {
  // What other machines of a team signed is theirs, as long as the log still has it.
  const isPeers = ({ key, size }: HeadRow) => peers.has(key) && size <= view.last.position;
  const others = view.heads.filter((head) => head.key !== own.signer.verifierKey && !isPeers(head));
  for (const head of others) {
    const isOurs = head.size <= view.last.position && signedBy(head, own.folder).length > 0;
    if (isOurs) own.folder.retire(head.key);
    else changeOne(tx, 'DELETE FROM log_heads WHERE key = ?', head.key);
  }
  return others.length === 0 ? own : ownLogIn(own.folder);
}

type Claim = Pick<HeadRow, 'key' | 'checkpoint'>;

/** What a head says, if a key of this log signed it. The name of a log vouches for the key that created it. */
function signedBy({ key, checkpoint }: Claim, folder: KeyFolder | undefined) {
  const verifier = keyIn(key);
  if (folder === undefined || verifier === undefined) return [];
  if (originOfKey(key) !== folder.origin && !folder.keys().includes(key)) return [];
  const opened = openIfValid(checkpoint, [verifier]);
  return opened?.origin === folder.origin ? [{ size: opened.size, root: opened.root, key }] : [];
}

/** The folder the log belongs to, there or not. Where its name is gone, a head by a key that is here still tells it. */
function folderOf({ origin, heads }: LogView, configDir: string): KeyFolder | undefined {
  const keys = heads.map(({ key }) => key);
  const names = origin === undefined ? keys.map((key) => key.slice(0, key.indexOf('+'))) : [origin];
  const folders = names.filter(isOrigin).map((name) => new KeyFolder(configDir, name));
  return folders.find((folder) => origin !== undefined || keys.some((key) => key === folder.verifierKey()));
}

function ownLogFor(folder: KeyFolder | undefined, configDir: string): OwnLog {
  if (folder?.exists !== true) return ownLogIn(KeyFolder.create(configDir, folder?.origin));
  try {
    return ownLogIn(folder);
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    folder.renewKey();
    return ownLogIn(folder);
  }
}
