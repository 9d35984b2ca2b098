import { expect } from 'vitest';
import { CLIENT_NAME, MODERN_VERSION, modernMeta, VERSION_KEY } from '../driver/era.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { proves } from './proves.ts';

const HANDSHAKES = ['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const UNSUPPORTED = -32022;

proves(
  'protocol.handshake',
  'each revision with a handshake is served in its own version',
  async ({ colibri }) => {
    for (const revision of HANDSHAKES) {
      const server = colibri.spawn();

      const { result } = await server.initialize(CLIENT_NAME, revision);

      expect(result).toMatchObject({ protocolVersion: revision, serverInfo: { name: 'colibri' } });
      expect((await server.call('server_ping')).envelope?.ok).toBe(true);
    }
  },
);

proves('protocol.handshake', 'an unknown revision is offered one that is known', async ({ colibri }) => {
  const server = colibri.spawn();

  const { result } = await server.initialize(CLIENT_NAME, '1999-01-01');

  expect(HANDSHAKES).toContain(result?.protocolVersion);
});

proves('protocol.handshake', 'a request before the handshake is served', async ({ colibri }) => {
  const server = colibri.spawn();

  const ping = await server.call('server_ping');

  expect(ping.envelope?.ok).toBe(true);
  expect((await server.initialize()).result).toBeDefined();
});

proves(
  'protocol.handshake',
  'a call that says itself who makes it is theirs, whoever made the handshake',
  async ({ colibri }) => {
    const server = colibri.spawn();
    await server.initialize('ada');
    const create = async (meta: object) => {
      const { envelope } = await server.callModern('task_create', { title: 'T', project: 'colibri' }, meta);
      return envelope?.data;
    };

    const created = await Promise.all([create(modernMeta({ clientName: 'bob' })), create({})]);

    expect(created).toMatchObject([
      { task_id: 'T-0001', created_by: 'bob' },
      { task_id: 'T-0002', created_by: 'ada' },
    ]);
  },
);

proves(
  ['protocol.modern', 'protocol.modern-results'],
  'server/discover says what is spoken, what is offered and how long that keeps',
  async ({ colibri }) => {
    const server = colibri.spawn();

    const { result } = await server.modern('server/discover');

    expect(result).toMatchObject({
      supportedVersions: expect.arrayContaining([MODERN_VERSION]),
      capabilities: { tools: { listChanged: false } },
      instructions: expect.any(String),
      resultType: 'complete',
      ttlMs: expect.any(Number),
      cacheScope: 'public',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'colibri' } },
    });
    expect(result?.ttlMs).toBeGreaterThan(0);
  },
);

proves(
  ['protocol.modern', 'protocol.modern-results'],
  'a list and a call need nothing before them, and their results say they are complete',
  async ({ colibri }) => {
    const server = colibri.spawn();

    const list = await server.modern('tools/list');
    const call = await server.callModern('server_ping', {});

    expect(list.result).toMatchObject({ resultType: 'complete', cacheScope: 'public' });
    expect(list.result?.ttlMs).toBeGreaterThan(0);
    expect(call.message.result).toMatchObject({
      resultType: 'complete',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'colibri' } },
    });
    expect(call.envelope?.ok).toBe(true);
  },
);

proves(
  'protocol.both-eras',
  'a probe for the modern era after a handshake is an error, and the server goes on',
  async ({ colibri }) => {
    const server = await colibri.start();

    const probe = await server.modern('server/discover');

    expect(probe.error).toBeDefined();
    expect((await server.call('server_ping')).envelope?.ok).toBe(true);
  },
);

proves(
  'protocol.both-eras',
  'S8: a handshake on a modern connection is a method that does not exist, and the server goes on',
  async ({ colibri }) => {
    const openings = [
      (server: ServerProcess) => server.modern('server/discover'),
      (server: ServerProcess) => server.callModern('server_ping', {}),
    ];
    for (const open of openings) {
      const server = colibri.spawn();
      await open(server);

      const handshake = await server.initialize();
      const modernHandshake = await server.modern('initialize');

      expect([handshake.error?.code, modernHandshake.error?.code]).toEqual([-32601, -32601]);
      expect(handshake.error).toMatchObject({ data: { supported: [MODERN_VERSION] } });
      expect((await server.callModern('server_ping', {})).envelope?.ok).toBe(true);
    }
  },
);

