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

/** Whether a text is a SHA-256 as Colibri writes it: 64 characters of lowercase hex. */
export function isHash(text: string): boolean {
  return HASH.test(text);
}
