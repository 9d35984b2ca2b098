import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { repair } from '../../middleware/repair.ts';

function repaired(schema: z.ZodType, value: unknown): { value: unknown; notes: string[] } {
  const notes: string[] = [];
  return { value: repair(schema, value, notes), notes };
}

/** What goes in comes out, and nothing is noted. */
function expectUntouched(schema: z.ZodType, value: unknown): void {
  expect(repaired(schema, value)).toEqual({ value, notes: [] });
}

const Every = z.strictObject({
  count: z.number().optional(),
  whole: z.int().optional(),
  flag: z.boolean().optional(),
  title: z.string().optional(),
  level: z.enum(['low', 'high']).optional(),
  list: z.array(z.string()).optional(),
  numbers: z.array(z.number()).optional(),
  nested: z.strictObject({ flag: z.boolean(), inner: z.array(z.strictObject({ n: z.number() })) }).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  either: z.union([z.number(), z.string()]).optional(),
  maybe: z.number().nullish(),
  anything: z.unknown(),
  limit: z.int().default(50),
});

describe('null for an optional field', () => {
  test.each<[string, z.ZodType]>([
    ['optional', z.string().optional()],
    ['defaulted', z.int().default(50)],
    ['optional with a default', z.int().optional().default(3)],
  ])('counts as absent: %s', (_, field) => {
    expect(repaired(z.object({ field }), { field: null, other: 1 })).toEqual({
      value: { other: 1 },
      notes: ['field: null taken as absent'],
    });
  });

  test('counts as absent inside an object inside an array too', () => {
    const schema = z.object({ rows: z.array(z.object({ note: z.string().optional() })) });

    expect(repaired(schema, { rows: [{ note: null }, { note: 'x' }] })).toEqual({
      value: { rows: [{}, { note: 'x' }] },
      notes: ['rows[0].note: null taken as absent'],
    });
  });

  test.each<[string, z.ZodType]>([
    ['a required field', z.string()],
    ['a field that takes null', z.string().nullable()],
    ['an optional field that takes null', z.string().nullish()],
    ['a field that takes anything', z.unknown()],
  ])('is left alone in %s', (_, field) => {
    expectUntouched(z.object({ field }), { field: null });
  });

  test('is left alone in a field the schema does not know, and inside free-form data', () => {
    expectUntouched(Every, { unknown: null, metadata: { a: null } });
  });
});

describe('an object or array sent as JSON text', () => {
  test.each<[string, z.ZodType, string, unknown, string]>([
    ['an array', z.array(z.string()), '["a","b"]', ['a', 'b'], 'array'],
    ['an optional array', z.array(z.string()).optional(), ' [] ', [], 'array'],
    ['an object', z.object({ a: z.number() }), '{"a":1}', { a: 1 }, 'object'],
    ['free-form data', z.record(z.string(), z.unknown()), '{"a":[1]}', { a: [1] }, 'object'],
  ])('is parsed: %s', (_, field, text, value, kind) => {
    expect(repaired(z.object({ field }), { field: text })).toEqual({
      value: { field: value },
      notes: [`field: text taken as ${kind}`],
    });
  });

  test('is parsed when it is the whole of the arguments', () => {
    expect(repaired(Every, '{"count":1}')).toEqual({
      value: { count: 1 },
      notes: ['arguments: text taken as object'],
    });
  });

  test('is repaired further inside', () => {
    expect(repaired(Every, '{"nested":"{\\"flag\\":\\"true\\",\\"inner\\":[{\\"n\\":\\"4\\"}]}"}')).toEqual({
      value: { nested: { flag: true, inner: [{ n: 4 }] } },
      notes: [
        'arguments: text taken as object',
        'nested: text taken as object',
        'nested.flag: text taken as boolean',
        'nested.inner[0].n: text taken as number',
      ],
    });
  });

  test.each<[string, z.ZodType, string]>([
    ['an object where an array is due', z.array(z.string()), '{"0":"a"}'],
    ['an array where an object is due', z.object({}), '[]'],
    ['null where an object is due', z.object({}), 'null'],
    ['a bare word where an array is due', z.array(z.string()), 'a'],
    ['a comma list where an array is due', z.array(z.string()), 'a,b'],
    ['text that is nearly JSON', z.array(z.string()), "['a']"],
    ['empty text', z.array(z.string()), ''],
  ])('is left alone when it is %s', (_, field, text) => {
    expectUntouched(z.object({ field }), { field: text });
  });

  test('is left alone where text is due', () => {
    expectUntouched(Every, { title: '["a"]', anything: '{"a":1}', list: ['["a"]'] });
  });
});

