/**
 * As much of Node's Buffer as the verifier uses. The build puts it in its place, so that the page runs the very code that
 * the command line runs, and that the published test vectors are run against.
 */
class Bytes extends Uint8Array {
  write(text: string, offset = 0, encoding = 'utf8'): number {
    if (encoding !== 'hex') return new TextEncoder().encodeInto(text, this.subarray(offset)).written;
    const length = text.length >>> 1;
    for (let i = 0; i < length; i += 1)
      this[offset + i] = (digit(text.charCodeAt(2 * i)) << 4) | digit(text.charCodeAt(2 * i + 1));
    return length;
  }

  override toString(encoding = 'utf8', start = 0, end = this.length): string {
    const part = this.subarray(start, end);
    if (encoding === 'hex') return Array.from(part, (byte) => byte.toString(16).padStart(2, '0')).join('');
    if (encoding === 'base64' || encoding === 'base64url') return toBase64(part, encoding);
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(part);
  }
}

// Whoever writes hex here has checked that it is lowercase digits.
function digit(code: number): number {
  return code < 0x3a ? code - 0x30 : code - 0x57;
}

function toBase64(bytes: Uint8Array, encoding: string): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const text = btoa(binary);
  return encoding === 'base64' ? text : text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function from(data: string | ArrayLike<number>, encoding = 'utf8'): Bytes {
  if (typeof data !== 'string') return filled(data);
  if (encoding === 'hex') {
    const bytes = new Bytes(data.length >>> 1);
    bytes.write(data, 0, 'hex');
    return bytes;
  }
  if (encoding === 'base64') return fromBase64(data);
  return filled(new TextEncoder().encode(data));
}

/** Nothing for a text that is no base64: the caller encodes again and sees the difference. */
function fromBase64(text: string): Bytes {
  try {
    return filled(Array.from(atob(text), (char) => char.charCodeAt(0)));
  } catch {
    return new Bytes(0);
  }
}

function filled(data: ArrayLike<number>): Bytes {
  const bytes = new Bytes(data.length);
  bytes.set(data);
  return bytes;
}

export const Buffer = {
  from,
  alloc: (size: number, fill = 0): Bytes => new Bytes(size).fill(fill),
  of: (...bytes: number[]): Bytes => filled(bytes),
  byteLength: (data: string | Uint8Array): number =>
    typeof data === 'string' ? new TextEncoder().encode(data).length : data.length,
  concat(parts: readonly Uint8Array[]): Bytes {
    const whole = new Bytes(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  },
};
