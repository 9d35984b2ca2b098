import { expect } from 'vitest';
import { toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_get', 'task_list');
const noThoughts = await toolsMissing('task_create', 'thought_record');

const TASK = { title: 'a task', project: 'demo' };

proves(
  ['repair.nothing-else', 'envelope.pattern-a', 'envelope.issues', 'rejected.pair'],
  'a wrong type is refused in our own envelope and recorded',
  async ({ colibri }) => {
    const server = await colibri.start();

    const { envelope, isError } = await server.call('server_ping', []);

    expect(isError).toBe(true);
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: 'INVALID_PARAMS', details: { issues: [{ code: 'invalid_type', path: [] }] } },
    });
    expect(colibri.readAudit().rows.map((row) => row.outcome)).toEqual(['running', 'rejected']);
  },
);

proves(
  ['repair.nothing-else', 'envelope.teaches', 'envelope.issues'],
  'a value out of range names the field and the bound',
  async ({ colibri }) => {
    const server = await colibri.start();

    const { error } = await server.call('task_create', { ...TASK, estimate_hours: 1_001 });

    expect(error?.code).toBe('INVALID_PARAMS');
    expect(error?.message).toMatch(/estimate_hours.*1000/);
    expect(error?.details?.issues).toMatchObject([{ path: ['estimate_hours'] }]);
  },
  { unless: noTasks },
);

proves('repair.arguments', 'arguments left out are no arguments', async ({ colibri }) => {
  const server = await colibri.start();

  expect((await server.call('server_ping')).envelope?.ok).toBe(true);
  expect(colibri.readAudit().rows[0]).toMatchObject({ schema_valid: true, repaired: [] });
});

proves(
  ['repair.arguments', 'repair.noted'],
  'arguments null are no arguments, and that is noted',
  async ({ colibri }) => {
    const server = await colibri.start();

    expect((await server.call('server_ping', null)).envelope?.ok).toBe(true);
    expect(colibri.readAudit().rows[0]?.repaired).toEqual([expect.stringContaining('null')]);
  },
);

proves(
  ['repair.arguments', 'repair.noted'],
  'arguments as JSON text are parsed, and that is noted',
  async ({ colibri }) => {
    const server = await colibri.start();

    expect((await server.call('server_ping', ' {} ')).envelope?.ok).toBe(true);
    expect(colibri.readAudit().rows[0]).toMatchObject({
      schema_valid: true,
      repaired: [expect.stringContaining('object')],
    });
  },
);

proves('repair.nothing-else', 'arguments that are text but no object are refused', async ({ colibri }) => {
  const server = await colibri.start();

  for (const text of ['', 'hello', '[]', '5', 'null', '"{}"', '{"a":1', '{}{}']) {
    expect([text, (await server.call('server_ping', text)).error?.code]).toEqual([text, 'INVALID_PARAMS']);
  }
});

proves(
  ['repair.null', 'repair.noted'],
  'null for an optional field counts as absent, and that is noted',
  async ({ colibri }) => {
    const server = await colibri.start();

    const created = await server.call('task_create', {
      ...TASK,
      parent_id: null,
      labels: null,
      priority: null,
    });

    expect(created.envelope?.data).toMatchObject({ task_id: 'T-0001' });
    expect(colibri.readAudit().rows[0]?.repaired.join()).toMatch(/parent_id.*labels.*priority/);
  },
  { unless: noTasks },
);

proves(
  ['repair.null', 'repair.nothing-else'],
  'null for a required field is refused',
  async ({ colibri }) => {
    const server = await colibri.start();

    const { error } = await server.call('task_create', { ...TASK, title: null });

    expect(error).toMatchObject({ code: 'INVALID_PARAMS', message: expect.stringContaining('title') });
  },
  { unless: noTasks },
);

proves(
  ['repair.json-text', 'repair.noted'],
  'an array sent as JSON text is parsed',
  async ({ colibri }) => {
    const server = await colibri.start();

    await server.call('task_create', { ...TASK, labels: '["red","green"]' });

    expect((await server.call('task_get', { task_id: 'T-0001' })).envelope?.data?.labels).toEqual([
      'red',
      'green',
    ]);
    expect(colibri.readAudit().rows[0]?.repaired).toEqual([expect.stringMatching(/^labels.*array/)]);
  },
  { unless: noTasks },
);

proves(
  'repair.json-text',
  'an object sent as JSON text is parsed',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);

    const recorded = await server.call('thought_record', { ...thought(), metadata: '{"deep":{"er":[1,2]}}' });

    expect(recorded.error).toBeUndefined();
    const listed = await server.call('thought_record_list', { task_id: 'T-0001' });
    expect(listed.envelope?.data?.thoughts).toMatchObject([{ metadata: { deep: { er: [1, 2] } } }]);
  },
  { unless: noThoughts },
);

proves(
  ['repair.scalars', 'repair.noted'],
  '"42" and "true" are taken where a number and a boolean are due',
  async ({ colibri }) => {
    const server = await colibri.start();

    await server.call('task_create', { ...TASK, estimate_hours: '42', proof_grade: 'true' });

    const task = await server.call('task_get', { task_id: 'T-0001' });
    expect(task.envelope?.data).toMatchObject({ estimate_hours: 42, proof_grade: true });
    expect(colibri.readAudit().rows[0]?.repaired).toHaveLength(2);
  },
  { unless: noTasks },
);

