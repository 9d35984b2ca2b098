import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatCheckpoint, parseCheckpoint } from '../../integrity/checkpoint.ts';
import { FormatError } from '../../integrity/signed-note.ts';
import { EMPTY_ROOT } from '../../integrity/tree.ts';

const ROOT64 = Buffer.from(EMPTY_ROOT, 'hex').toString('base64');

const lines = fc.string({ minLength: 1 }).filter((line) => !/[^ -~]/.test(line));
const checkpoints = fc.record({
  origin: lines,
  size: fc.maxSafeNat(),
  root: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex')),
});

describe('a checkpoint', () => {
  test('is three lines: origin, size and base64 root', () => {
    const text = formatCheckpoint({ origin: 'example.com/log', size: 0, root: EMPTY_ROOT });

    expect(text).toBe('example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n');
  });

  test('is read back as it was written, and further lines are passed over', () => {
    fc.assert(
      fc.property(checkpoints, fc.array(lines), (checkpoint, further) => {
        const text = formatCheckpoint(checkpoint);

        expect(parseCheckpoint(text + further.map((line) => `${line}\n`).join(''))).toEqual(checkpoint);
      }),
    );
  });

  test.each([
    ['nothing', ''],
    ['only a newline', '\n'],
    ['no final newline', `log\n1\n${ROOT64}`],
    ['an empty origin', `\n1\n${ROOT64}\n`],
    ['no root', 'log\n1\n'],
    ['an empty root', 'log\n1\n\n'],
    ['a blank line', `log\n1\n${ROOT64}\n\n`],
    ['an empty extension', `log\n1\n${ROOT64}\n\nx\n`],
    ['a leading zero', `log\n01\n${ROOT64}\n`],
    ['zero written twice', `log\n00\n${ROOT64}\n`],
    ['a plus sign', `log\n+1\n${ROOT64}\n`],
    ['a minus sign', `log\n-1\n${ROOT64}\n`],
    ['a space in the size', `log\n1 \n${ROOT64}\n`],
    ['hex', `log\n0x1\n${ROOT64}\n`],
    ['an exponent', `log\n1e3\n${ROOT64}\n`],
    ['digits of another script', `log\n\u0661\n${ROOT64}\n`],
    ['a size that is not exact', `log\n9007199254740992\n${ROOT64}\n`],
    ['a size of 64 bits', `log\n18446744073709551615\n${ROOT64}\n`],
    ['a root of 31 bytes', `log\n1\n${Buffer.alloc(31).toString('base64')}\n`],
    ['a root of 33 bytes', `log\n1\n${Buffer.alloc(33).toString('base64')}\n`],
    ['a root in hex', `log\n1\n${EMPTY_ROOT}\n`],
    ['base64 without padding', `log\n1\n${ROOT64.slice(0, -1)}\n`],
    ['base64 with stray bits', `log\n1\n${ROOT64.slice(0, -2)}V=\n`],
    ['base64 for addresses', `log\n1\n${ROOT64.replace('+', '-').replace('/', '_')}\n`],
    ['a carriage return', `log\r\n1\r\n${ROOT64}\r\n`],
    ['a lone surrogate', `\ud800\n1\n${ROOT64}\n`],
  ])('is refused with %s', (_, text) => {
    expect(() => parseCheckpoint(text)).toThrow(FormatError);
  });

  test('accepts the largest exact size', () => {
    expect(parseCheckpoint(`log\n9007199254740991\n${ROOT64}\n`).size).toBe(Number.MAX_SAFE_INTEGER);
  });

  test.each([
    ['an empty origin', { origin: '', size: 1, root: EMPTY_ROOT }],
    ['two lines for an origin', { origin: 'a\nb', size: 1, root: EMPTY_ROOT }],
    ['a negative size', { origin: 'a', size: -1, root: EMPTY_ROOT }],
    ['a size that is not exact', { origin: 'a', size: 2 ** 53, root: EMPTY_ROOT }],
    ['a root that is none', { origin: 'a', size: 1, root: '' }],
  ])('is not written with %s', (_, checkpoint) => {
    expect(() => formatCheckpoint(checkpoint)).toThrow(FormatError);
  });
});
