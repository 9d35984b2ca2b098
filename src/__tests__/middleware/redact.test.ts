import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { LIMITS } from '../../limits.ts';
import { redact } from '../../middleware/redact.ts';
import { validate } from '../../middleware/validate.ts';
import { aTool } from './a-tool.ts';

const TOKEN = `gh${'p_'}${'a1B2'.repeat(9)}`;
const OTHER = `gh${'p_'}${'Z9y8'.repeat(9)}`;
const MARK = '[redacted: GitHub token]';

const tool = aTool({
  name: 'note',
  input: z.strictObject({
    title: z.string().max(40),
    status: z.enum(['todo', 'done']).optional(),
    metadata: z.record(z.string(), z.unknown()).optional(),
  }),
});

describe('R37: a secret in the arguments', () => {
  test('is replaced at every depth, in names too, with a note of where it was', () => {
    const notes: string[] = [];

    const clean = redact(
      { a: ['x', { b: `see ${TOKEN}!` }], [TOKEN]: 1, n: 5, none: null, deep: { [OTHER]: true } },
      notes,
    );

    expect(clean).toEqual({
      a: ['x', { b: `see ${MARK}!` }],
      [MARK]: 1,
      n: 5,
      none: null,
      deep: { [MARK]: true },
    });
    expect(notes).toEqual([
      'a[1].b: GitHub token redacted',
      'a name in arguments: GitHub token redacted',
      'a name in deep: GitHub token redacted',
    ]);
  });

  test('keeps two names apart that leave the same mark', () => {
    expect(redact({ [TOKEN]: 1, [OTHER]: 2, [MARK]: 3 }, [])).toEqual({
      [MARK]: 1,
      [`${MARK} 2`]: 2,
      [`${MARK} 3`]: 3,
    });
  });

  test('as twenty thousand names of fields is gone through once', () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `gh${'p_'}${String(i).padStart(36, 'a')}`);
    const began = process.cpuUsage();

    const clean = redact(Object.fromEntries(names.map((name) => [name, 1])), []) as object;

    expect(Object.keys(clean)).toHaveLength(20_000);
    // Counting each up from two again would take the square of them.
    expect(process.cpuUsage(began).user).toBeLessThan(3_000_000);
  });

  test('is gone before the schema looks, so that a text which fitted still fits', () => {
    expect(validate(tool, { title: TOKEN })).toEqual({
      valid: true,
      tool,
      args: { title: MARK },
      repaired: [],
      redacted: ['title: GitHub token redacted'],
    });
  });

  test('is found inside arguments that came as JSON text', () => {
    const metadata = `{"k":"${TOKEN.replace('_', '\\u005f')}"}`;

    expect(validate(tool, { title: 'x', metadata })).toMatchObject({
      args: { metadata: { k: MARK } },
      redacted: ['metadata.k: GitHub token redacted'],
    });
  });

  test('where a word of a list is due is refused, and the refusal does not repeat it', () => {
    const judged = validate(tool, { title: 'x', status: TOKEN, [OTHER]: 1 });

    expect(judged.valid).toBe(false);
    expect(JSON.stringify(judged)).not.toMatch(/a1B2|Z9y8/);
  });

  test('leaves few and short notes, whatever it stands in', () => {
    const notes: string[] = [];

    redact({ ['x'.repeat(5_000)]: TOKEN, list: Array.from({ length: 500 }, () => TOKEN) }, notes);

    expect(notes).toHaveLength(LIMITS.issuesMax);
    expect(Math.max(...notes.map(({ length }) => length))).toBeLessThan(200);
  });
});

test('arguments without a secret are not copied', () => {
  const args = { a: ['x'], b: { c: 'T-0001' } };

  expect(redact(args, [])).toBe(args);
});
