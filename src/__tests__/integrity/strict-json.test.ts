// Vitest's equality takes a member named constructor for the type of its object.
import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CANONICAL_DEPTH_MAX, canonicalJson } from '../../integrity/canonical-json.ts';
import { readStrictJson, StrictJsonError } from '../../integrity/strict-json.ts';
import { jsonValues } from './json-values.ts';

describe('readStrictJson', () => {
  test.each([
    ['nothing', ''],
    ['only space', ' \n'],
    ['a byte order mark', '\ufeff{}'],
    ['text after the value', '{} x'],
    ['a second value', '1 2'],
    ['an unclosed object', '{"a":1'],
    ['an unclosed array', '[1'],
    ['an unclosed string', '"a'],
    ['a string that ends in its escape', '"a\\'],
    ['a string that ends in an escaped quote', '"\\"'],
    ['a trailing comma in an object', '{"a":1,}'],
    ['a trailing comma in an array', '[1,]'],
    ['a missing comma', '[1 2]'],
    ['a missing colon', '{"a" 1}'],
    ['a name without quotes', '{a:1}'],
    ['a number as name', '{1:1}'],
    ['an unknown escape', '"\\x41"'],
    ['a short escape', '"\\u00e"'],
    ['a raw newline in a string', '"\n"'],
    ['a leading zero', '01'],
    ['a leading plus', '+1'],
    ['a bare minus', '-'],
    ['a number ending in a point', '1.'],
    ['a number starting with a point', '.5'],
    ['an empty exponent', '1e'],
    ['hex', '0x1'],
    ['NaN', 'NaN'],
    ['a capital literal', 'True'],
    ['a literal run on', 'nullx'],
    ['a comment', '{}//'],
    ['another kind of space', '\u00a0{}'],
    ['a repeated name', '{"a":1,"b":1,"a":1}'],
    ['a name repeated through an escape', '{"a":1,"\\u0061":2}'],
    ['a repeated __proto__', '{"__proto__":1,"__proto__":2}'],
    ['a number that overflows', '1e309'],
    ['an integer above 2^53 - 1', '9007199254740992'],
    ['an integer below -(2^53 - 1)', '-9007199254740992'],
    ['an inexact integer with a fraction', '9007199254740993.0'],
    ['an inexact integer with an exponent', '9007199254740993e1'],
    ['an integer beyond the exponent form', '1000000000000000000000'],
    ['an escaped lone surrogate', '"\\ud800"'],
    ['an escaped pair the wrong way round', '"\\udc26\\ud83d"'],
    ['a lone surrogate in a name', '{"\\ud800":1}'],
    ['a raw lone surrogate', '"\ud800"'],
  ])('refuses %s', (_, text) => {
    expect(() => readStrictJson(text)).toThrow(StrictJsonError);
  });

  test.each([
    ['a stray byte', '5b22ff225d'],
    ['an overlong character', '22c0af22'],
    ['an encoded surrogate', '22eda08022'],
    ['a character cut short', '22e282'],
    ['a byte order mark', 'efbbbf7b7d'],
  ])('refuses bytes with %s', (_, hex) => {
    expect(() => readStrictJson(Buffer.from(hex, 'hex'))).toThrow(StrictJsonError);
  });

  test.each([
    ['a surrogate pair in two escapes', '"\\ud83d\\udc26"', '\u{1f426}'],
    ['every short escape', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\/\b\f\n\r\t'],
    ['the largest integer', '9007199254740991', 9007199254740991],
    ['a large number with an exponent', '1E30', 1e30],
    ['negative zero', '-0', -0],
    ['space of all four kinds', ' \t\r\n[ 1 , 2 ]\n', [1, 2]],
  ])('reads %s', (_, text, value) => {
    expect(readStrictJson(text)).toStrictEqual(value);
  });

  test('says which name is repeated and where', () => {
    expect(() => readStrictJson('{"actor":1,"actor":2}')).toThrow(
      'the name "actor" is repeated (at character 18)',
    );
  });

  test('keeps __proto__ as data and leaves every prototype alone', () => {
    const value = readStrictJson('{"__proto__":{"admin":true}}');

    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(Object(value))).toEqual(['__proto__']);
    expect(Reflect.get({}, 'admin')).toBeUndefined();
  });

  test('accepts the deepest nesting and refuses one level more', () => {
    const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}[]${'}]'.repeat(depth / 2)}`;

    expect(() => readStrictJson(nested(CANONICAL_DEPTH_MAX - 2))).not.toThrow();
    expect(() => readStrictJson(nested(CANONICAL_DEPTH_MAX))).toThrow(StrictJsonError);
    expect(() => readStrictJson('['.repeat(5_000_000))).toThrow(StrictJsonError);
  });

  test('reads a string of ten million characters', () => {
    const text = 'x'.repeat(10_000_000);

    expect(readStrictJson(JSON.stringify(text))).toBe(text);
  });

  test('agrees with JSON.parse on every text it should accept', () => {
    const spacing = fc.constantFrom(undefined, 1, '\t', '\r\n');
    fc.assert(
      fc.property(jsonValues, spacing, (value, space) => {
        const text = JSON.stringify(value, undefined, space);

        deepStrictEqual(readStrictJson(text), JSON.parse(text));
        deepStrictEqual(readStrictJson(Buffer.from(text)), JSON.parse(text));
      }),
    );
  });

  test('accepts nothing that JSON.parse refuses, and nothing that has no canonical text', () => {
    const scraps = fc.constantFrom(
      ...'{}[],:" \\u0019.-+eE',
      'true',
      'null',
      '"a"',
      '\\ud800',
      '1e400',
      '12',
    );
    const damaged = fc.oneof(
      fc.array(scraps, { maxLength: 12 }).map((parts) => parts.join('')),
      fc
        .tuple(
          jsonValues.map((value) => JSON.stringify(value)),
          fc.nat(),
          scraps,
        )
        .map(
          ([text, at, scrap]) =>
            text.slice(0, at % (text.length + 1)) + scrap + text.slice(at % (text.length + 1)),
        ),
    );
    fc.assert(
      fc.property(damaged, (text) => {
        const value = attempt(() => readStrictJson(text));

        if (value instanceof StrictJsonError) return;
        deepStrictEqual(value, JSON.parse(text));
        expect(() => canonicalJson(value)).not.toThrow();
      }),
      { numRuns: 2_000 },
    );
  });
});

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}
