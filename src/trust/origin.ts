import { sha256Hex } from '../integrity/digest.ts';
import { decodeBase64 } from '../integrity/signed-note.ts';

const ORIGIN = /^colibri\/[0-9a-f]{32}$/;

/** The name of the log that this key would have created: the name tells the key. Undefined for a text that is no key. */
export function originOfKey(verifierKey: string): string | undefined {
  const encoded = decodeBase64(verifierKey.slice(verifierKey.indexOf('+', verifierKey.indexOf('+') + 1) + 1));
  return encoded?.length === 33 ? `colibri/${sha256Hex(encoded.subarray(1)).slice(0, 32)}` : undefined;
}

/** Whether a text has the form of an origin. Ask before making a path of one: it comes out of a file. */
export function isOrigin(text: string): boolean {
  return ORIGIN.test(text);
}

/** The git reference that holds checkpoints, of any log. Nobody checks it out: it is not a branch. */
export const ANCHOR_REF = 'refs/colibri/checkpoints';
