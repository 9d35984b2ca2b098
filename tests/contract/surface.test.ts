import { expect } from 'vitest';
import { FOURTEEN, type JsonSchema, listedTools, toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const incomplete = await toolsMissing(...FOURTEEN);
const noTasks = await toolsMissing('task_create', 'task_get');

proves(
  'surface.closed',
  'the surface is exactly the fourteen tools',
  async ({ colibri }) => {
    const server = await colibri.start();

    const names = listedTools(await server.request('tools/list')).map((tool) => tool.name);

    expect([...names].sort()).toEqual([...FOURTEEN].sort());
  },
  { unless: incomplete },
);

proves(
  'surface.closed',
  'there are no resources, no prompts, no completions and no subscriptions',
  async ({ colibri }) => {
    const server = colibri.spawn();

    const { result } = await server.initialize();
    const families = [
      'resources/list',
      'resources/templates/list',
      'resources/read',
      'prompts/list',
      'prompts/get',
    ];
    families.push(
      'completion/complete',
      'logging/setLevel',
      'resources/subscribe',
      'tasks/list',
      'skills/list',
    );

    expect(result?.capabilities).toEqual({ tools: { listChanged: false } });
    for (const method of families) expect((await server.request(method, {})).error?.code).toBe(-32601);
  },
);

proves(
  'surface.fixed',
  'the list is the same for every process, era, connection and time of asking',
  async ({ colibri }) => {
    const [one, other, modern] = [
      await colibri.start(),
      await colibri.start({ clientName: 'another' }),
      colibri.spawn(),
    ];

    const first = listedTools(await one.request('tools/list'));
    await one.call('server_ping');
    const later = [
      await one.request('tools/list'),
      await other.request('tools/list'),
      await modern.modern('tools/list'),
    ];

    for (const answer of later) expect(JSON.stringify(listedTools(answer))).toBe(JSON.stringify(first));
  },
);

proves(
  'modes.one-flag',
  'every tool carries all four hints, and only tools that mutate are not read-only',
  async ({ colibri }) => {
    const [full, readonly] = [
      await colibri.start(),
      await colibri.start({ env: { COLIBRI_MODE: 'READONLY' } }),
    ];

    const tools = listedTools(await full.request('tools/list'));
    const reading = listedTools(await readonly.request('tools/list')).map((tool) => tool.name);

    for (const { name, annotations } of tools) {
      expect(Object.keys(annotations).sort()).toEqual([
        'destructiveHint',
        'idempotentHint',
        'openWorldHint',
        'readOnlyHint',
      ]);
      expect([name, annotations.openWorldHint]).toEqual([name, false]);
      expect([name, annotations.readOnlyHint]).toEqual([name, reading.includes(name)]);
    }
  },
);

proves('surface.closed', 'no schema uses what a client is known to refuse', async ({ colibri }) => {
  const server = await colibri.start();

  for (const { name, description, inputSchema } of listedTools(await server.request('tools/list'))) {
    const text = JSON.stringify(inputSchema);
    expect(name).toMatch(/^[a-z0-9_]{1,40}$/);
    expect(description).toMatch(/\S/);
    expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    expect(Object.keys(inputSchema)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(any|one|all)Of$/)]),
    );
    expect(text).not.toMatch(/"\$ref"|"\$schema"|"type":\[|9007199254740991/);
    for (const field of Object.keys(inputSchema.properties ?? {})) expect(field).toMatch(/^[\w.-]{1,64}$/);
  }
});

proves(
  'protocol.instructions',
  'the instructions are short, the same in both eras, and name only tools there are',
  async ({ colibri }) => {
    const [legacy, modern] = [colibri.spawn(), colibri.spawn()];

    const text = String((await legacy.initialize()).result?.instructions);
    const discovered = (await modern.modern('server/discover')).result?.instructions;
    const named = text.match(/\b(task|thought|audit|merkle|skill|server)_[a-z_]+\b/g) ?? [];

    expect(discovered).toBe(text);
    expect(text.length).toBeGreaterThan(100);
    expect(text.length).toBeLessThan(1_500);
    expect(named.length).toBeGreaterThan(3);
    expect(FOURTEEN).toEqual(expect.arrayContaining(named));
  },
);

proves(
  'protocol.instructions',
  'a server that only reads, or has no database, tells of no tool that it does not have',
  async ({ colibri }) => {
    for (const mode of ['READONLY', 'MINIMAL']) {
      const server = colibri.spawn({ env: { COLIBRI_MODE: mode } });
      const text = String((await server.initialize()).result?.instructions);
      const tools = listedTools(await server.request('tools/list')).map(({ name }) => name);
      const named = text.match(/\b(task|thought|audit|merkle|skill|server)_[a-z_]+\b/g) ?? [];
      await server.closeInput();

      expect(text).toContain(`mode ${mode}`);
      expect(named.length).toBeGreaterThan(1);
      expect(tools).toEqual(expect.arrayContaining(named));
    }
  },
);

proves(
  'validate.same-schema',
  'the bounds tools/list shows are the bounds validation keeps',
  async ({ colibri }) => {
    const server = await colibri.start();
    const tools = listedTools(await server.request('tools/list'));
    const schema = tools.find((tool) => tool.name === 'task_create')?.inputSchema as JsonSchema;
    const minimal = { title: 'a task', project: 'demo' };

    for (const field of schema.required ?? []) {
      const { error } = await server.call('task_create', { ...minimal, [field]: undefined });
      expect(error).toMatchObject({ code: 'INVALID_PARAMS', message: expect.stringContaining(field) });
    }
    for (const [field, { maxLength, maxItems, type }] of Object.entries(schema.properties ?? {})) {
      const max = maxLength ?? maxItems;
      if (max === undefined || !['title', 'description', 'labels'].includes(field)) continue;
      const sized = (n: number) =>
        type === 'array' ? Array.from({ length: n }, (_, i) => `l${i}`) : 'x'.repeat(n);
      expect((await server.call('task_create', { ...minimal, [field]: sized(max) })).error).toBeUndefined();
      expect((await server.call('task_create', { ...minimal, [field]: sized(max + 1) })).error?.code).toBe(
        'INVALID_PARAMS',
      );
    }
    expect([...(schema.required ?? [])].sort()).toEqual(['project', 'title']);
    expect(schema.properties).toMatchObject({
      title: { maxLength: 256 },
      description: { maxLength: 8_000 },
      labels: { maxItems: 20 },
    });
  },
  { unless: noTasks },
);
