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
    if (encoding === 'utf8') return new TextDecoder('utf-8', { ignoreBOM: true }).decode(part);
    const text = btoa(Array.from(part, (byte) => String.fromCharCode(byte)).join(''));
    return encoding === 'base64' ? text : text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  }
}

// Callers check first that hex is lowercase digits.
function digit(code: number): number {
  return code < 0x3a ? code - 0x30 : code - 0x57;
}

function from(data: string | ArrayLike<number>, encoding = 'utf8'): Bytes {
  if (typeof data !== 'string') return new Bytes(data);
  if (encoding === 'utf8') return new Bytes(new TextEncoder().encode(data));
  if (encoding !== 'hex') return fromBase64(data);
  const bytes = new Bytes(data.length >>> 1);
  bytes.write(data, 0, 'hex');
  return bytes;
}

/** Nothing for a text that is not base64: the caller encodes again and sees the difference. */
function fromBase64(text: string): Bytes {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = new Bytes(binary.length);
    for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch {
    return new Bytes(0);
  }
}

export const Buffer = {
  from,
  alloc: (size: number, fill = 0): Bytes => new Bytes(size).fill(fill),
  of: (...bytes: number[]): Bytes => new Bytes(bytes),
  byteLength: (data: string): number => new TextEncoder().encode(data).length,
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
