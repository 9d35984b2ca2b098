/// <reference lib="dom" />
import {
  type AnchorKind,
  type AnchorText,
  commitAlgorithm,
  commitPreimage,
  readAnchor,
  readAnchorName,
} from '../../../export/anchor-file.ts';
import { sha256Hex } from '../../../integrity/digest.ts';
import type { Files } from './files.ts';
import type { Head } from './heads.ts';
import type { Tally } from './tally.ts';

/** An anchor that the bundle names. A page without network cannot look it up, so it is never more than named. */
export interface NamedAnchor extends AnchorText {
  readonly kind: AnchorKind;
  readonly head: Head;
  /** Of a commit its id; nothing where the browser cannot compute it. */
  readonly commit: string;
}

/** Checks that each anchor is whole and speaks of a checkpoint of the bundle. */
export async function readAnchors(
  files: Files,
  heads: readonly Head[],
  tally: Tally,
): Promise<NamedAnchor[]> {
  const names = [...files.keys()].filter((name) => name.startsWith('anchors/')).sort();
  const anchors: NamedAnchor[] = [];
  for (const name of names) {
    const anchor = await open(name, files.get(name) ?? new Uint8Array(), heads);
    if (typeof anchor === 'object') anchors.push(anchor);
    else tally.say('anchors', { kind: 'altered', table: name, record: name, message: `${name} ${anchor}.` });
  }
  if (names.length === 0) tally.skip('anchors', 'the bundle carries none');
  else tally.looked('anchors', names.length, 'anchor');
  return anchors.sort((a, b) => a.head.size - b.head.size);
}

/** The anchor, or what is wrong with it. */
async function open(name: string, bytes: Uint8Array, heads: readonly Head[]): Promise<NamedAnchor | string> {
  const kind = readAnchorName(name, sha256Hex(bytes));
  if (kind === undefined) return 'is not what its name says it must be';
  for (const head of heads) {
    const text = readAnchor(kind, bytes, head.note, sha256Hex(head.note));
    if (text !== undefined)
      return { ...text, kind, head, commit: kind === 'git' ? await commitId(bytes) : '' };
  }
  return 'speaks of no checkpoint that is there';
}

async function commitId(bytes: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined) return '';
  const digest = new Uint8Array(await subtle.digest(commitAlgorithm(bytes), commitPreimage(bytes)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
