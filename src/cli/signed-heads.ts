import type { Config } from '../config.ts';
import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { openNote } from '../integrity/signed-note.ts';
import { AnchorMemory } from '../log/anchors.ts';
import { type FoundAnchor, findAnchors } from '../log/anchors-found.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import { LogFolder, originOf } from '../log/log-folder.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { keyring } from './evidence.ts';

/** A head of the log whose signature was checked. */
export interface SignedHead extends Checkpoint {
  readonly note: string;
  /** Where it was found, for people. */
  readonly where: string;
  /** By a key that the owner gave up: the log need not go on from it. */
  readonly isRetired: boolean;
}

export interface AnchoredHead extends SignedHead {
  readonly anchor: FoundAnchor;
}

/** What is signed of a log and found on this machine, the smallest first. */
export interface SignedHeads {
  /** False where no key of the log is known, so that no signature could be checked. */
  readonly knowsKey: boolean;
  readonly checkpoints: readonly SignedHead[];
  /** A time stamp among them is not an anchor before its authority was checked. */
  readonly anchors: readonly AnchoredHead[];
  /** Certificates of time-stamping authorities that were named. */
  readonly authorities: readonly string[];
  /** What could not be looked at. */
  readonly remarks: readonly string[];
}

/** Reads every head and leaves out what no key of the log signed: that a file is forged is for `colibri verify` to name. */
export async function readSignedHeads(config: Config, storage: StorageEngine): Promise<SignedHeads> {
  const first = await storage.read((tx) =>
    tx.get<{ content_hash: string }>('SELECT content_hash FROM actions WHERE position = 1'),
  );
  const origin = first === undefined ? undefined : originOf(first.content_hash);
  const folder = origin === undefined ? undefined : new LogFolder(config.configDir, origin);
  const { keys } = keyring(folder, undefined);
  const { dbPath, workspace } = config;
  const found = findAnchors({ dbPath, workspace, folder });

  function open(note: string, where: string): SignedHead[] {
    try {
      const { text, verified } = openNote(note, [...keys.current, ...keys.retired]);
      const head = parseCheckpoint(text);
      const isRetired = !verified.some(({ id }) => keys.current.some((key) => key.id === id));
      return head.origin === origin && head.size > 0 ? [{ ...head, note, where, isRetired }] : [];
    } catch {
      return [];
    }
  }

  const files = new CheckpointFiles(dbPath);
  const notes: readonly (readonly [where: string, note: string | undefined])[] = [
    ...files.kept().map(({ size, note }) => [`${files.folder}/${size}`, note] as const),
    [files.newestPath, files.newest()],
    [`${folder?.path}/last-signed`, folder?.lastSigned()],
  ];
  return {
    knowsKey: keys.current.length > 0,
    checkpoints: notes.flatMap(([where, note]) => (note === undefined ? [] : open(note, where))).sort(bySize),
    anchors: found.anchors
      .flatMap((anchor) => open(anchor.note, anchor.where).map((head) => ({ ...head, anchor })))
      .sort(bySize),
    authorities: folder === undefined ? [] : new AnchorMemory(folder.path).authorities(),
    remarks: found.remarks,
  };
}

function bySize(a: Checkpoint, b: Checkpoint): number {
  return a.size - b.size;
}
