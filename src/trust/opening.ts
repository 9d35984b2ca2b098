import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { FormatError, openNote, parseVerifierKey, type VerifierKey } from '../integrity/signed-note.ts';
import { Frontier } from '../integrity/tree.ts';

/**
 * Opens a checkpoint written by a stranger: the only place where one is believed. Throws `FormatError` where no known key
 * signed it, or where what was signed is not a checkpoint of the log that the key is named after.
 */
export function openCheckpoint(note: string, keys: readonly VerifierKey[]): Checkpoint {
  const { text, verified } = openNote(note, keys);
  const checkpoint = parseCheckpoint(text);
  if (!verified.some(({ name }) => name === checkpoint.origin))
    throw new FormatError('the key that signed it is named after another log');
  return checkpoint;
}

/** The same where a checkpoint that does not open counts as none. */
export function openIfValid(note: string, keys: readonly VerifierKey[]): Checkpoint | undefined {
  return ifValid(() => openCheckpoint(note, keys));
}

/** What a note claims. Nobody has checked its signature. */
export function headIn(note: string): Checkpoint | undefined {
  return ifValid(() => parseCheckpoint(note.slice(0, note.lastIndexOf('\n\n') + 1)));
}

/** A key in its text form; undefined where it is not one. */
export function keyIn(text: string | undefined): VerifierKey | undefined {
  return text === undefined ? undefined : ifValid(() => parseVerifierKey(text));
}

/** The tree that a head keeps the roots of, the largest first; undefined where they are not those of this size. */
export function treeIn(frontier: string, size: number): Frontier | undefined {
  return ifValid(() => new Frontier({ size, hashes: frontier.match(/.{1,64}/gs) ?? [] }));
}

function ifValid<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError || error instanceof RangeError) return undefined;
    throw error;
  }
}
