import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import * as notes from '../integrity/signed-note.ts';
import { Frontier } from '../integrity/tree.ts';

/**
 * Opens a checkpoint written by a stranger: the only place where one is believed. Throws `FormatError` where no known key
 * signed it, or where what was signed is not a checkpoint of the log that the key is named after.
 */
export function openCheckpoint(note: string, keys: readonly notes.VerifierKey[]): Checkpoint {
  const { text, verified } = notes.openNote(note, keys);
  const checkpoint = parseCheckpoint(text);
  if (!verified.some(({ name }) => name === checkpoint.origin))
    throw new notes.FormatError('the key that signed it is named after another log');
  return checkpoint;
}

/** The same where a checkpoint that does not open counts as none. */
export function openIfValid(note: string, keys: readonly notes.VerifierKey[]): Checkpoint | undefined {
  return ifValid(() => openCheckpoint(note, keys));
}

/** What a note claims. Nobody has checked its signature. */
export function headIn(note: string): Checkpoint | undefined {
  return ifValid(() => parseCheckpoint(note.slice(0, note.lastIndexOf('\n\n') + 1)));
}

/** A key in its text form; undefined where it is not one. */
export function keyIn(text: string | undefined): notes.VerifierKey | undefined {
  return text === undefined ? undefined : ifValid(() => notes.parseVerifierKey(text));
}

/** What people call a key by: its text form is `name+id+key`. Of what is not a key, how it begins. */
export function keyId(key: string): string {
  return key.split('+')[1] ?? key.slice(0, 16);
}

/** What a kept checkpoint is called: its size and its key. */
export function keptName(size: number, key: string): string {
  return `${size} ${keyId(key)}`;
}

/** The tree that a head keeps the roots of, the largest first; undefined where they are not those of this size. */
export function treeIn(frontier: string, size: number): Frontier | undefined {
  return ifValid(() => new Frontier({ size, hashes: frontier.match(/.{1,64}/gs) ?? [] }));
}

function ifValid<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof notes.FormatError || error instanceof RangeError) return undefined;
    throw error;
  }
}

const ORIGIN = /^colibri\/[0-9a-f]{32}$/;

/** The name of the log that this key would have created: the name tells the key. Undefined for a text that is not a key. */
export function originOfKey(verifierKey: string): string | undefined {
  const encoded = notes.decodeBase64(
    verifierKey.slice(verifierKey.indexOf('+', verifierKey.indexOf('+') + 1) + 1),
  );
  return encoded?.length === 33 ? `colibri/${sha256Hex(encoded.subarray(1)).slice(0, 32)}` : undefined;
}

/** Whether a text has the form of an origin. Ask before making a path of one: it comes out of a file. */
export function isOrigin(text: string): boolean {
  return ORIGIN.test(text);
}

/** The git reference that holds checkpoints, of any log. Nobody checks it out: it is not a branch. */
export const ANCHOR_REF = 'refs/colibri/checkpoints';

/** Where git is to keep what the remote `origin` has of it: only then is it known that somebody else has it. */
export const TRACKED_REF = 'refs/remotes/origin/colibri/checkpoints';

/** Gives the checkpoints to a remote, and makes it known that the remote has them. */
export const PUSH = `git push origin ${ANCHOR_REF} && git fetch origin ${ANCHOR_REF}:${TRACKED_REF}`;
