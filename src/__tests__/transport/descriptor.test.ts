import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { describeTool } from '../../transport/protocol.ts';
import { aTool, aWritingTool } from '../middleware/a-tool.ts';

const input = z.strictObject({
  task_id: z.string().min(1).max(32),
  limit: z.int().min(1).max(500).default(50),
  offset: z.int().optional(),
  priority: z.enum(['low', 'high']).optional(),
  labels: z.array(z.string()).max(20).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  nested: z.strictObject({ flag: z.boolean() }).optional(),
});

describe('inputSchema', () => {
  test('says what the schema takes, and nothing that tells a model nothing', () => {
    expect(describeTool(aTool({ input })).inputSchema).toEqual({
      type: 'object',
      properties: {
        task_id: { type: 'string', maxLength: 32 },
        limit: { type: 'integer', minimum: 1, maximum: 500, default: 50 },
        offset: { type: 'integer' },
        priority: { type: 'string', enum: ['low', 'high'] },
        labels: { type: 'array', items: { type: 'string' }, maxItems: 20 },
        metadata: { type: 'object', additionalProperties: {} },
        nested: {
          type: 'object',
          properties: { flag: { type: 'boolean' } },
          required: ['flag'],
          additionalProperties: false,
        },
      },
      required: ['task_id'],
      additionalProperties: false,
    });
  });

  test.each<[string, z.ZodObject]>([
    ['with fields', input],
    ['without fields', z.strictObject({})],
    ['with a refinement', z.strictObject({ a: z.string().optional() }).refine(({ a }) => a !== undefined)],
    ['open', z.looseObject({ a: z.string() })],
  ])('is an object at the top, without a dialect or a choice there: %s', (_, schema) => {
    const described = describeTool(aTool({ input: schema })).inputSchema;

    expect(described.type).toBe('object');
    for (const word of ['$schema', '$ref', '$defs', 'anyOf', 'oneOf', 'allOf', 'not']) {
      expect(described).not.toHaveProperty([word]);
    }
    expect(JSON.stringify(described)).not.toContain('$schema');
  });

  test('keeps a field whose name is a word of JSON Schema', () => {
    const { inputSchema } = describeTool(
      aTool({ input: z.strictObject({ anyOf: z.string(), type: z.string() }) }),
    );

    expect(inputSchema.properties).toEqual({ anyOf: { type: 'string' }, type: { type: 'string' } });
  });
});

describe('annotations', () => {
  test.each([
    ['one that reads', aTool(), { readOnlyHint: true, idempotentHint: true }],
    ['one that writes', aWritingTool(), { readOnlyHint: false, idempotentHint: false }],
  ] as const)('follow from the tool: %s', (_, tool, expected) => {
    expect(describeTool(tool).annotations).toEqual({
      destructiveHint: false,
      openWorldHint: false,
      ...expected,
    });
  });
});

test('name, title and description are the tool’s own', () => {
  const tool = aTool({ name: 'task_get', title: 'Get', summary: 'One task.' });

  expect(describeTool(tool)).toMatchObject({ name: 'task_get', title: 'Get', description: 'One task.' });
});
