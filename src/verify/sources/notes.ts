import { sha256Hex } from '../../integrity/digest.ts';
import type { Finding } from '../finding.ts';
import { claimedSize } from '../rules/heads.ts';
import type { SourceHead, SourceNote } from '../source.ts';
import { type CarriedAnchor, readAnchor, readAnchorName } from './anchor-file.ts';
import type { Folder } from './files.ts';
import { CHECKPOINT, KEYS } from './forms.ts';

/** What a bundle or certificate holds that is signed, before anybody has opened it. */
export interface Notes {
  /** The newest head of each key, the largest last. */
  readonly heads: readonly SourceHead[];
  readonly kept: readonly SourceNote[];
  readonly anchors: readonly CarriedAnchor[];
  /** What stands in the file of the newest head. */
  readonly checkpoint: string | undefined;
  /** The files that these were in. */
  readonly files: readonly string[];
}

export function fileFinding(kind: Finding['kind'], name: string, message: string): Finding {
  return { kind, table: name, record: name, message };
}

const NOTE = /^(?:heads\/|checkpoints\/([1-9]\d{0,14})-)([0-9a-f]{8})$/;

/** Reads heads, kept checkpoints, keys and anchors. Opening signatures is the verifier's, what the files say of each other is found here. */
export async function readNotes(folder: Folder, faults: Finding[]): Promise<Notes> {
  const keys = await readKeys(folder, faults);
  const unused = new Set(keys.keys());
  const [heads, kept, anchors]: [SourceHead[], SourceNote[], CarriedAnchor[]] = [[], [], []];
  const files: string[] = [];
  for (const name of [...folder.names].sort()) {
    const [, size, id = ''] = NOTE.exec(name) ?? [];
    if (id === '') continue;
    const key = keys.get(id);
    unused.delete(id);
    files.push(name);
    if (key === undefined) {
      faults.push(fileFinding('stray', name, `${name} is of a key that ${KEYS} does not list.`));
      continue;
    }
    const note = (await folder.text(name)) ?? '';
    // Named for people in the same words as those of a database.
    if (size === undefined) heads.push({ key, checkpoint: note, where: `the head of key ${id}` });
    else kept.push({ note, where: `the kept checkpoint ${size} of key ${id}`, size: Number(size), key });
  }
  for (const id of unused)
    faults.push(fileFinding('stray', KEYS, `${KEYS} lists key ${id}, which signed nothing here.`));
  heads.sort((a, b) => claimedSize(a.checkpoint) - claimedSize(b.checkpoint));
  kept.sort((a, b) => (a.size ?? 0) - (b.size ?? 0) || (a.where < b.where ? -1 : 1));
  const notes = [...kept.map(({ note }) => note), ...heads.map(({ checkpoint }) => checkpoint)];
  for (const name of [...folder.names].filter((one) => one.startsWith('anchors/')).sort()) {
    const anchor = openAnchor(name, await folder.whole(name), notes);
    files.push(name);
    if ('bytes' in anchor) anchors.push(anchor);
    else faults.push(anchor);
  }
  anchors.sort((a, b) => a.size - b.size);
  return { heads, kept, anchors, checkpoint: await folder.text(CHECKPOINT), files };
}

/** The keys by their ids. Whether they are keys at all, whoever opens something with them finds out. */
async function readKeys(folder: Folder, faults: Finding[]): Promise<ReadonlyMap<string, string>> {
  const keys = new Map<string, string>();
  const lines = ((await folder.text(KEYS)) ?? '').split('\n');
  if (lines.pop() !== '')
    faults.push(fileFinding('malformed', KEYS, `The last line of ${KEYS} does not end.`));
  lines.forEach((line, i) => {
    const id = /^[^+]{1,200}\+([0-9a-f]{8})\+[\w+/=]{1,200}$/.exec(line)?.[1];
    const message = `Line ${i + 1} of ${KEYS} is not a key, or repeats one.`;
    if (id === undefined || keys.has(id)) faults.push(fileFinding('malformed', KEYS, message));
    else keys.set(id, line);
  });
  return keys;
}

/** Each anchor is what its name says and speaks of a checkpoint that is there. More cannot be checked of it alone. */
function openAnchor(name: string, bytes: Uint8Array, notes: readonly string[]): CarriedAnchor | Finding {
  const kind = readAnchorName(name, sha256Hex(bytes));
  if (kind === undefined)
    return fileFinding('bad-anchor', name, `${name} is not what its name says it must be.`);
  for (const note of notes) {
    const said = readAnchor(kind, bytes, note, sha256Hex(note));
    if (said !== undefined) return { ...said, kind, name, bytes, note, size: claimedSize(note) };
  }
  return fileFinding('bad-anchor', name, `${name} does not name a checkpoint that is there.`);
}
