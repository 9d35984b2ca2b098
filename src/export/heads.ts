import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { sha256Hex } from '../integrity/digest.ts';
import { parseVerifierKey } from '../integrity/signed-note.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { type FoundAnchor, findAnchors } from '../trust/anchors.ts';
import { KeyFolder } from '../trust/key-folder.ts';
import { openIfValid } from '../trust/opening.ts';
import { isOrigin, originOfKey } from '../trust/origin.ts';
import { claimedSize } from '../verify/rules/heads.ts';
import { anchorFile, readAnchor } from '../verify/sources/anchor-file.ts';

/** A signed head as it is stored. Nothing about it is believed. */
export interface StoredHead {
  /** The verifier key in its text form, and its id. */
  readonly key: string;
  readonly keyId: string;
  readonly size: number;
  readonly note: string;
}

/** A head that its key has signed. */
export interface SignedHead extends StoredHead {
  readonly root: string;
}

/** What is signed of a log. */
export interface Heads {
  readonly origin: string | undefined;
  /** Audit rows of the log. */
  readonly size: number;
  /** The newest of each key, the smallest first. */
  readonly newest: readonly StoredHead[];
  /** Those that were kept, the smallest first. */
  readonly kept: readonly StoredHead[];
  /** What others may hold of some of them. */
  readonly anchors: readonly HeadAnchor[];
}

/** An anchor as a bundle carries it. */
export interface HeadAnchor {
  readonly head: StoredHead;
  /** The name of its file, which holds its digest. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Where a log lies and where its key does: there its anchors are looked for. */
export interface LogPlace {
  readonly dbPath: string;
  readonly configDir: string;
  /** Whose repository may hold anchors; where the database lies if it is not said. */
  readonly workspace?: string | undefined;
}

/** What "colibri anchor" left of the log. Git and openssl are asked, so this is done before a snapshot is taken. */
export async function findLogAnchors(
  storage: StorageEngine,
  place: LogPlace,
): Promise<readonly FoundAnchor[]> {
  const { dbPath, configDir, workspace = dirname(dbPath) } = place;
  const origin = await storage.read(readOrigin);
  if (origin === undefined || !isOrigin(origin)) return [];
  return findAnchors({ dbPath, workspace, folder: new KeyFolder(configDir, origin) }).anchors;
}

/** Everything that is signed, from the same snapshot as the rows. */
export async function readHeads(tx: Reader, found: readonly FoundAnchor[]): Promise<Heads> {
  const read = async (sql: string) => {
    const rows = await tx.all<{ key: string; note: string; size?: number }>(sql);
    return rows.map(({ key, note, size = claimedSize(note) }) => stored(key, note, size)).sort(bySize);
  };
  const newest = await read('SELECT key, checkpoint AS note FROM log_heads');
  const inLog = await read('SELECT key, size, note FROM checkpoints');
  const kept = [...inLog, ...anchoredHeads(found, [...newest, ...inLog])].sort(bySize);
  const anchors = carried(found, [...newest, ...kept]);
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
 * then one by the key that the name of the log belongs to, which whoever has the name can check; else the newest.
 */
export function requireHead(heads: Heads, through: number): SignedHead {
  const newest = requireNewest(heads, through);
  const open = (list: readonly StoredHead[]) =>
    list.flatMap((head) => openHead(head, heads.origin) ?? []).filter((head) => head.size >= through);
  const [anchored] = open(heads.anchors.map(({ head }) => head));
  const own = open(heads.newest).find(({ key }) => originOfKey(key) === heads.origin);
  return anchored ?? own ?? newest;
}

/** The newest head that holds, which must reach as far as this and not beyond the log. */
export function requireNewest(heads: Heads, through: number): SignedHead {
  const head = newestHead(heads);
  if (head === undefined)
    throw new Error(
      'Nothing of this log is signed, so nothing in it can be proved. "colibri doctor" tells why.',
    );
  if (head.size > heads.size)
    throw new Error(
      `The log has ${heads.size} audit rows, but ${head.size} were signed: its newest rows are gone. "colibri verify" tells more.`,
    );
  if (head.size < through)
    throw new Error(
      `Audit row ${through} of ${heads.size} is not signed: the newest head covers ${head.size}. "colibri verify" tells why.`,
    );
  return head;
}

/** Audit rows of the log. */
export async function countRows(tx: Reader): Promise<number> {
  return (await tx.get<{ size: number }>('SELECT count(*) AS size FROM actions'))?.size ?? 0;
}

function stored(key: string, note: string, size: number): StoredHead {
  const keyId = /^[^+]+\+([0-9a-f]{8})\+/.exec(key)?.[1];
  if (keyId === undefined)
    throw new Error('The database holds a head of a key that is none. "colibri verify" tells more.');
  return { key, keyId, size, note };
}

/** Heads that somebody holds and the log did not keep, as far as a key of the log has signed them. */
function anchoredHeads(found: readonly FoundAnchor[], known: readonly StoredHead[]): StoredHead[] {
  const keys = new Map(known.map((head) => [head.key, head]));
  const heads = new Map<string, StoredHead>();
  for (const { note, source } of found) {
    if (source === 'file' || known.some((head) => head.note === note)) continue;
    for (const { key, keyId } of keys.values()) {
      const size = openIfValid(note, [parseVerifierKey(key)])?.size ?? 0;
      if (size > 0 && !known.some((head) => head.keyId === keyId && head.size === size))
        heads.set(`${size}-${keyId}`, { key, keyId, size, note });
    }
  }
  return [...heads.values()];
}

/** The anchors of these heads that somebody else can look up. A file the owner keeps is his alone. */
function carried(found: readonly FoundAnchor[], heads: readonly StoredHead[]): HeadAnchor[] {
  const byName = new Map<string, HeadAnchor>();
  for (const anchor of found) {
    const head = heads.find(({ note }) => note === anchor.note);
    if (head === undefined || anchor.source === 'file') continue;
    const bytes = anchor.source === 'git' ? anchor.commit.object : readFileSync(anchor.stamped.tokenPath);
    if (readAnchor(anchor.source, bytes, head.note, sha256Hex(head.note)) === undefined) continue;
    const name = anchorFile(anchor.source, sha256Hex(bytes));
    byName.set(name, { head, name, bytes });
  }
  return [...byName.values()].sort((a, b) => a.head.size - b.head.size || (a.name < b.name ? -1 : 1));
}

function bySize(a: StoredHead, b: StoredHead): number {
  return a.size - b.size || (a.keyId < b.keyId ? -1 : 1);
}
