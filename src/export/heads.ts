import type { Config } from '../config.ts';
import { parseVerifierKey } from '../integrity/signed-note.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { findAnchors } from '../trust/anchors.ts';
import { KeyFolder } from '../trust/key-folder.ts';
import { headIn, isOrigin, openIfValid, originOfKey } from '../trust/opening.ts';
import { anchorFile, type CarriedAnchor, openAnchor } from '../verify/sources/anchor-file.ts';

/** A signed head as it is stored, with its verifier key in text form. Nothing about it is believed. */
export type StoredHead = Readonly<ReturnType<typeof stored>>;

/** A head that its key has signed. */
export type SignedHead = StoredHead & { readonly root: string };

/** What is signed of a log of `size` rows: heads, the smallest first, and what others may hold of some, the oldest first. */
export type Heads = Awaited<ReturnType<typeof readHeads>>;

/** Where a log is and where its key is: its anchors are looked for there. */
export type LogPlace = Pick<Config, 'besideDb' | 'configDir' | 'workspace'>;

/** What somebody else can look up, and the checkpoint that it is said to hold. */
type LogAnchor = Pick<CarriedAnchor, 'kind' | 'note' | 'bytes'>;

/** What "colibri anchor" left for others to look up. It asks git and openssl, so it is done before a snapshot is taken. */
export async function findLogAnchors(storage: StorageEngine, place: LogPlace): Promise<readonly LogAnchor[]> {
  const { besideDb, workspace } = place;
  const origin = await storage.read(readOrigin);
  if (origin === undefined || !isOrigin(origin)) return [];
  const { anchors } = findAnchors({
    dbPath: besideDb,
    workspace,
    folder: new KeyFolder(place.configDir, origin),
  });
  return anchors.flatMap((anchor) => {
    const { source: kind, note } = anchor;
    if (kind === 'file') return [];
    const bytes = kind === 'git' ? anchor.commit.object : anchor.stamped.token;
    return bytes === undefined ? [] : { kind, note, bytes };
  });
}

/** Everything that is signed, from the same snapshot as the rows. */
export async function readHeads(tx: Reader, found: readonly LogAnchor[]) {
  const read = async (sql: string) => {
    const rows = await tx.all<{ key: string; note: string; size?: number }>(sql);
    return rows.map(({ key, note, size = headIn(note)?.size ?? 0 }) => stored(key, note, size)).sort(bySize);
  };
  const newest = await read('SELECT key, checkpoint AS note FROM log_heads');
  const inLog = await read('SELECT key, size, note FROM checkpoints');
  const kept = [...inLog, ...anchoredHeads(found, [...newest, ...inLog])].sort(bySize);
  const anchors = await carried(found, [...newest, ...kept]);
  return { origin: await readOrigin(tx), size: await countRows(tx), newest, kept, anchors };
}

async function readOrigin(tx: Reader): Promise<string | undefined> {
  return (await tx.get<{ origin: string }>('SELECT origin FROM log'))?.origin;
}

/** The head with its root, if its key has signed it and it is of this log. */
function openHead(head: StoredHead, origin: string | undefined): SignedHead | undefined {
  const opened = openIfValid(head.note, [parseVerifierKey(head.key)]);
  if (opened === undefined || opened.origin !== origin || opened.size === 0) return undefined;
  return { ...head, size: opened.size, root: opened.root };
}

/** The newest head that holds. */
export function newestHead({ newest, origin }: Heads): SignedHead | undefined {
  return newest.map((head) => openHead(head, origin)).findLast((head) => head !== undefined);
}

/**
 * The head that rows are proved against, which must reach as far as they do. The oldest one that is anchored says most;
 * then one by the key that the name of the log belongs to, which anyone who has the name can check; else the newest.
 */
export function requireHead(heads: Heads, through: number): SignedHead {
  const newest = newestHead(heads);
  if (newest === undefined)
    throw new Error(
      'Nothing of this log is signed, so nothing in it can be proved. "colibri doctor" says why.',
    );
  if (newest.size > heads.size)
    throw new Error(
      `The log has ${heads.size} audit rows, but ${newest.size} were signed: its newest rows are gone. "colibri verify" has the details.`,
    );
  if (newest.size < through)
    throw new Error(
      `Audit row ${through} of ${heads.size} is not signed: the newest head covers ${newest.size}. "colibri verify" says why.`,
    );
  const open = (list: readonly StoredHead[]) =>
    list.flatMap((head) => openHead(head, heads.origin) ?? []).filter((head) => head.size >= through);
  const isAnchored = ({ note }: StoredHead) => heads.anchors.some((anchor) => anchor.note === note);
  const [anchored] = open([...heads.kept, ...heads.newest].filter(isAnchored).sort(bySize));
  const own = open(heads.newest).find(({ key }) => originOfKey(key) === heads.origin);
  return anchored ?? own ?? newest;
}

/** Audit rows of the log. */
export async function countRows(tx: Reader): Promise<number> {
  return (await tx.get<{ size: number }>('SELECT count(*) AS size FROM actions'))?.size ?? 0;
}

function stored(key: string, note: string, size: number) {
  const keyId = /^[^+]+\+([0-9a-f]{8})\+/.exec(key)?.[1];
  if (keyId === undefined)
    throw new Error('The database contains a head with an invalid key. "colibri verify" has the details.');
  return { key, keyId, size, note };
}

/** Heads that somebody holds and the log did not keep, as far as a key of the log has signed them. */
function anchoredHeads(found: readonly LogAnchor[], known: readonly StoredHead[]): Iterable<StoredHead> {
  const heads = new Map<string, StoredHead>();
  const keys = new Map(known.map(({ key, keyId }) => [key, keyId]));
  for (const { note } of found)
    for (const [key, keyId] of keys) {
      const size = openIfValid(note, [parseVerifierKey(key)])?.size ?? 0;
      const isKnown = (head: StoredHead) =>
        head.note === note || (head.keyId === keyId && head.size === size);
      if (size > 0 && !known.some(isKnown)) heads.set(`${size}-${keyId}`, { key, keyId, size, note });
    }
  return heads.values();
}

/** The anchors that hold one of these heads. */
async function carried(found: readonly LogAnchor[], heads: readonly StoredHead[]): Promise<CarriedAnchor[]> {
  const byName = new Map<string, CarriedAnchor>();
  for (const { kind, note, bytes } of found) {
    if (!heads.some((head) => head.note === note)) continue;
    const opened = await openAnchor(anchorFile(kind, bytes), bytes, [note]);
    if (typeof opened !== 'string') byName.set(opened.name, opened);
  }
  return [...byName.values()].sort((a, b) => a.size - b.size || (a.name < b.name ? -1 : 1));
}

function bySize(a: StoredHead, b: StoredHead): number {
  return a.size - b.size || (a.keyId < b.keyId ? -1 : 1);
}
