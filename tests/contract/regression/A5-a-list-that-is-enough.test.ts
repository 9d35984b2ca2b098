import { describe, expect, test } from 'vitest';
import { Playground } from '../../driver/playground.ts';
import type { ServerProcess } from '../../driver/server-process.ts';

interface Field {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly items?: Field;
  readonly [word: string]: unknown;
}

interface Listed {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: {
    readonly properties: Readonly<Record<string, Field>>;
    readonly required?: readonly string[];
  };
}

async function played<T>(play: (server: ServerProcess, tools: readonly Listed[]) => Promise<T>): Promise<T> {
  const colibri = new Playground();
  try {
    const server = await colibri.start({ env: { CLAUDE_PROJECT_DIR: colibri.folder } });
    const { result } = await server.request('tools/list', {});
    return await play(server, (result as unknown as { tools: Listed[] }).tools);
  } finally {
    expect(await colibri.dispose()).toEqual([]);
  }
}

/** The call that a description shows; without one, the call without arguments. */
function exampleOf({ description }: Listed): Record<string, unknown> {
  const shown = / Example: (\{.*\})$/.exec(description)?.[1] ?? '{}';
  return JSON.parse(shown) as Record<string, unknown>;
}

describe('A5: a model that knows nothing but tools/list', () => {
  test('makes a right first call to each tool', () =>
    played(async (server, tools) => {
      for (const tool of tools) {
        const { properties, required = [] } = tool.inputSchema;
        const example = exampleOf(tool);
        expect(Object.keys(properties), tool.name).toEqual(expect.arrayContaining(Object.keys(example)));
        expect(Object.keys(example), tool.name).toEqual(expect.arrayContaining([...required]));

        const answer = await server.call(tool.name, example);
        // A session without records cannot be sealed.
        const thought = tools.find(({ name }) => name === 'thought_record');
        if (tool.name === 'audit_session_start' && thought !== undefined)
          await server.call(thought.name, exampleOf(thought));

        expect(answer, tool.name).toMatchObject({ envelope: { ok: true }, isError: false });
      }
    }));

  test('may send each default that is listed, each flag, and both bounds of each number', () =>
    played(async (server, tools) => {
      await server.call('task_create', { title: 'x', project: 'web' });
      await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'x' });
      const reading = tools.filter(({ name }) => /get|list|next|verify|skill/.test(name));
      let sent = 0;
      for (const tool of reading) {
        const example = exampleOf(tool);
        for (const [name, field] of Object.entries(tool.inputSchema.properties)) {
          const values = [field.default, field.minimum, field.maximum, ...(field.enum ?? [])];
          for (const value of field.type === 'boolean' ? [true, false] : values) {
            if (value === undefined) continue;
            const answer = await server.call(tool.name, { ...example, [name]: value });
            expect(answer, `${tool.name} ${name} ${value}`).toMatchObject({ isError: false });
            sent += 1;
          }
        }
      }
      expect(sent).toBeGreaterThan(30);
    }));

  test('is told what a name does not say', () =>
    played(async (_server, tools) => {
      const known = new Set(
        'title description priority labels assignee estimate_hours type task_id session_id content commit_sha status label reason'.split(
          ' ',
        ),
      );
      const mute = tools.flatMap(({ name, description, inputSchema }) =>
        Object.entries(inputSchema.properties)
          // A default says what leaving a field out means; a flag may be explained in the description of its tool.
          .filter(([field, { description: said, default: otherwise }]) => {
            return (
              !known.has(field) &&
              said === undefined &&
              otherwise === undefined &&
              !description.includes(field)
            );
          })
          .map(([field]) => `${name}.${field}`),
      );

      expect(mute).toEqual([]);
    }));

  test('is told each dependent requirement, and each is as told', () =>
    played(async (server, tools) => {
      const textOf = (name: string) => JSON.stringify(tools.find((tool) => tool.name === name));
      await server.call('task_create', { title: 'x', project: 'web' });

      expect(textOf('task_update')).toContain('required with status blocked');
      expect(textOf('task_update')).toContain('at least one other field');
      expect(textOf('audit_verify_chain')).toContain('exactly one');
      for (const [tool, args] of [
        ['task_update', { task_id: 'T-0001', status: 'blocked' }],
        ['task_update', { task_id: 'T-0001' }],
        ['audit_verify_chain', {}],
        ['audit_verify_chain', { task_id: 'T-0001', session_id: 'A-0001' }],
        ['task_list', { created_after: 'yesterday' }],
        ['thought_record', { task_id: 'T-0001', type: 'plan', content: ' \n' }],
      ] as const) {
        const { envelope } = await server.call(tool, args);
        expect(envelope?.error?.code, JSON.stringify(args)).toBe('INVALID_PARAMS');
      }
    }));
});

test('A5: every schema has a form that strict converters accept', () =>
  played(async (_server, tools) => {
    const strange: string[] = [];
    const walk = (at: string, schema: unknown): void => {
      if (typeof schema !== 'object' || schema === null) return void strange.push(`${at}: no schema`);
      const { type, properties, items, additionalProperties, ...rest } = schema as Field;
      if (typeof type !== 'string') strange.push(`${at}: without a type`);
      if (type === 'object' && additionalProperties !== false) strange.push(`${at}: open`);
      if (type === 'array') walk(`${at}[]`, items);
      for (const word of ['$ref', '$defs', 'anyOf', 'oneOf', 'allOf', 'not', 'listedAs', 'propertyNames'])
        if (word in rest) strange.push(`${at}: ${word}`);
      for (const [name, field] of Object.entries(Object(properties))) walk(`${at}.${name}`, field);
    };

    for (const { name, inputSchema } of tools) walk(name, inputSchema);

    expect(strange).toEqual([]);
  }));

test.each([
  ['as text', '{"ticket":{"id":7}}'],
  ['as an object', { ticket: { id: 7 } }],
])('A5: metadata is taken %s and kept as an object', (_, metadata) =>
  played(async (server) => {
    await server.call('task_create', { title: 'x', project: 'web' });
    await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'c', metadata });
    const { envelope } = await server.call('thought_record_list', { task_id: 'T-0001' });

    expect(envelope?.data).toMatchObject({ thoughts: [{ metadata: { ticket: { id: 7 } } }] });
  }),
);

test('A5: the list costs at most 2,900 tokens, at the four bytes each that the bench measured for it', () =>
  played(async (_server, tools) => {
    expect(Buffer.byteLength(JSON.stringify(tools)) / 4).toBeLessThan(2_900);
  }));
