import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../clock.ts';
import { digestUnder, isSalt, saltedDigest } from '../../integrity/digest.ts';

const SALT = '00112233445566778899aabbccddeeff';
const salts = fc.stringMatching(/^[0-9a-f]{32}$/);

describe('a salted digest', () => {
  test('is SHA-256 of the 16 bytes of the salt and the UTF-8 of the text', () => {
    fc.assert(
      fc.property(salts, fc.string({ unit: 'grapheme' }), (salt, text) => {
        const bytes = Buffer.concat([Buffer.from(salt, 'hex'), Buffer.from(text, 'utf8')]);

        expect(saltedDigest(salt, text)).toBe(createHash('sha256').update(bytes).digest('hex'));
      }),
    );
  });

  test('is a known value, so that another program can be compared', () => {
    // printf '00112233445566778899aabbccddeeff' | xxd -r -p | cat - <(printf 'é') | sha256sum
    expect(saltedDigest(SALT, 'é')).toBe('7025e0e09695e3e33aefb8ae8808bfc102352a82a1b606e87d86aa301c1afc2c');
  });

  test.each([
    ['', 'nothing'],
    [SALT.slice(1), 'a digit short'],
    [`${SALT}0`, 'a digit long'],
    [SALT.toUpperCase(), 'upper case'],
    [`${SALT.slice(1)}g`, 'not hex'],
    [`${SALT}\n`, 'a line'],
    [SALT.replace('0', '０'), 'a digit of another script'],
  ])('is not made with %j: %s', (salt) => {
    expect(isSalt(salt)).toBe(false);
    expect(digestUnder(salt, 'text')).toBeUndefined();
    // The two ways to write a byte in hex are all that a salt of our own is not checked for.
    if (salt !== SALT.toUpperCase()) expect(() => saltedDigest(salt, 'text')).toThrow(RangeError);
  });
});

test('what the clock gives is a salt, and another each time', () => {
  const given = Array.from({ length: 600 }, () => systemClock.salt());

  expect(given.every(isSalt)).toBe(true);
  expect(new Set(given).size).toBe(given.length);
});
