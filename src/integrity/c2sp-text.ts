import { isHash } from './digest.ts';

/** A text that is not what its format demands. The message says which part. */
export class FormatError extends Error {
  override readonly name = 'FormatError';
}

/** A part of a text that was understood, or a `FormatError` that says which was not. */
export function need<T>(part: T | undefined, message: string): T {
  if (part === undefined) throw new FormatError(message);
  return part;
}

/** The bytes of standard base64, or nothing unless the text is the only spelling of those bytes. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node skips what it does not understand; encoding again shows whether it skipped anything.
  return bytes.toString('base64') === text ? bytes : undefined;
}

export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

/** The base64 of a hash that Colibri holds as hex. */
export function hashToBase64(hash: string): string {
  if (!isHash(hash)) throw new FormatError('not a SHA-256 in lowercase hex');
  return Buffer.from(hash, 'hex').toString('base64');
}

/** The hex of a hash that a text holds as base64, or nothing unless it is exactly 32 bytes. */
export function hashFromBase64(text: string): string | undefined {
  const bytes = decodeBase64(text);
  return bytes?.length === 32 ? bytes.toString('hex') : undefined;
}

const DECIMAL = /^(?:0|[1-9][0-9]*)$/;

/** A count in decimal without leading zeros, or nothing if it is not one or not exact as a number. */
export function parseDecimal(text: string): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

export function formatDecimal(value: number): string {
  if (!Number.isSafeInteger(value) || value < 0) throw new FormatError(`${value} is not a count`);
  return String(value);
}

/** Whether a text may be part of a note: well-formed, and no control character but the newline. */
export function isNoteText(text: string): boolean {
  if (!text.isWellFormed()) return false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x20 && code !== 0x0a) return false;
  }
  return true;
}
