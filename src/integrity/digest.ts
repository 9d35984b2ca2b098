import * as crypto from 'node:crypto';

/** The SHA-256 of bytes, or of a text as UTF-8, in lowercase hex. */
export const sha256Hex: (data: string | Uint8Array) => string =
  // Node before 20.12 has no one-shot hash. A hex string comes back twice as fast as a Buffer does.
  typeof crypto.hash === 'function'
    ? (data) => crypto.hash('sha256', data, 'hex')
    : (data) => crypto.createHash('sha256').update(data).digest('hex');

/** A SHA-256 over bytes that come in pieces. `hex` ends it. */
export function startSha256() {
  const hash = crypto.createHash('sha256');
  return { update: (bytes: Uint8Array) => void hash.update(bytes), hex: () => hash.digest('hex') };
}

const HASH = /^[0-9a-f]{64}$/;
export const HASH_CHARS = 64;

/** Whether a text is a SHA-256 as Colibri writes it: 64 characters of lowercase hex. */
export function isHash(text: string): boolean {
  return HASH.test(text);
}

const SALT = /^[0-9a-f]{32}$/;

/** Whether a text is a salt as Colibri writes it: 16 bytes in lowercase hex. */
export function isSalt(text: string): boolean {
  return SALT.test(text);
}

/**
 * SHA-256 of the 16 bytes of the salt and the UTF-8 of the text; undefined for what is not a salt. The salt has a fixed
 * length, so that no text can be moved across the boundary between the two.
 */
export function digestUnder(salt: string, text: string): string | undefined {
  return isSalt(salt) ? saltedDigest(salt, text) : undefined;
}

/** The same for a salt of our own: a closer look at its form would cost a third of the digest. */
export function saltedDigest(salt: string, text: string): string {
  // A character takes at most three bytes. Most texts fit the scratch space, which is twice as fast as a new buffer.
  const bytes =
    SALT_BYTES + 3 * text.length <= scratch.length ? scratch : Buffer.alloc(SALT_BYTES + 3 * text.length);
  if (salt.length !== 2 * SALT_BYTES || bytes.write(salt, 0, 'hex') !== SALT_BYTES)
    throw new RangeError('not a salt of 16 bytes in lowercase hex');
  return sha256Hex(bytes.subarray(0, SALT_BYTES + bytes.write(text, SALT_BYTES, 'utf8')));
}

const SALT_BYTES = 16;
const scratch = Buffer.alloc(16_384);

// A byte order mark is kept as the character it is: dropping it would give two inputs one text.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of strangers' bytes, or of a string, or nothing where no exact UTF-8 exists for it. */
export function exactText(input: Uint8Array | string): string | undefined {
  if (typeof input === 'string') return input.isWellFormed() ? input : undefined;
  try {
    return decoder.decode(input);
  } catch {
    return undefined;
  }
}
