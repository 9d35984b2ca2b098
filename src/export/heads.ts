import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import { openNote } from '../integrity/signed-note.ts';
import { type FoundAnchor, findAnchors } from '../log/anchors-found.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import { LogFolder, originOf } from '../log/log-folder.ts';
import type { Reader } from '../storage/engine.ts';
import { anchorFile, readAnchor } from './anchor-file.ts';

/** A signed head that was opened with the log's own key. */
export interface SignedHead extends Checkpoint {
  readonly note: string;
}

/** What is signed of a log, as it lies on this machine. */
export interface Heads {
  readonly origin: string | undefined;
  readonly key: string | undefined;
  /** The smallest first; the newest is the last. */
  readonly checkpoints: readonly SignedHead[];
  /** What others may hold of some of them. */
  readonly anchors: readonly HeadAnchor[];
}

/** An anchor as a bundle carries it. */
export interface HeadAnchor {
  readonly head: SignedHead;
  /** The name of its file, which holds its digest. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Where a log lies and where its key does. */
export interface LogPlace {
  readonly dbPath: string;
  readonly configDir: string;
  /** Whose repository may hold anchors; where the database lies if it is not said. */
  readonly workspace?: string | undefined;
}

/**
 * Reads the checkpoints before the caller takes its snapshot of the rows: then one that speaks of more rows than there
 * are is no race with the server but a log that was cut.
 */
export async function readHeads(tx: Reader, place: LogPlace): Promise<Heads> {
  const { dbPath, configDir, workspace = dirname(dbPath) } = place;
  const first = await tx.get<{ content_hash: string }>('SELECT content_hash FROM actions WHERE position = 1');
  if (first === undefined) return { origin: undefined, key: undefined, checkpoints: [], anchors: [] };
  const origin = originOf(first.content_hash);
  const folder = new LogFolder(configDir, origin);
  const key = folder.verifierKey();
  if (key === undefined) return { origin, key, checkpoints: [], anchors: [] };
  const files = new CheckpointFiles(dbPath);
  const found = findAnchors({ dbPath, workspace, folder }).anchors;
  const anchoring = found.map(({ note }) => note);
  const notes = [...anchoring, ...files.kept().map(({ note }) => note), files.newest(), folder.lastSigned()];
  const verifier = parseVerifierKey(key);
  const bySize = new Map<number, SignedHead>();
  for (const note of notes) {
    const head = note === undefined ? undefined : openHead(note, verifier, origin);
    // The log folder begins with a signed head of nothing, which says nothing.
    if (head !== undefined && head.size > 0) bySize.set(head.size, head);
  }
  const checkpoints = [...bySize.values()].sort((a, b) => a.size - b.size);
  return { origin, key, checkpoints, anchors: carried(found, checkpoints) };
}

/** The anchors of these heads that somebody else can look up. A file the owner keeps is his alone. */
function carried(found: readonly FoundAnchor[], heads: readonly SignedHead[]): HeadAnchor[] {
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

/** The head a note signs, or undefined for one that is not this log's. */
function openHead(note: string, key: VerifierKey, origin: string): SignedHead | undefined {
  try {
    const head = parseCheckpoint(openNote(note, [key]).text);
    return head.origin === origin ? { ...head, note } : undefined;
  } catch {
    // A damaged file beside the database is for `colibri verify` to name; it must not keep the good ones back.
    return undefined;
  }
}
