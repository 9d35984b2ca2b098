import type { Finding } from '../finding.ts';
import type { SourceHead, SourceNote } from '../source.ts';
import { type CarriedAnchor, claimedSize, fileFinding, headPlace, keptPlace, openAnchor } from './carried.ts';
import type { Folder } from './folder.ts';
import * as layout from './layout.ts';

/** What a bundle holds that is signed, before anybody has opened it. */
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

/** Reads heads, kept checkpoints, keys and anchors. Opening signatures is the verifier's, what the files say of each other is found here. */
export async function readNotes(folder: Folder, faults: Finding[]): Promise<Notes> {
  const keys = await readKeys(folder, faults);
  const used = new Set<string>();
  const keyOf = (id: string, name: string): string | undefined => {
    const key = keys.get(id);
    if (key === undefined)
      faults.push(fileFinding('stray', name, `${name} is of a key that ${layout.KEYS} does not list.`));
    else used.add(id);
    return key;
  };
  const files: string[] = [];
  const heads: SourceHead[] = [];
  for (const name of folder.in('heads')) {
    const id = /^heads\/([0-9a-f]{8})$/.exec(name)?.[1];
    const key = id === undefined ? undefined : keyOf(id, name);
    if (key === undefined) continue;
    heads.push({ key, checkpoint: (await folder.text(name)) ?? '', where: headPlace(key) });
    files.push(name);
  }
  const kept: SourceNote[] = [];
  for (const name of folder.in('checkpoints')) {
    const [, size, id] = /^checkpoints\/([1-9]\d{0,14})-([0-9a-f]{8})$/.exec(name) ?? [];
    const key = id === undefined ? undefined : keyOf(id, name);
    if (key === undefined) continue;
    const note = (await folder.text(name)) ?? '';
    kept.push({ note, where: keptPlace(Number(size), key), size: Number(size), key });
    files.push(name);
  }
  for (const id of keys.keys())
    if (!used.has(id))
      faults.push(
        fileFinding('stray', layout.KEYS, `${layout.KEYS} lists key ${id}, which signed nothing here.`),
      );
  heads.sort((a, b) => claimedSize(a.checkpoint) - claimedSize(b.checkpoint));
  kept.sort((a, b) => (a.size ?? 0) - (b.size ?? 0) || (a.where < b.where ? -1 : 1));
  const checkpoint = await readNewest(folder, heads, faults);
  return { heads, kept, anchors: await readAnchors(folder, heads, kept, faults), checkpoint, files };
}

/** The keys by their ids. Whether they are keys at all, whoever opens something with them finds out. */
async function readKeys(folder: Folder, faults: Finding[]): Promise<ReadonlyMap<string, string>> {
  const keys = new Map<string, string>();
  const text = (await folder.text(layout.KEYS)) ?? '';
  const lines = text === '' ? [] : text.split('\n');
  if (lines.length > 0 && lines.pop() !== '')
    faults.push(fileFinding('malformed', layout.KEYS, `The last line of ${layout.KEYS} does not end.`));
  lines.forEach((line, i) => {
    const id = /^[^+]{1,200}\+([0-9a-f]{8})\+[\w+/=]{1,200}$/.exec(line)?.[1];
    if (id === undefined || keys.has(id))
      faults.push(
        fileFinding(
          'malformed',
          layout.KEYS,
          `Line ${i + 1} of ${layout.KEYS} is no key, or one that is there twice.`,
        ),
      );
    else keys.set(id, line);
  });
  return keys;
}

/** `checkpoint` is the newest of the heads once more, under a name that is easy to find. */
async function readNewest(
  folder: Folder,
  heads: readonly SourceHead[],
  faults: Finding[],
): Promise<string | undefined> {
  const name = layout.CHECKPOINT;
  const newest = claimedSize(heads.at(-1)?.checkpoint ?? '');
  const note = await folder.text(name);
  const isOne = heads.some(({ checkpoint }) => checkpoint === note && claimedSize(checkpoint) === newest);
  if (heads.length === 0 ? folder.names.has(name) : !isOne)
    faults.push(fileFinding('altered', name, `${name} is not the newest of the heads that are there.`));
  return note;
}

/** Each anchor is what its name says and speaks of a checkpoint of the bundle. */
async function readAnchors(
  folder: Folder,
  heads: readonly SourceHead[],
  kept: readonly SourceNote[],
  faults: Finding[],
): Promise<CarriedAnchor[]> {
  const notes = [...kept.map(({ note }) => note), ...heads.map(({ checkpoint }) => checkpoint)];
  const anchors: CarriedAnchor[] = [];
  for (const name of folder.in('anchors')) {
    const anchor = openAnchor(name, await folder.whole(name), notes);
    if ('bytes' in anchor) anchors.push(anchor);
    else faults.push(anchor);
  }
  return anchors.sort((a, b) => a.size - b.size);
}