proves(
  ['repair.scalars', 'repair.nothing-else'],
  'a text that is not exactly a number or boolean is refused',
  async ({ colibri }) => {
    const server = await colibri.start();
    const inexact = ['', ' 42', '042', '4e1', '+4', '0x1f', '1_0', 'Infinity', 'NaN', 'null', '1,5'];

    for (const estimate_hours of inexact) {
      const { error } = await server.call('task_create', { ...TASK, estimate_hours });
      expect([estimate_hours, error?.code]).toEqual([estimate_hours, 'INVALID_PARAMS']);
    }
    for (const proof_grade of ['', 'True', 'yes', '1', 1]) {
      const { error } = await server.call('task_create', { ...TASK, proof_grade });
      expect([proof_grade, error?.code]).toEqual([proof_grade, 'INVALID_PARAMS']);
    }
  },
  { unless: noTasks },
);

proves(
  'repair.nothing-else',
  'a text stays a text where text is due',
  async ({ colibri }) => {
    const server = await colibri.start();

    await server.call('task_create', { ...TASK, title: '42', description: '{"a":1}' });

    const task = await server.call('task_get', { task_id: 'T-0001' });
    expect(task.envelope?.data).toMatchObject({ title: '42', description: '{"a":1}' });
    expect(colibri.readAudit().rows[0]?.repaired).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  ['repair.nothing-else', 'envelope.teaches'],
  'an unknown field is refused by name, with the one that was meant and those there are',
  async ({ colibri }) => {
    const server = await colibri.start();

    const { error } = await server.call('task_create', { ...TASK, titel: 'x' });

    expect(error?.code).toBe('INVALID_PARAMS');
    expect(error?.message).toMatch(/"titel".*title.*project/s);
    expect((await server.call('server_ping', { verbose: true })).error?.message).toContain('"verbose"');
  },
  { unless: noTasks },
);

proves(
  ['envelope.unknown-tool', 'dispatch.unknown', 'unknown.pair'],
  'an unknown tool is -32602 with the nearest name, and recorded',
  async ({ colibri }) => {
    const server = await colibri.start();

    const { message } = await server.call('server_pingg', { secret: 'x' });

    expect(message.error).toMatchObject({ code: -32602, message: expect.stringContaining('server_ping') });
    expect(colibri.readAudit().rows).toMatchObject([
      { stage: 'enter', tool: 'server_pingg', schema_valid: false },
      { stage: 'exit', tool: 'server_pingg', outcome: 'rejected', schema_valid: false },
    ]);
  },
);

proves(
  ['envelope.pattern-b', 'envelope.no-stack', 'envelope.teaches'],
  'a handler that refuses speaks in our envelope, without a stack',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);

    const { envelope, isError, message } = await server.call('task_get', { task_id: 'T-0007' });

    expect(isError).toBe(true);
    expect(envelope).toMatchObject({ ok: true, data: { ok: false, error: { code: 'ERR_TASK_NOT_FOUND' } } });
    expect(JSON.stringify(envelope)).toContain('T-0001');
    expect(JSON.stringify(message)).not.toMatch(/\bat .*:\d+:\d+|node_modules|"stack"/);
  },
  { unless: noTasks },
);

proves(
  ['envelope.success', 'envelope.same-json'],
  'success and failure say the same in both places, always as an object',
  async ({ colibri }) => {
    const server = await colibri.start();

    for (const args of [{}, { no: 1 }]) {
      const { message, envelope } = await server.call('server_health', args);
      const content = message.result?.content as { type: string; text: string }[];
      expect(content).toHaveLength(1);
      expect(content[0]?.type).toBe('text');
      expect(JSON.parse(content[0]?.text ?? '')).toEqual(envelope);
      expect(envelope).toBeTypeOf('object');
    }
  },
);

proves('envelope.success', 'a success carries its data and is no error', async ({ colibri }) => {
  const server = await colibri.start();

  const { envelope, message } = await server.call('server_ping');

  expect(envelope).toEqual({
    ok: true,
    data: {
      version: expect.any(String),
      mode: 'FULL',
      uptime_ms: expect.any(Number),
      timestamp: expect.any(String),
    },
  });
  expect(message.result?.isError).not.toBe(true);
});

proves(
  ['envelope.no-stack', 'protocol.one-answer'],
  'a tools/call without a proper name is a protocol error in plain words',
  async ({ colibri }) => {
    const server = await colibri.start();

    for (const params of [undefined, {}, { name: 5 }, { name: null }, { name: ['server_ping'] }]) {
      const { error } = await server.request('tools/call', params);
      expect(error?.code).toBe(-32602);
      expect(error?.message).toContain('name');
      expect(error?.message).not.toMatch(/\n|"code":|"path":/);
    }
  },
);

proves(
  'path.order',
  'a tools/call without a proper name is recorded like every other',
  async ({ colibri }) => {
    const server = await colibri.start();

    await server.request('tools/call', {});
    await server.call('server_ping');

    expect(colibri.readAudit().rows.map((row) => row.outcome)).toEqual([
      'running',
      'rejected',
      'running',
      'ok',
    ]);
  },
);

proves(
  'envelope.no-stack',
  'a request of the protocol with wrong parameters is -32602 in plain words',
  async ({ colibri }) => {
    const server = await colibri.start();
    const requests: [method: string, params: object][] = [
      ['tools/list', { cursor: 5 }],
      ['initialize', {}],
      ['initialize', { protocolVersion: 5, capabilities: {}, clientInfo: { name: 'x', version: '1' } }],
    ];

    for (const [method, params] of requests) {
      const { error } = await server.request(method, params);
      expect([method, params, error?.code]).toEqual([method, params, -32602]);
      expect(error?.message).not.toMatch(/\n|"path":/);
    }
  },
);

function thought() {
  return { task_id: 'T-0001', type: 'decision', content: 'because' };
}
