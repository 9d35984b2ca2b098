import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { ColibriError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { type Judged, validate } from '../../middleware/validate.ts';
import { aTool } from './a-tool.ts';

const tool = aTool({
  name: 'task_create',
  input: z.strictObject({
    title: z.string().min(1).max(20),
    project: z.string(),
    priority: z.enum(['low', 'high']).optional(),
    estimate_hours: z.number().max(1000).optional(),
    labels: z.array(z.string()).optional(),
    metadata: z.record(z.string(), z.unknown()).optional(),
    parent: z.strictObject({ task_id: z.string() }).optional(),
    limit: z.int().default(50),
  }),
});

const fine = { title: 'A title', project: 'colibri' };

function refusal(judged: Judged): { message: string; issues: readonly Record<string, unknown>[] } {
  if (judged.valid) throw new Error('it was taken');
  if (!(judged.error instanceof ColibriError)) throw judged.error;
  expect(judged.error.code).toBe('INVALID_PARAMS');
  return {
    message: judged.error.message,
    issues: judged.error.details.issues as readonly Record<string, unknown>[],
  };
}

describe('arguments that fit', () => {
  test('come out typed, with defaults, and nothing repaired', () => {
    expect(validate(tool, fine)).toEqual({
      valid: true,
      tool,
      args: { ...fine, limit: 50 },
      repaired: [],
      redacted: [],
    });
  });

  test('come out repaired, with a note of each repair', () => {
    expect(validate(tool, { ...fine, limit: '7', priority: null })).toEqual({
      valid: true,
      tool,
      args: { ...fine, limit: 7 },
      repaired: ['limit: text taken as number', 'priority: null taken as absent'],
      redacted: [],
    });
  });

  test.each([
    ['left out', undefined, []],
    ['null', null, ['arguments: null taken as absent']],
    ['{} as text', '{}', ['arguments: text taken as object']],
  ])('may be %s for a tool that needs none', (_, raw, repaired) => {
    const none = aTool();

    expect(validate(none, raw)).toEqual({ valid: true, tool: none, args: {}, repaired, redacted: [] });
  });
});

describe('a refusal names', () => {
  test('the missing field and its type', () => {
    const { message, issues } = refusal(validate(tool, { title: 'x' }));

    expect(message).toBe('task_create: project is required (string). Correct this and call again.');
    expect(issues).toEqual([
      expect.objectContaining({ code: 'invalid_type', expected: 'string', path: ['project'] }),
    ]);
  });

  test('every missing field when there are no arguments', () => {
    const { message } = refusal(validate(tool, undefined));

    expect(message).toContain('title is required (string).');
    expect(message).toContain('project is required (string).');
  });

  test('the unknown field, the one that was meant, and all that are allowed', () => {
    const { message, issues } = refusal(validate(tool, { ...fine, prority: 'low' }));

    expect(message).toContain(
      'Unknown field "prority". Did you mean priority? Allowed: title, project, priority,',
    );
    expect(issues).toEqual([expect.objectContaining({ code: 'unrecognized_keys', keys: ['prority'] })]);
  });

  test('an unknown field that resembles none without a guess', () => {
    const { message } = refusal(validate(tool, { ...fine, zzzzzzzz: 1 }));

    expect(message).toContain('Unknown field "zzzzzzzz". Allowed:');
  });

  test('that a tool takes no fields', () => {
    expect(refusal(validate(aTool(), { a: 1 })).message).toBe(
      'probe: Unknown field "a". It takes no fields. Correct this and call again.',
    );
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['the allowed values', { priority: 'urgent' }, /priority: .*"low"\|"high"/],
    ['the bound', { estimate_hours: 1001 }, /estimate_hours: .*<=1000/],
    ['the expected type', { labels: 'a,b' }, /labels: .*expected array/],
    ['the place inside a list', { labels: ['a', 1] }, /labels\[1\]: .*expected string/],
    ['the place inside an object', { parent: { task_id: 7 } }, /parent\.task_id: .*expected string/],
    ['a length', { title: 'x'.repeat(21) }, /title: .*<=20 characters/],
  ])('%s', (_, wrong, message) => {
    expect(refusal(validate(tool, { ...fine, ...wrong })).message).toMatch(message);
  });

  test.each([[[]], [42], ['words'], [true]])('arguments that are no object: %j', (raw) => {
    expect(refusal(validate(tool, raw)).message).toMatch(/^task_create: arguments: .*expected object/);
  });

  test('all that is wrong at once, up to a limit', () => {
    const labels = Array.from({ length: LIMITS.issuesMax + 5 }, () => 7);

    const { message, issues } = refusal(validate(tool, { ...fine, labels }));

    expect(issues).toHaveLength(LIMITS.issuesMax);
    expect(message).toContain(`labels[${LIMITS.issuesMax - 1}]`);
    expect(message).not.toContain(`labels[${LIMITS.issuesMax}]`);
  });
});

describe('a refusal', () => {
  test('keeps the arguments as they were sent, and does not repeat them to the client', () => {
    const raw = { title: 42, project: 'a secret project', limit: '7' };

    const judged = validate(tool, raw);

    expect(judged).toMatchObject({ valid: false, raw, repaired: ['limit: text taken as number'] });
    expect(JSON.stringify(refusal(judged))).not.toContain('secret');
    expect(JSON.stringify(refusal(judged))).not.toContain('42');
  });

  test('shows no more of an endless field name than a tool name may have', () => {
    const { message } = refusal(validate(tool, { ...fine, ['x'.repeat(10_000)]: 1 }));

    expect(message).toContain(`"${'x'.repeat(LIMITS.toolNameCharsMax)}"`);
    expect(message).not.toContain('x'.repeat(LIMITS.toolNameCharsMax + 1));
  });
});

describe('what no schema would notice', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['half a character', { a: '\ud800' }, 'metadata.a: not well-formed Unicode'],
    ['an integer beyond 2^53', { a: [2 ** 53] }, 'metadata.a[0]: an integer beyond 2^53'],
    ['an infinite number', JSON.parse('{"a":1e999}'), 'metadata.a: a number too large'],
    ['a forbidden name', JSON.parse('{"__proto__":1}'), 'metadata.__proto__: this name is not allowed'],
  ])('is refused with its place: %s', (_, metadata, message) => {
    const { message: said, issues } = refusal(validate(tool, { ...fine, metadata }));

    expect(said).toContain(message);
    expect(issues).toEqual([expect.objectContaining({ code: 'custom', path: expect.any(Array) })]);
  });

  test.each<[string, string, string]>([
    ['half a character', '{"a":"\\ud800"}', 'metadata.a: not well-formed Unicode'],
    ['an integer beyond 2^53', '{"a":9007199254740992}', 'metadata.a: an integer beyond 2^53'],
    ['a forbidden name', '{"__proto__":1}', 'metadata.__proto__: this name is not allowed'],
    ['nesting without end', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`, 'nested deeper than 64 levels'],
  ])('is refused inside a JSON text too: %s', (_, metadata, message) => {
    const judged = validate(tool, { ...fine, metadata });

    expect(refusal(judged).message).toContain(message);
    expect(judged).toMatchObject({ repaired: ['metadata: text taken as object'] });
  });
});
