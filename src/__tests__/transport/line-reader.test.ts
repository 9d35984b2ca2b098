import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { LineReader } from '../../transport/line-reader.ts';

const BYTE_ORDER_MARK = '\ufeff';

/** Everything a reader reports for these chunks: lines as text, a line that was too long as its id. */
function readAll(chunks: readonly (string | Uint8Array)[], { end = true } = {}): unknown[] {
  const seen: unknown[] = [];
  const reader = new LineReader({
    line: (bytes) => seen.push(Buffer.from(bytes).toString('latin1')),
    oversized: (id) => seen.push({ oversized: id }),
    isFull: () => false,
  });
  for (const chunk of chunks) reader.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  if (end) reader.end();
  return seen;
}

/** The same bytes, cut at the given places. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}

describe('lines', () => {
  test('end at a newline, and a chunk may hold several or part of one', () => {
    expect(readAll(['{"a":1}\n{"b"', ':2}\n', '{"c":3}\n'])).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
  });

  test('are not reported before they end', () => {
    expect(readAll(['{"a":1}'], { end: false })).toEqual([]);
  });

  test('include the last one without a newline, once the stream is over', () => {
    expect(readAll(['{"a":1}\n{"b":2}'])).toEqual(['{"a":1}', '{"b":2}']);
  });

  test('may end as on Windows, even with the two characters in two chunks', () => {
    expect(readAll(['{"a":1}\r\n{"b":2}\r', '\n{"c":3}\r'])).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
  });

  test('lose the blanks around them and keep those inside', () => {
    expect(readAll([' \t{"a": "x \t"}\t \n'])).toEqual(['{"a": "x \t"}']);
  });

  test.each(['\n', '\n\n\n', '\r\n', ' \n', '\t\r\n', '   ', '\r', ''])(
    'that are blank are nobody’s: %j at the start',
    (blank) => {
      expect(readAll([blank])).toEqual([]);
      expect(readAll([`${blank}\n`, '{}\n'])).toEqual(['{}']);
    },
  );

  test.each(['1', '{}', '[]'])('may be as short as %s, also the first', (line) => {
    expect(readAll([`${line}\n`])).toEqual([line]);
  });

  test('end at no other character that some call a line end', () => {
    expect(readAll(['a\u2028b\u0085c\x0bd\x0ce\x00f\n'])).toEqual([
      Buffer.from('a\u2028b\u0085c\x0bd\x0ce\x00f').toString('latin1'),
    ]);
  });
});

describe('a byte order mark', () => {
  test('is dropped at the very start, in one chunk or in three', () => {
    const mark = Buffer.from(BYTE_ORDER_MARK);

    expect(readAll([`${BYTE_ORDER_MARK}{}\n`])).toEqual(['{}']);
    expect(readAll([mark.subarray(0, 1), mark.subarray(1, 2), mark.subarray(2), '{}\n'])).toEqual(['{}']);
    expect(readAll([`${BYTE_ORDER_MARK}\n{}\n`])).toEqual(['{}']);
  });

  test('is left for the parser to refuse anywhere else', () => {
    const marked = Buffer.from(`${BYTE_ORDER_MARK}{}`).toString('latin1');

    expect(readAll([`{}\n${BYTE_ORDER_MARK}{}\n`])).toEqual(['{}', marked]);
    expect(readAll([`\n${BYTE_ORDER_MARK}{}\n`])).toEqual([marked]);
  });
});

describe('the limit', () => {
  const line = (bytes: number) => `{"id":7,"pad":"${'x'.repeat(bytes - '{"id":7,"pad":""}'.length)}"}`;
  const most = line(LIMITS.lineBytesMax);
  const tooMuch = line(LIMITS.lineBytesMax + 1);

  test('is inclusive', () => {
    expect(readAll([`${most}\n`])).toEqual([most]);
  });

  test('passed by one byte gives the id of the line instead of the line', () => {
    expect(readAll([`${tooMuch}\n`])).toEqual([{ oversized: 7 }]);
  });

  test('passed in many chunks gives the same, and what was read before it counts', () => {
    const bytes = Buffer.from(`${tooMuch}\n`);

    expect(
      readAll(cut(bytes, [1, 5, 60_000, 120_000, LIMITS.lineBytesMax, LIMITS.lineBytesMax + 1])),
    ).toEqual([{ oversized: 7 }]);
  });

  test('passed by a last line without a newline is reported too', () => {
    expect(readAll([tooMuch])).toEqual([{ oversized: 7 }]);
  });

  test('starts again with each line', () => {
    expect(readAll([`${tooMuch}\n{"id":8}\n${tooMuch}\n`, '{"id":9}\n'])).toEqual([
      { oversized: 7 },
      '{"id":8}',
      { oversized: 7 },
      '{"id":9}',
    ]);
  });

  test('passed by blanks alone is an error without an id', () => {
    expect(readAll([' '.repeat(LIMITS.lineBytesMax + 1)])).toEqual([{ oversized: null }]);
  });
});

describe('any chunking', () => {
  const pieces = fc.constantFrom(
    '{"id":1}',
    'é🐦',
    '\n',
    '\r\n',
    '\r',
    ' ',
    '\t',
    '\n\n',
    BYTE_ORDER_MARK,
    '"\\n"',
    '\x00',
  );
  const places = fc.array(fc.nat(200), { maxLength: 12 });

  test('of the same bytes gives the same lines', () => {
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), places, (parts, at) => {
        const bytes = Buffer.from(parts.join(''));

        const whole = readAll([bytes]);

        expect(readAll(cut(bytes, at))).toEqual(whole);
        expect(readAll(cut(bytes, [...bytes.keys()]))).toEqual(whole);
      }),
    );
  });

  test('of any bytes gives the lines between the newlines, without their blanks', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), places, (bytes, at) => {
        fc.pre(bytes[0] !== 0xef);
        const expected = Buffer.from(bytes)
          .toString('latin1')
          .split('\n')
          .map((text) => text.replace(/^[ \t\r]+|[ \t\r]+$/g, ''))
          .filter((text) => text !== '');

        expect(readAll(cut(bytes, at))).toEqual(expected);
      }),
    );
  });

  test('of a line over the limit gives the same id', () => {
    const bytes = Buffer.from(`{"params":"${'x'.repeat(LIMITS.lineBytesMax)}","id":"abc"}\n{}\n`);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 6 }), (at) => {
        expect(readAll(cut(bytes, at))).toEqual([{ oversized: 'abc' }, '{}']);
      }),
      { numRuns: 10 },
    );
  });
});