describe('a number sent as text', () => {
  test.each([
    ['42', 42],
    ['-7', -7],
    ['0', 0],
    ['1.5', 1.5],
    ['1e+21', 1e21],
  ])('is taken where a number is due: %s', (text, number) => {
    expect(repaired(Every, { count: text })).toEqual({
      value: { count: number },
      notes: ['count: text taken as number'],
    });
  });

  test('is taken where a whole number or a list of numbers is due', () => {
    expect(repaired(Every, { whole: '3', numbers: ['1', 2] })).toEqual({
      value: { whole: 3, numbers: [1, 2] },
      notes: ['whole: text taken as number', 'numbers[0]: text taken as number'],
    });
  });

  test.each([
    '',
    ' 42',
    '42 ',
    '042',
    '+42',
    '4_2',
    '4,2',
    '0x10',
    '1e3',
    '1.50',
    '-0',
    '.5',
    'NaN',
    'Infinity',
    '1e999',
    '42n',
    '9007199254740993',
    'forty',
  ])('is left alone when there is more than one reading: %j', (text) => {
    expectUntouched(Every, { count: text });
  });

  test('is left alone where text will do', () => {
    expectUntouched(Every, { title: '42', either: '42', level: '42', anything: '42' });
  });
});

describe('a boolean sent as text', () => {
  test.each([
    ['true', true],
    ['false', false],
  ])('is taken where a boolean is due: %s', (text, flag) => {
    expect(repaired(Every, { flag: text })).toEqual({
      value: { flag },
      notes: ['flag: text taken as boolean'],
    });
  });

  test.each(['', 'True', 'TRUE', 'yes', 'no', 'on', '1', '0', ' true', 'null'])(
    'is left alone: %j',
    (text) => {
      expectUntouched(Every, { flag: text });
    },
  );

  test.each([0, 1, null, [], {}])('is not made of %j', (value) => {
    expectUntouched(z.object({ flag: z.boolean() }), { flag: value });
  });
});

describe('the other way round', () => {
  test.each<[string, unknown]>([
    ['title', 42],
    ['title', true],
    ['title', { a: 1 }],
    ['list', 'a'],
    ['level', 'LOW'],
    ['numbers', [[1]]],
    ['count', true],
    ['count', ['1']],
  ])('nothing is repaired: %s given %j', (name, value) => {
    expectUntouched(Every, { [name]: value });
  });

  test.each([42, true, [], ['{}'], '"text"', '42'])('arguments that are %j stay so', (value) => {
    expectUntouched(Every, value);
  });
});

const anyArguments = fc.record(
  {
    count: fc.double({ noNaN: true, noDefaultInfinity: true }),
    whole: fc.integer(),
    flag: fc.boolean(),
    title: fc.oneof(fc.string(), fc.constantFrom('42', 'true', 'null', '[]', '{}')),
    level: fc.constantFrom('low', 'high'),
    list: fc.array(fc.oneof(fc.string(), fc.constantFrom('1', '[1]', 'false'))),
    numbers: fc.array(fc.integer()),
    nested: fc.record({ flag: fc.boolean(), inner: fc.array(fc.record({ n: fc.integer() })) }),
    metadata: fc.dictionary(fc.string(), fc.jsonValue()),
    either: fc.oneof(fc.integer(), fc.constantFrom('1', 'x')),
    maybe: fc.oneof(fc.integer(), fc.constant(null)),
    anything: fc.jsonValue(),
    limit: fc.integer(),
  },
  { requiredKeys: [] },
);

test('arguments that already fit are never changed', () => {
  fc.assert(
    fc.property(anyArguments, (args) => {
      fc.pre(Every.safeParse(args).success);

      expectUntouched(Every, args);
    }),
  );
});

test('arguments of any shape are never changed in place, and nothing is thrown', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom(...Object.keys(Every.shape)), fc.jsonValue())),
      (args) => {
        const before = structuredClone(args);

        repaired(Every, args);

        expect(args).toEqual(before);
      },
    ),
  );
});

test('what a schema takes as it is, nothing repairs: stage 2 relies on it', () => {
  const odd = fc.oneof(
    fc.constantFrom(
      '42',
      'true',
      '[]',
      '["a"]',
      '{}',
      '{"flag":true}',
      'null',
      'low',
      null,
      7,
      1.5,
      true,
      'a',
    ),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const fields = fc.dictionary(fc.constantFrom(...Object.keys(Every.shape)), odd, { maxKeys: 2 });
  let taken = 0;
  fc.assert(
    fc.property(fields, (value) => {
      if (!Every.safeParse(value).success) return;
      taken += 1;
      expectUntouched(Every, value);
    }),
    { numRuns: 3_000 },
  );
  expect(taken).toBeGreaterThan(20);
});
