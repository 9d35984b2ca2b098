import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sha256Hex } from '../../integrity/digest.ts';
import { isUsablePoint } from '../../integrity/ed25519-point.ts';
import {
  FormatError,
  formatVerifierKey,
  generateNoteKey,
  isKeyName,
  noteSigner,
  parseVerifierKey,
} from '../../integrity/signed-note.ts';
import { readVectors } from './test-key.ts';

const NAME = 'example.com/log';
const VECTORS = readVectors('signed-note.json');
const FIXED: string = VECTORS.verifier_key;
const WEAK: readonly string[] = VECTORS.weak_public_keys_hex;

/** A verifier key with a right id for whatever bytes it is given. */
function verifierKeyOf(name: string, encoded: Buffer): string {
  const id = sha256Hex(Buffer.concat([Buffer.from(`${name}\n`), encoded])).slice(0, 8);
  return `${name}+${id}+${encoded.toString('base64')}`;
}

describe('a verifier key', () => {
  test('is read back as it was written, for a hundred fresh keys', () => {
    for (let i = 0; i < 100; i += 1) {
      const { verifierKey } = generateNoteKey(NAME);
      const key = parseVerifierKey(verifierKey);

      expect(formatVerifierKey(key.name, key.publicKey)).toBe(verifierKey);
    }
  });

  test('is split at its first two plus signs only', () => {
    const keys = Array.from({ length: 200 }, () => generateNoteKey(NAME).verifierKey);
    const withPlus = keys.find((key) => key.split('+').length > 3);

    expect(withPlus).toBeDefined();
    expect(parseVerifierKey(withPlus!).name).toBe(NAME);
  });

  test('is refused with any one character changed, added or left out', () => {
    const { verifierKey } = generateNoteKey(NAME);

    for (let i = 0; i < verifierKey.length; i += 1) {
      const next = String.fromCharCode(verifierKey.charCodeAt(i) + 1);
      const [head, tail] = [verifierKey.slice(0, i), verifierKey.slice(i + 1)];
      for (const changed of [head + next + tail, head + tail, head + next + verifierKey.slice(i)]) {
        expect(() => parseVerifierKey(changed), changed).toThrow(FormatError);
      }
    }
  });

  test.each([
    ['a capital id', FIXED.replace(/\+[0-9a-f]{8}\+/, (id) => id.toUpperCase())],
    ['padding it does not need', `${FIXED}=`],
    ['a newline after it', `${FIXED}\n`],
    ['a space before it', ` ${FIXED}`],
  ])('is refused with %s', (_, changed) => {
    expect(changed).not.toBe(FIXED);
    expect(() => parseVerifierKey(changed)).toThrow(FormatError);
  });

  test.each([
    ['another type', Buffer.concat([Buffer.of(4), Buffer.alloc(32, 7)])],
    ['no key', Buffer.of(1)],
    ['a short key', Buffer.concat([Buffer.of(1), Buffer.alloc(31, 7)])],
    ['a long key', Buffer.concat([Buffer.of(1), Buffer.alloc(33, 7)])],
  ])('is refused with %s, though its id is right', (_, encoded) => {
    expect(() => parseVerifierKey(verifierKeyOf(NAME, encoded))).toThrow('not an Ed25519 verifier key');
  });

  test.each(WEAK)('is refused for the weak point %s', (hex) => {
    const encoded = Buffer.concat([Buffer.of(1), Buffer.from(hex, 'hex')]);

    expect(() => parseVerifierKey(verifierKeyOf(NAME, encoded))).toThrow('weak or malformed point');
  });
});

describe('isUsablePoint', () => {
  test('is true for a thousand fresh keys', () => {
    for (let i = 0; i < 1_000; i += 1) expect(isUsablePoint(Buffer.from(aPoint(), 'hex'))).toBe(true);
  });

  test('is false for a y that is not below the prime, the sign bit set or not', () => {
    const prime = 2n ** 255n - 19n;
    for (let y = prime; y < 2n ** 255n; y += 1n) {
      for (const encoded of [y, y + 2n ** 255n]) {
        const bytes = Buffer.from(encoded.toString(16).padStart(64, '0'), 'hex').reverse();

        expect(isUsablePoint(bytes)).toBe(false);
      }
    }
  });

  test('is false for about half of all y, which no point of the curve has', () => {
    const points = Array.from({ length: 1_000 }, (_, i) => Buffer.from(sha256Hex(`y ${i}`), 'hex'));

    const usable = points.filter(isUsablePoint).length;

    expect(usable).toBeGreaterThan(400);
    expect(usable).toBeLessThan(600);
  });
});

describe('a key name', () => {
  test.each([
    '',
    'a b',
    'a+b',
    'a\tb',
    'a\u00a0b',
    'a\u2028b',
    'a\u3000b',
    'a\u0085b',
    'a\u0001b',
    'a\ud800',
  ])('cannot be %j', (name) => {
    expect(isKeyName(name)).toBe(false);
    expect(() => generateNoteKey(name)).toThrow(FormatError);
    expect(() => parseVerifierKey(`${name}+00000000+AQ==`)).toThrow(FormatError);
  });

  test.each(['a', 'example.com/log', 'Θ', '\u{1f426}', 'a-b_c~d'])('can be %j', (name) => {
    expect(parseVerifierKey(generateNoteKey(name).verifierKey).name).toBe(name);
  });
});

describe('noteSigner', () => {
  test('has the verifier key that was generated with its private key', () => {
    const { privateKeyPem, verifierKey } = generateNoteKey(NAME);
    const signer = noteSigner(NAME, privateKeyPem);

    expect(signer.verifierKey).toBe(verifierKey);
    expect(signer.id).toBe(parseVerifierKey(verifierKey).id);
    const signature = sign(null, Buffer.from('text'), signer.privateKey);
    expect(verify(null, Buffer.from('text'), parseVerifierKey(verifierKey).publicKey, signature)).toBe(true);
  });

  test('refuses a private key of another kind', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

    expect(() => noteSigner(NAME, pem)).toThrow(FormatError);
  });
});

function aPoint(): string {
  const { publicKey } = generateKeyPairSync('ed25519');
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
}
