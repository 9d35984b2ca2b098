import { CHECKPOINT, KEY, olderCheckpoint } from '../../../export/layout.ts';
import { type Checkpoint, parseCheckpoint } from '../../../integrity/checkpoint.ts';
import { parseVerifierKey, type VerifierKey } from '../../../integrity/note-key.ts';
import { openNote } from '../../../integrity/signed-note.ts';
import { exactText } from '../../../integrity/utf8.ts';
import type { SignatureState } from '../protocol.ts';
import { NoEd25519, settled } from '../shims/node-crypto.ts';
import type { Files } from './files.ts';
import type { Tally } from './tally.ts';

/** A checkpoint of the bundle that names this log. Only a valid signature makes it worth something. */
export interface Head extends Checkpoint {
  readonly name: string;
  readonly note: string;
  readonly signature: Exclude<SignatureState, 'invalid'>;
}

export interface Heads {
  readonly keyText: string | undefined;
  readonly key: VerifierKey | undefined;
  /** The smallest first. */
  readonly all: readonly Head[];
  /** The bundle's newest. */
  readonly own: Head | undefined;
}

export async function readHeads(files: Files, tally: Tally): Promise<Heads> {
  const { keyText, key } = readKey(files, tally);
  const all: Head[] = [];
  if (key !== undefined) {
    const older = [...files.keys()].filter((name) => name.startsWith('checkpoints/'));
    for (const name of [CHECKPOINT, ...older]) {
      const head = await openOne(name, files.get(name), key, tally);
      if (head === undefined) continue;
      if (name !== CHECKPOINT && name !== olderCheckpoint(head.size))
        say(tally, name, 'is not of as many rows as its name says');
      all.push(head);
    }
    const valid = all.filter(({ signature }) => signature === 'valid').length;
    tally.looked('signature', valid, 'checkpoint');
    if (valid < all.length)
      tally.skip('signature', 'this browser has no Ed25519, so no signature was checked');
  }
  all.sort((a, b) => a.size - b.size);
  return { keyText, key, all, own: all.find(({ name }) => name === CHECKPOINT) };
}

function readKey(files: Files, tally: Tally): Pick<Heads, 'keyText' | 'key'> {
  const text = exactText(files.get(KEY) ?? new Uint8Array());
  if (!text) {
    say(tally, KEY, 'is not there, so no signature can be checked');
    return { keyText: undefined, key: undefined };
  }
  if (!/^[^\n]+\n$/.test(text)) say(tally, KEY, 'is not one line');
  try {
    return { keyText: text.trim(), key: parseVerifierKey(text.trim()) };
  } catch (error) {
    say(tally, KEY, `cannot be used: ${reason(error)}`);
    return { keyText: undefined, key: undefined };
  }
}

async function openOne(
  name: string,
  bytes: Uint8Array | undefined,
  key: VerifierKey,
  tally: Tally,
): Promise<Head | undefined> {
  if (bytes === undefined) {
    say(tally, name, 'is not there: nothing in the bundle is signed', 'missing');
    return undefined;
  }
  const note = exactText(bytes) ?? '';
  try {
    const opened = await openHead(note, key);
    if (opened.origin === key.name && opened.size > 0) return { ...opened, name, note };
    say(tally, name, `is of the log ${opened.origin}, or of no rows at all`);
  } catch (error) {
    say(tally, name, `is not to be believed: ${reason(error)}`);
  }
  return undefined;
}

/** Opens a signed checkpoint; where the browser cannot check signatures, says so in the answer. */
export async function openHead(
  note: string,
  key: VerifierKey,
): Promise<Checkpoint & { readonly signature: Head['signature'] }> {
  try {
    const { text } = await settled(() => openNote(note, [key]));
    return { ...parseCheckpoint(text), signature: 'valid' };
  } catch (error) {
    if (!(error instanceof NoEd25519)) throw error;
    return { ...parseCheckpoint(note.slice(0, note.lastIndexOf('\n\n') + 1)), signature: 'unchecked' };
  }
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function say(tally: Tally, name: string, what: string, kind: 'altered' | 'missing' = 'altered'): void {
  tally.say('signature', { kind, table: name, record: name, message: `${name} ${what}.` });
}
