import { join } from 'node:path';
import { type OpenFile, readSmallText, withFile } from './git-files.ts';

const REF_BYTES_MAX = 4_096;
/** A part of packed-refs small enough to be searched from end to end. */
const WINDOW_BYTES = 65_536;
/** An unsorted packed-refs, as Git wrote before 2018, is read whole up to this size. */
const UNSORTED_BYTES_MAX = 8_388_608;
/** Git itself follows no longer a row of references to references. */
const HOPS_MAX = 5;

/** What a file like HEAD says: a commit, or the name of another reference. */
export type RefText = { readonly sha: string } | { readonly ref: string };

export function readRefFile(path: string): RefText | undefined {
  const text = readSmallText(path, REF_BYTES_MAX);
  if (text === undefined) return undefined;
  if (isObjectId(text)) return { sha: text };
  const ref = text.startsWith('ref:') ? text.slice('ref:'.length).trim() : '';
  return isRefName(ref) ? { ref } : undefined;
}

/** The commit a reference stands at; a file of its own goes before the packed ones. */
export function resolveRef(gitFolder: string, ref: string): string | undefined {
  let name = ref;
  for (let hop = 0; hop < HOPS_MAX; hop += 1) {
    const loose = readRefFile(join(gitFolder, name));
    if (loose === undefined) return findPacked(join(gitFolder, 'packed-refs'), name);
    if ('sha' in loose) return loose.sha;
    name = loose.ref;
  }
  return undefined;
}

/** SHA-1 or SHA-256, in hex. */
function isObjectId(text: string): boolean {
  return (text.length === 40 || text.length === 64) && /^[0-9a-f]+$/.test(text);
}

/** Git's rule for names, as far as it keeps a name inside its folder and printable. */
function isRefName(name: string): boolean {
  const parts = name.split('/');
  return (
    parts[0] === 'refs' &&
    parts.length > 2 &&
    !/[\s\p{Cc}~^:?*[\\]/u.test(name) &&
    parts.every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.lock'))
  );
}

function findPacked(path: string, ref: string): string | undefined {
  return withFile(path, (file) => {
    const head = file.read(0, REF_BYTES_MAX).toString('latin1');
    const header = head.startsWith('#') ? head.slice(0, head.indexOf('\n') + 1) : '';
    if (header.includes(' sorted')) return findSorted(file, ref, header.length);
    return file.bytes > UNSORTED_BYTES_MAX ? undefined : findInWindow(file, ref, header.length, file.bytes);
  });
}

/** Halves the file until what is left is small: a repository may have 100,000 branches and a call two milliseconds. */
function findSorted(file: OpenFile, ref: string, begin: number): string | undefined {
  const wanted = Buffer.from(ref);
  let [low, high] = [begin, file.bytes];
  while (high - low > WINDOW_BYTES) {
    const middle = Math.floor((low + high) / 2);
    const line = lineAfter(file, middle);
    if (line === undefined) return undefined;
    if (Buffer.compare(wanted, line.name) < 0) high = middle;
    else low = line.start;
  }
  // The line looked for begins before `high` and may end behind it.
  return findInWindow(file, ref, low, Math.min(file.bytes, high + REF_BYTES_MAX));
}

/** The first whole line after a place that is a reference, not the `^` line that goes with one. */
function lineAfter(file: OpenFile, place: number): { start: number; name: Buffer } | undefined {
  const block = file.read(place, REF_BYTES_MAX);
  let at = block.indexOf('\n') + 1;
  if (block[at] === CARET) at = block.indexOf('\n', at) + 1;
  const end = block.indexOf('\n', at);
  const blank = block.indexOf(' ', at);
  if (at === 0 || end === -1 || blank === -1 || blank > end) return undefined;
  return { start: place + at, name: block.subarray(blank + 1, end) };
}

const CARET = 0x5e;

function findInWindow(file: OpenFile, ref: string, from: number, to: number): string | undefined {
  const window = file.read(from, to - from);
  // No name holds a blank, so this can only be the second column.
  const blank = window.indexOf(` ${ref}\n`);
  if (blank === -1) return undefined;
  const sha = window.toString('latin1', window.lastIndexOf('\n', blank) + 1, blank);
  return isObjectId(sha) ? sha : undefined;
}
