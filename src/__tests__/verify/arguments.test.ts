import { describe, expect, test } from 'vitest';
import type * as z from 'zod';
import { AdoptInput, EraseInput, ReceiveShape, TransferInput } from '../../domains/owner/tools.ts';
import { FinalizeInput, StartInput } from '../../domains/proof/tools.ts';
import { RULES } from '../../domains/rules.ts';
import { CreateInput, UpdateInput } from '../../domains/tasks/schema.ts';
import { RecordInput } from '../../domains/trail/schema.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { FORMS } from '../../verify/rules/arguments.ts';

const INPUTS = {
  task_create: CreateInput,
  task_update: UpdateInput,
  thought_record: RecordInput,
  audit_session_start: StartInput,
  merkle_finalize: FinalizeInput,
  owner_adopt: AdoptInput,
  owner_erase: EraseInput,
  owner_transfer: TransferInput,
  owner_receive: ReceiveShape,
} as const;

/** What every schema of an argument can be shown. */
const SAMPLES: readonly unknown[] = [
  ...['', ' ', 'a', 'A_b', 'web-1', 'x'.repeat(32), 'x'.repeat(33), 'x'.repeat(64), 'x'.repeat(65)],
  // A parrot is one character and two UTF-16 units.
  ...['x', '\u{1f99c}'].flatMap((one) =>
    [64, 65, 128, 129, 256, 257, 512, 513, 2_000, 2_001, 5_000, 5_001, 8_000, 8_001].map((length) =>
      one.repeat(length),
    ),
  ),
  ...[
    'low',
    'normal',
    'high',
    'critical',
    'urgent',
    'backlog',
    'todo',
    'in_progress',
    'blocked',
    'review',
    'done',
  ],
  ...[
    'cancelled',
    'INIT',
    'GATHER',
    'ANALYZE',
    'PLAN',
    'APPLY',
    'VERIFY',
    'DONE',
    'CANCELLED',
    'kanban',
    'pipeline',
  ],
  ...['implementation', 'refactor', 'doc', 'investigation', 'spike', 'shallow', 'deep', 'T-0001', 'A-0001'],
  ...['reflection', 'decision', 'discovery', 'risk', 'blockers', 'plan', 'analysis'],
  ...[-1, 0, 0.5, 1, 100, 100.5, 1_000, 1_001, true, false, null, [], {}, ['a'], [''], [1], [[]]],
  ...[20, 21, 100, 101].map((length) => Array.from({ length }, (_, i) => `x${i}`)),
  ...[
    ['x'.repeat(64)],
    ['x'.repeat(65)],
    ['x'.repeat(512)],
    ['x'.repeat(513)],
    { a: 1 },
    { a: 'x'.repeat(20_000) },
  ],
  ...[
    { size: 1, root: 'a'.repeat(64), key: 'k' },
    { size: 1, root: 'a', key: 'k' },
    { size: -1, root: 'a'.repeat(64), key: '' },
  ],
];

describe('the forms of arguments say what the schemas of the tools say', () => {
  test('every tool that the rules know has its forms', () => {
    expect(Object.keys(FORMS[1] ?? {}).sort()).toEqual(Object.keys(RULES[1] ?? {}).sort());
  });

  for (const [tool, input] of Object.entries(INPUTS)) {
    const forms = FORMS[1]?.[tool];
    const shape: Readonly<Record<string, z.ZodType>> = input.shape;

    test(`${tool}: the same arguments, and the same must be there`, () => {
      const required = Object.keys(shape).filter((name) => !shape[name]?.safeParse(undefined).success);
      // The server writes the workflow into the arguments it keeps.
      const kept = tool === 'task_create' ? [...required, 'workflow'] : required;

      expect(Object.keys({ ...forms?.fields, ...forms?.texts }).sort()).toEqual(Object.keys(shape).sort());
      expect([...(forms?.required ?? [])].sort()).toEqual(kept.sort());
    });

    test(`${tool}: each argument takes the same values`, () => {
      const different = Object.entries(shape).flatMap(([name, schema]) =>
        SAMPLES.filter((value) => {
          const text = typeof value === 'string' ? value : canonicalJson(value);
          const takes =
            forms?.fields[name]?.(value) ?? forms?.texts[name]?.(takesJson(schema) ? text : value);
          const isAsked = takesJson(schema) ? typeof value !== 'string' : true;
          return isAsked && takes !== schema.safeParse(value).success;
        }).map((value) => `${name}: ${JSON.stringify(value).slice(0, 80)}`),
      );

      expect(different).toEqual([]);
    });
  }
});

/** A list or an object that is kept as a text. */
function takesJson(schema: z.ZodType): boolean {
  return schema.safeParse([]).success || schema.safeParse({}).success;
}
