import { sha256Hex } from './digest.ts';

const SALT = /^[0-9a-f]{32}$/;

/** Whether a text is a salt as Colibri writes it: 16 bytes in lowercase hex. */
export function isSalt(text: string): boolean {
  return SALT.test(text);
}

/**
 * SHA-256 of the 16 bytes of the salt and the UTF-8 of the text. The salt has a fixed length, so that no text can be
 * moved across the boundary between the two; anything else is a bug in a caller that did not ask `isSalt`.
 */
export function saltedDigest(salt: string, text: string): string {
  if (!isSalt(salt)) throw new RangeError('not a salt of 16 bytes in lowercase hex');
  // A character takes at most three bytes. Most texts fit the scratch space, which is twice as fast as a new buffer.
  const bytes =
    SALT_BYTES + 3 * text.length <= scratch.length ? scratch : Buffer.alloc(SALT_BYTES + 3 * text.length);
  bytes.write(salt, 0, 'hex');
  return sha256Hex(bytes.subarray(0, SALT_BYTES + bytes.write(text, SALT_BYTES, 'utf8')));
}

const SALT_BYTES = 16;
const scratch = Buffer.alloc(16_384);
