import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { isHash, sha256Hex } from '../../integrity/digest.ts';

afterEach(() => {
  vi.doUnmock('node:crypto');
  vi.resetModules();
});

describe('sha256Hex', () => {
  test('is SHA-256 of a text as UTF-8 and of bytes as they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.uint8Array(), (text, bytes) => {
        expect(sha256Hex(text)).toBe(createHash('sha256').update(text, 'utf8').digest('hex'));
        expect(sha256Hex(bytes)).toBe(createHash('sha256').update(bytes).digest('hex'));
      }),
    );
  });

  test('gives the same digest on a Node without the one-shot hash', async () => {
    vi.doMock('node:crypto', () => ({ createHash, hash: undefined }));
    vi.resetModules();
    const older = await import('../../integrity/digest.ts');

    expect(older.sha256Hex).not.toBe(sha256Hex);
    expect(older.sha256Hex('Θ')).toBe(sha256Hex('Θ'));
    expect(older.sha256Hex(Buffer.of(0, 255))).toBe(sha256Hex(Buffer.of(0, 255)));
  });
});

describe('isHash', () => {
  test.each([
    ['empty text', ''],
    ['63 characters', 'a'.repeat(63)],
    ['65 characters', 'a'.repeat(65)],
    ['a capital', `A${'a'.repeat(63)}`],
    ['a letter beyond f', `g${'a'.repeat(63)}`],
    ['a final newline', `${'a'.repeat(64)}\n`],
  ])('is false for %s', (_, text) => {
    expect(isHash(text)).toBe(false);
  });

  test('is true for what sha256Hex answers', () => {
    expect(isHash(sha256Hex(''))).toBe(true);
  });
});
