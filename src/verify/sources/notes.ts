import { headIn } from '../../trust/opening.ts';
import type { Finding } from '../finding.ts';
import type { SourceHead, SourceNote } from '../source.ts';
import { type CarriedAnchor, openAnchor } from './anchor-file.ts';
import type { Folder } from './files.ts';
import { CHECKPOINT, KEYS } from './forms.ts';

export function fileFinding(kind: Finding['kind'], name: string, message: string): Finding {
  return { kind, table: name, record: name, message };
}

export function lineFinding(name: string, line: number, what: string): Finding {
  return fileFinding('malformed', name, `Line ${line} of ${name} is not ${what}, or is out of order.`);
}

const NOTE = /^(?:heads\/|checkpoints\/([1-9]\d{0,14})-)([0-9a-f]{8})$/;

/**
 * Reads what is signed: the newest head of each key, the largest last, kept checkpoints, what stands in `checkpoint`, anchors,
 * and the names of all these files. Opening signatures is the verifier's; what the files say of each other is found here.
 */
export async function readNotes(folder: Folder, faults: Finding[]) {
  const keys = await readKeys(folder, faults);
  const unused = new Set(keys.keys());
  const [heads, kept, anchors]: [SourceHead[], SourceNote[], CarriedAnchor[]] = [[], [], []];
  const files: string[] = [];
  const names = [...folder.names].sort();
  for (const name of names) {
    const [, size, id = ''] = NOTE.exec(name) ?? [];
    if (id === '') continue;
    const key = keys.get(id);
    unused.delete(id);
    files.push(name);
    if (key === undefined) {
      faults.push(fileFinding('stray', name, `${name} belongs to a key that ${KEYS} does not list.`));
      continue;
    }
    const note = (await folder.text(name)) ?? '';
    // Named for people in the same words as those of a database.
    if (size === undefined) heads.push({ key, note, where: `the head of key ${id}` });
    else kept.push({ note, where: `the kept checkpoint ${size} of key ${id}`, size: Number(size), key });
  }
  for (const id of unused)
    faults.push(fileFinding('stray', KEYS, `${KEYS} lists key ${id}, which signed nothing here.`));
  const sizeOf = ({ note }: SourceHead) => headIn(note)?.size ?? 0;
  heads.sort((a, b) => sizeOf(a) - sizeOf(b));
  kept.sort((a, b) => (a.size ?? 0) - (b.size ?? 0) || (a.where < b.where ? -1 : 1));
  const notes = [...kept, ...heads].map(({ note }) => note);
  for (const name of names.filter((one) => one.startsWith('anchors/'))) {
    const anchor = await openAnchor(name, await folder.whole(name), notes);
    files.push(name);
    if (typeof anchor === 'string') faults.push(fileFinding('bad-anchor', name, `${name} ${anchor}.`));
    else anchors.push(anchor);
  }
  anchors.sort((a, b) => a.size - b.size);
  if (heads.length > 0) files.push(CHECKPOINT);
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
