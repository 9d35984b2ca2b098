import { FormatError } from '../integrity/c2sp-text.ts';
import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import { NoteError, openNote } from '../integrity/signed-note.ts';

/** A checkpoint under at least one signature that was checked. */
export interface OpenedCheckpoint extends Checkpoint {
  /** The known keys that signed it. */
  readonly signedBy: readonly VerifierKey[];
}

/**
 * Opens a checkpoint written by a stranger: the only place where one is believed. Throws `NoteError` where no known key
 * signed it, and `FormatError` where what was signed is not a checkpoint of the log that the key is named after.
 */
export function openCheckpoint(note: Uint8Array | string, keys: readonly VerifierKey[]): OpenedCheckpoint {
  const { text, verified } = openNote(note, keys);
  const checkpoint = parseCheckpoint(text);
  const signedBy = keys.filter(({ name, id }) =>
    verified.some((line) => line.name === name && line.id === id),
  );
  if (!signedBy.some(({ name }) => name === checkpoint.origin))
    throw new FormatError('the key that signed it is named after another log');
  return { ...checkpoint, signedBy };
}

/** The same where a checkpoint that does not open counts as none. */
export function openIfValid(
  note: Uint8Array | string,
  keys: readonly VerifierKey[],
): OpenedCheckpoint | undefined {
  try {
    return openCheckpoint(note, keys);
  } catch (error) {
    if (error instanceof NoteError || error instanceof FormatError) return undefined;
    throw error;
  }
}
