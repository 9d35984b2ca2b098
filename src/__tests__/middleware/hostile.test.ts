import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { LIMITS } from '../../limits.ts';
import { firstObjection } from '../../middleware/hostile.ts';

/** `levels` containers one inside the other, with a leaf in the innermost. */
function nested(levels: number, wrap: (inner: unknown) => unknown, leaf: unknown = 'leaf'): unknown {
  let value = leaf;
  for (let i = 0; i < levels; i += 1) value = wrap(value);
  return value;
}

const inObject = (inner: unknown) => ({ a: inner });
const inArray = (inner: unknown) => [inner];

describe('nesting', () => {
  test.each([
    ['objects', inObject],
    ['arrays', inArray],
  ])('of %s is taken at the limit and refused one beyond', (_, wrap) => {
    expect(firstObjection(nested(LIMITS.depthMax, wrap))).toBeUndefined();
    expect(firstObjection(nested(LIMITS.depthMax + 1, wrap))?.message).toBe('nested deeper than 64 levels');
  });

  test('that is taken can be written into the log, even when its innermost is empty', () => {
    const deepest = nested(LIMITS.depthMax - 1, inObject, {});

    expect(firstObjection(deepest)).toBeUndefined();
    expect(() => canonicalJson(deepest)).not.toThrow();
    expect(firstObjection({ a: deepest })).toBeDefined();
    expect(() => canonicalJson({ a: deepest })).toThrow();
  });

  test('of a hundred thousand levels overflows nothing', () => {
    expect(firstObjection(nested(100_000, inArray))?.message).toContain('nested deeper');
  });

  test('that never ends is refused like any other', () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;

    expect(firstObjection(circular)?.message).toContain('nested deeper');
  });
});

describe('text', () => {
  test.each([
    ['a high half', '\ud83d'],
    ['a low half', '\udc26'],
    ['the halves the wrong way round', '\udc26\ud83d'],
  ])('with %s is refused where it stands', (_, text) => {
    expect(firstObjection({ list: ['fine', { title: text }] })).toEqual({
      path: ['list', 1, 'title'],
      message: 'not well-formed Unicode (a lone surrogate)',
    });
    expect(firstObjection({ outer: { [text]: 1 } })).toEqual({
      path: ['outer'],
      message: 'a field name is not well-formed Unicode',
    });
  });

  test('with whole pairs and controls is taken', () => {
    expect(firstObjection({ 'a\u0001🐦': '🐦\u0001\u007f\uffff' })).toBeUndefined();
  });

  test('with a null character is refused, because older drivers cut it there', () => {
    expect(firstObjection({ text: 'a\u0000b' })).toMatchObject({
      path: ['text'],
      message: expect.stringContaining('U+0000'),
    });
  });
});

describe('the number of values', () => {
  test('is bounded, in one list and in all lists together', () => {
    const many = Array.from({ length: LIMITS.argumentValuesMax + 1 }, () => 1);
    const nested = Array.from({ length: 200 }, () => many.slice(0, 200));

    expect(firstObjection(many.slice(0, 1000))).toBeUndefined();
    expect(firstObjection({ many })?.message).toContain('more than');
    expect(firstObjection(nested)?.message).toContain('more than');
  });
});

describe('numbers', () => {
  test.each([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0, -0, 1.5, 5e-324])(
    '%d is taken',
    (number) => {
      expect(firstObjection({ number })).toBeUndefined();
    },
  );

  test.each([2 ** 53, -(2 ** 53), 1e21, 1e308])('%d is refused: it is no exact integer', (number) => {
    expect(firstObjection({ number })).toEqual({
      path: ['number'],
      message: expect.stringContaining('beyond 2^53'),
    });
  });

  test('that JSON reads as infinite are refused', () => {
    expect(firstObjection(JSON.parse('{"number":1e999}'))?.path).toEqual(['number']);
    expect(firstObjection(JSON.parse('[-1e999]'))?.path).toEqual([0]);
    expect(firstObjection(Number.NaN)?.path).toEqual([]);
  });
});

describe('names', () => {
  test('__proto__ is refused at any depth', () => {
    expect(firstObjection(JSON.parse('{"a":[{"__proto__":{"admin":true}}]}'))).toEqual({
      path: ['a', 0, '__proto__'],
      message: 'this name is not allowed',
    });
  });

  test.each(['constructor', 'prototype', 'toString', ''])('%j is a name like any other', (name) => {
    expect(firstObjection({ [name]: 1 })).toBeUndefined();
  });
});

test('what it has no objection to has a canonical text', () => {
  const leaf = fc.oneof(fc.string(), fc.double(), fc.constantFrom('\ud800', 2 ** 53, null, true));
  const name = fc.oneof(fc.string(), fc.constantFrom('\udfff', '__proto__'));
  const value = fc.oneof(leaf, fc.array(leaf), fc.dictionary(name, fc.oneof(leaf, fc.array(leaf))));
  fc.assert(
    fc.property(value, (hostile) => {
      fc.pre(firstObjection(hostile) === undefined);

      expect(() => canonicalJson(hostile)).not.toThrow();
    }),
  );
});

test('it changes nothing it looks at', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const before = structuredClone(value);

      firstObjection(value);

      expect(value).toEqual(before);
    }),
  );
});
