import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import { openNote } from '../integrity/signed-note.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import { LogFolder, originOf } from '../log/log-folder.ts';
import type { Reader } from '../storage/engine.ts';

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
}

/** Where a log lies and where its key does. */
export interface LogPlace {
  readonly dbPath: string;
  readonly configDir: string;
}

/**
 * Reads the checkpoints before the caller takes its snapshot of the rows: then one that speaks of more rows than there
 * are is no race with the server but a log that was cut.
 */
export async function readHeads(tx: Reader, { dbPath, configDir }: LogPlace): Promise<Heads> {
  const first = await tx.get<{ content_hash: string }>('SELECT content_hash FROM actions WHERE position = 1');
  if (first === undefined) return { origin: undefined, key: undefined, checkpoints: [] };
  const origin = originOf(first.content_hash);
  const folder = new LogFolder(configDir, origin);
  const key = folder.verifierKey();
  if (key === undefined) return { origin, key, checkpoints: [] };
  const files = new CheckpointFiles(dbPath);
  const notes = [...files.kept().map(({ note }) => note), files.newest(), folder.lastSigned()];
  const verifier = parseVerifierKey(key);
  const bySize = new Map<number, SignedHead>();
  for (const note of notes) {
    const head = note === undefined ? undefined : openHead(note, verifier, origin);
    // The log folder begins with a signed head of nothing, which says nothing.
    if (head !== undefined && head.size > 0) bySize.set(head.size, head);
  }
  return { origin, key, checkpoints: [...bySize.values()].sort((a, b) => a.size - b.size) };
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