proves(
  ['protocol.version-per-request', 'protocol.both-eras'],
  'an unsupported version first is refused with the supported ones and leaves either era open',
  async ({ colibri }) => {
    const server = colibri.spawn();

    const refused = await server.modern('server/discover', {}, modernMeta({ version: '2099-01-01' }));

    expect(refused.error).toMatchObject({ code: UNSUPPORTED, data: { supported: [MODERN_VERSION] } });
    expect((await server.initialize()).result).toBeDefined();
  },
);

proves(
  'protocol.version-per-request',
  'an unsupported version later is refused, the next right one served',
  async ({ colibri }) => {
    const server = colibri.spawn();
    await server.callModern('server_ping', {});

    const refused = await server.callModern('server_ping', {}, modernMeta({ version: '2025-11-25' }));
    const served = await server.callModern('server_ping', {});

    expect(refused.message.error).toMatchObject({
      code: UNSUPPORTED,
      data: { supported: [MODERN_VERSION], requested: '2025-11-25' },
    });
    expect(served.envelope?.ok).toBe(true);
  },
);

proves(
  'protocol.envelope',
  'a modern request without what each must carry is -32602 and says what is missing',
  async ({ colibri }) => {
    const server = colibri.spawn();
    await server.callModern('server_ping', {});

    const bare = await server.request('tools/list');
    const noCapabilities = await server.modern('tools/list', {}, { [VERSION_KEY]: MODERN_VERSION });

    expect(bare.error).toMatchObject({ code: -32602, message: expect.stringContaining(VERSION_KEY) });
    expect(noCapabilities.error?.code).toBe(-32602);
  },
);

for (const era of ['legacy', 'modern'] as const) {
  proves(
    ['protocol.one-answer', 'protocol.envelope'],
    `a ${era} request whose _meta has a wrong shape is answered with an error`,
    async ({ colibri }) => {
      const server = await colibri.start({ era });
      const pingAgain = () =>
        era === 'modern' ? server.callModern('server_ping') : server.call('server_ping');
      await pingAgain();
      const tokens = [{}, null, [], 1.5].map((progressToken) => ({ ...modernMeta(), progressToken }));
      const shapes: unknown[] = [5, 'text', null, [], true, ...tokens];

      for (const [id, _meta] of shapes.entries()) {
        server.send({ jsonrpc: '2.0', id: `shape-${id}`, method: 'tools/list', params: { _meta } });
      }
      await pingAgain();

      expect(server.takeUnclaimed().map(({ id, error }) => [id, error?.code])).toEqual(
        shapes.map((_, id) => [`shape-${id}`, expect.toBeOneOf([-32600, -32602])]),
      );
    },
  );
}

proves(
  'protocol.unknown-method',
  'a method that does not exist is -32601 in both eras',
  async ({ colibri }) => {
    const [legacy, modern] = [await colibri.start(), colibri.spawn()];

    for (const method of ['tools/destroy', '', '__proto__', 'constructor', 'toString', 'notifications/x']) {
      expect((await legacy.request(method)).error?.code).toBe(-32601);
      expect((await modern.modern(method)).error?.code).toBe(-32601);
    }
  },
);

proves(
  'protocol.handshake',
  'the ping method answers with the handshake and is gone without',
  async ({ colibri }) => {
    const [legacy, modern] = [await colibri.start(), colibri.spawn()];

    expect((await legacy.request('ping')).result).toEqual({});
    expect((await modern.modern('ping')).error?.code).toBe(-32601);
  },
);

proves(
  'protocol.cancelled',
  'a cancelled call is never answered, its neighbours are',
  async ({ colibri }) => {
    const server = await colibri.start();
    const lines = [1, 2, 3, 4, 5].map((n) => callLine(`call-${n}`));
    lines.push(
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'call-3' } }),
    );

    server.write(`${lines.join('\n')}\n`);
    await server.call('server_ping');

    expect(server.takeUnclaimed().map((message) => message.id)).toEqual([
      'call-1',
      'call-2',
      'call-4',
      'call-5',
    ]);
  },
);

proves('protocol.cancelled', 'a cancellation of nothing changes nothing', async ({ colibri }) => {
  const server = await colibri.start();

  for (const requestId of [99, 'nobody', null, {}]) server.notify('notifications/cancelled', { requestId });
  server.notify('notifications/cancelled');

  expect((await server.call('server_ping')).envelope?.ok).toBe(true);
});

proves(
  'protocol.one-answer',
  'an id used three times at once is answered three times',
  async ({ colibri }) => {
    const server = await colibri.start();

    server.write(`${callLine('same')}\n`.repeat(3));
    await server.call('server_ping');

    expect(server.takeUnclaimed().map((message) => message.id)).toEqual(['same', 'same', 'same']);
  },
);

function callLine(id: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'server_ping' } });
}
