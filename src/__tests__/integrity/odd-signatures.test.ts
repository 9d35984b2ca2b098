import { createHash, createPrivateKey, createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { isUsablePoint, isUsableSignature } from '../../integrity/ed25519-point.ts';
import {
  FormatError,
  noteSigner,
  openNote,
  parseVerifierKey,
  signNote,
} from '../../integrity/signed-note.ts';
import { signerFromSeed } from './test-key.ts';

// V15: whoever holds the key can make signatures that one version of OpenSSL accepts and the next refuses.
const L = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;
const P = 2n ** 255n - 19n;
const SEED = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
const TEXT = 'example.com/log\n7\nroot\n';

const signer = signerFromSeed('example.com/log', SEED);
const key = parseVerifierKey(signer.verifierKey);
const publicKey = Buffer.from(key.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');

const number = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
const bytes32 = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();
const sha512 = (...parts: Uint8Array[]) => createHash('sha512').update(Buffer.concat(parts)).digest();

/** The secret scalar of the key, as RFC 8032 derives it. */
function scalar(): bigint {
  const half = sha512(Buffer.from(SEED, 'hex')).subarray(0, 32);
  half[0]! &= 248;
  half[31]! = (half[31]! & 127) | 64;
  return number(half);
}

/** With the nonce 0: R is the neutral point, spelled in one of several ways. */
function signedWithNeutral(r: Buffer): Buffer {
  const challenge = number(sha512(r, publicKey, Buffer.from(TEXT))) % L;
  return Buffer.concat([r, bytes32((challenge * scalar()) % L)]);
}

function noteWith(signature: Buffer): string {
  const line = Buffer.concat([Buffer.from(signer.id, 'hex'), signature]).toString('base64');
  return `${TEXT}\n\u2014 ${signer.name} ${line}\n`;
}

const good = Buffer.from(signNote(TEXT, signer).split(' ').at(-1) ?? '', 'base64').subarray(4);

describe('a signature gets the same verdict on every Node', () => {
  test('the equation holds for the neutral R, so that only our own check decides', () => {
    const odd = signedWithNeutral(bytes32(1n));
    const publicObject = createPublicKey(
      createPrivateKey(signer.privateKey.export({ type: 'pkcs8', format: 'pem' })),
    );
    const major = Number(process.versions.openssl.split('.')[0]);
    const minor = Number(process.versions.openssl.split('.')[1]);

    // OpenSSL 3.5 and later may refuse it; those before accept it.
    if (major === 3 && minor < 5) expect(verify(null, Buffer.from(TEXT), publicObject, odd)).toBe(true);
    expect(() => openNote(noteWith(odd), [key])).toThrow(FormatError);
  });

  test('no R of small order is accepted, however it is spelled', () => {
    const sign = 2n ** 255n;
    const spellings = [1n, P - 1n, 0n, P, P + 1n, 2n ** 255n - 20n].flatMap((y) => [y, y + sign]);
    for (const y of spellings) {
      const odd = signedWithNeutral(bytes32(y));
      expect(isUsableSignature(odd)).toBe(false);
      expect(() => openNote(noteWith(odd), [key])).toThrow(FormatError);
    }
  });

  test('the points of order 8 are refused as R', () => {
    const order8 = [
      'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
      'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
      '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
      '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
    ];
    for (const hex of order8)
      expect(isUsableSignature(Buffer.concat([Buffer.from(hex, 'hex'), good.subarray(32)]))).toBe(false);
  });

  test('S must be spelled below the order of the group', () => {
    const s = number(good.subarray(32));
    expect(isUsableSignature(good)).toBe(true);

    expect(isUsableSignature(Buffer.concat([good.subarray(0, 32), bytes32(s + L)]))).toBe(false);
    expect(isUsableSignature(Buffer.concat([good.subarray(0, 32), bytes32(L)]))).toBe(false);
    expect(isUsableSignature(Buffer.concat([good.subarray(0, 32), bytes32(L - 1n)]))).toBe(true);
    expect(() => openNote(noteWith(Buffer.concat([good.subarray(0, 32), bytes32(s + L)])), [key])).toThrow(
      FormatError,
    );
  });

  test('the length is exactly 64', () => {
    expect(isUsableSignature(good.subarray(0, 63))).toBe(false);
    expect(isUsableSignature(Buffer.concat([good, Buffer.of(0)]))).toBe(false);
  });

  test('every signature that is made honestly is usable, and its R is on the curve', () => {
    const one = noteSigner('a', signer.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    for (let i = 0; i < 200; i += 1) {
      const bytes = Buffer.from(signNote(`text ${i}\n`, one).split(' ').at(-1) ?? '', 'base64').subarray(4);
      expect(isUsableSignature(bytes)).toBe(true);
      expect(isUsablePoint(bytes.subarray(0, 32))).toBe(true);
    }
  });
});
