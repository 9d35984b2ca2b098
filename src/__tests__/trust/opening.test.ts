import { describe, expect, test } from 'vitest';
import { formatCheckpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import {
  FormatError,
  generateNoteKey,
  NoKnownKeyError,
  noteSigner,
  parseVerifierKey,
  signNote,
} from '../../integrity/signed-note.ts';
import { isOrigin, openCheckpoint, openIfValid, originOfKey } from '../../trust/opening.ts';

function aKey(name: string) {
  const signer = noteSigner(name, generateNoteKey(name).privateKeyPem);
  return { signer, key: parseVerifierKey(signer.verifierKey) };
}

const root = sha256Hex('root');
const own = aKey('colibri/a');
const other = aKey('colibri/b');

describe('openCheckpoint', () => {
  test('gives what a known key signed', () => {
    const note = signNote(formatCheckpoint({ origin: 'colibri/a', size: 7, root }), own.signer);

    expect(openCheckpoint(note, [other.key, own.key])).toEqual({
      origin: 'colibri/a',
      size: 7,
      root,
    });
  });

  test.each([
    [
      'a key that is not known',
      signNote(formatCheckpoint({ origin: 'colibri/b', size: 7, root }), other.signer),
      NoKnownKeyError,
    ],
    [
      'a key named after another log',
      signNote(formatCheckpoint({ origin: 'colibri/b', size: 7, root }), own.signer),
      FormatError,
    ],
    ['something that is no checkpoint', signNote('hello\n', own.signer), FormatError],
    ['nothing', '', FormatError],
  ])('refuses %s', (_name, note, error) => {
    expect(() => openCheckpoint(note, [own.key])).toThrow(error);
    expect(openIfValid(note, [own.key])).toBeUndefined();
  });
});

describe('the name of a log', () => {
  test('is fixed by its key', () => {
    const { signer, key } = aKey('x');
    const raw = Buffer.from(key.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');

    const origin = originOfKey(signer.verifierKey);

    expect(origin).toBe(`colibri/${sha256Hex(raw).slice(0, 32)}`);
    expect(isOrigin(origin ?? '')).toBe(true);
  });

  test.each([
    '',
    'colibri/',
    'colibri/..',
    `colibri/${'a'.repeat(31)}`,
    `colibri/${'A'.repeat(32)}`,
    `colibri/${'a'.repeat(32)}\n`,
    `x/${'a'.repeat(32)}`,
  ])('is not %j', (text) => {
    expect(isOrigin(text)).toBe(false);
  });

  test('of something that is not a key is none', () => {
    expect(originOfKey('a+b+c')).toBeUndefined();
  });
});
