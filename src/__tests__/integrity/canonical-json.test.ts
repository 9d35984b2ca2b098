import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  CANONICAL_DEPTH_MAX,
  CanonicalJsonError,
  canonicalJson,
  canonicalNumber,
} from '../../integrity/canonical-json.ts';
import { jsonValues, reordered } from './json-values.ts';

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i += 1) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

function withoutNegativeZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

describe('canonicalJson', () => {
  test('writes members in the order of their UTF-16 code units', () => {
    const text = canonicalJson({ b: 1, a: 2, '\u{1f426}': 3, '\uff5e': 4, 10: 5, 9: 6, '': 7 });

    expect(text).toBe('{"":7,"10":5,"9":6,"a":2,"b":1,"\u{1f426}":3,"\uff5e":4}');
  });

  test('keeps the order of an array', () => {
    expect(canonicalJson([3, 1, 2, [], {}])).toBe('[3,1,2,[],{}]');
  });

  test('writes negative zero as zero', () => {
    expect(canonicalJson([-0, 0])).toBe('[0,0]');
  });

  test('writes an own __proto__ member like any other', () => {
    const value: unknown = JSON.parse('{"a":1,"__proto__":{"b":2}}');

    expect(canonicalJson(value)).toBe('{"__proto__":{"b":2},"a":1}');
  });

  test('writes an object without a prototype', () => {
    const row: Record<string, unknown> = Object.create(null);
    row.id = 'T-0001';

    expect(canonicalJson(row)).toBe('{"id":"T-0001"}');
  });

  test.each([
    ['undefined', undefined],
    ['an undefined member', { a: undefined }],
    ['a hole in an array', new Array(1)],
    ['a function', () => 1],
    ['a symbol', Symbol('a')],
    ['a bigint', 1n],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['an integer above 2^53 - 1', 2 ** 53],
    ['an integer below -(2^53 - 1)', -(2 ** 53)],
    ['the largest integer without an exponent', 999_999_999_999_999_900_000],
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udc00a'],
    ['a reversed pair', '\udc26\ud83d'],
    ['a lone surrogate in a name', { '\ud800': 1 }],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['a buffer', Buffer.from('a')],
    ['a boxed string', Object('a')],
    ['an instance of a class', new (class Row {})()],
    ['an object with toJSON', { toJSON: () => 'x' }],
  ])('refuses %s', (_, value) => {
    expect(() => canonicalJson(value)).toThrow(CanonicalJsonError);
  });

  test.each([
    ['the largest safe integer', 2 ** 53 - 1, '9007199254740991'],
    ['the least safe integer', -(2 ** 53 - 1), '-9007199254740991'],
    ['a number whose text has an exponent', 1e21, '1e+21'],
  ])('accepts %s', (_, value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test('accepts the deepest nesting and refuses one level more', () => {
    expect(() => canonicalJson(nested(CANONICAL_DEPTH_MAX))).not.toThrow();
    expect(() => canonicalJson(nested(CANONICAL_DEPTH_MAX + 1))).toThrow(CanonicalJsonError);
  });

  test('refuses a nesting that would exhaust the stack, and a cycle', () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);

    expect(() => canonicalJson(nested(1_000_000))).toThrow(CanonicalJsonError);
    expect(() => canonicalJson(cycle)).toThrow(CanonicalJsonError);
  });

  test('survives a round trip through JSON.parse unchanged', () => {
    fc.assert(
      fc.property(jsonValues, (value) => {
        const text = canonicalJson(value);

        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  test('does not depend on the order in which members were added', () => {
    fc.assert(
      fc.property(jsonValues, (value) => {
        expect(canonicalJson(reordered(value))).toBe(canonicalJson(value));
      }),
    );
  });

  test('gives two different values two texts', () => {
    fc.assert(
      fc.property(jsonValues, jsonValues, (a, b) => {
        const same = canonicalJson(a) === canonicalJson(b);

        expect(same).toBe(isDeepStrictEqual(withoutNegativeZero(a), withoutNegativeZero(b)));
      }),
    );
  });
});

describe('canonicalNumber', () => {
  test('writes integers that a record may not hold, and no number that is not finite', () => {
    expect(canonicalNumber(2 ** 53)).toBe('9007199254740992');
    expect(() => canonicalNumber(Number.NaN)).toThrow(CanonicalJsonError);
    expect(() => canonicalNumber(Number.NEGATIVE_INFINITY)).toThrow(CanonicalJsonError);
  });
});
