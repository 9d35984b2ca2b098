import { type ChildProcess, spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { InMemoryTransport } from '@modelcontextprotocol/server';
import { build } from 'esbuild';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import * as z from 'zod';
import { openDatabase } from '../../tests/driver/database.ts';
import { readConfig } from '../config.ts';
import { systemTools } from '../domains/system/tools.ts';
import { ColibriError } from '../errors.ts';
import * as serverModule from '../server.ts';
import {
  type AuditSink,
  type ColibriServerContext,
  createNoOpAuditSink,
  createServer,
  main,
  registerColibriTool,
  start,
  stop,
  type ToolEnterEvent,
  type ToolExitEvent,
} from '../server.ts';
import { openScratch, scratchFolder } from './storage/scratch.ts';

const SOURCE = fileURLToPath(new URL('../server.ts', import.meta.url));
const ROOT = resolve(dirname(SOURCE), '..');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

const Nothing = z.strictObject({});

type Options = NonNullable<Parameters<typeof createServer>[0]>;

beforeEach(() => {
  // Whatever the developer has set must not decide a test.
  for (const name of Object.keys(process.env)) {
    if (/^(COLIBRI|AMS)_/.test(name)) vi.stubEnv(name, undefined);
  }
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** A transport that is connected to nobody and counts what it is told. */
function stubTransport(start: () => Promise<void> = () => Promise.resolve()) {
  return { start: vi.fn(start), send: vi.fn(() => Promise.resolve()), close: vi.fn(() => Promise.resolve()) };
}

/** A sink that remembers what it was told, in order. */
function recordingSink() {
  const enters: ToolEnterEvent[] = [];
  const exits: ToolExitEvent[] = [];
  const order: string[] = [];
  const sink: AuditSink = {
    enter(event) {
      enters.push(event);
      order.push(`enter ${event.tool}`);
    },
    exit(event) {
      exits.push(event);
      order.push(`exit ${event.tool}`);
    },
  };
  return { sink, enters, exits, order };
}

/** A server that ends neither the process nor the runner's handlers, and says nothing. */
function quietServer(options: Options = {}): ColibriServerContext {
  return createServer({
    mode: 'FULL',
    transport: stubTransport(),
    logger: () => undefined,
    installGlobalHandlers: false,
    ...options,
  });
}

function registerPing(ctx: ColibriServerContext): void {
  // Ping asks for no more than this; what else health reports on is not its business.
  const facts = {
    version: ctx.version,
    mode: ctx.mode,
    uptimeMs: () => ctx.nowMs() - ctx.bootStartMs,
    now: () => Date.UTC(2026, 0, 1),
  };
  const [ping] = systemTools(facts as Parameters<typeof systemTools>[0]);
  if (ping?.effect !== 'reads') throw new Error('the system family lost its ping');
  registerColibriTool(
    ctx,
    ping.name,
    { inputSchema: ping.input, outputSchema: ping.output, mutates: false },
    (args, call, tx) => ping.handle(args, call, tx),
  );
}

/** A started server with a client of the SDK at the other end of an in-memory pair. */
async function connect(options: Options, register: (ctx: ColibriServerContext) => void = registerPing) {
  const [clientEnd, serverEnd] = InMemoryTransport.createLinkedPair();
  const ctx = quietServer({ transport: serverEnd, ...options });
  register(ctx);
  await start(ctx);
  const client = new Client({ name: 'a-client', version: '1.0.0' });
  await client.connect(clientEnd);
  onTestFinished(() => stop(ctx));
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const result = await client.callTool({ name, arguments: args });
    return { result, envelope: result.structuredContent as Envelope };
  };
  return { ctx, client, call };
}

interface Envelope {
  readonly ok: boolean;
  readonly data?: Record<string, unknown>;
  readonly error?: { readonly code: string; readonly message: string; readonly details?: object };
}

/** Registers a tool without arguments. */
const tool =
  (name: string, handler: () => unknown, mutates = false) =>
  (ctx: ColibriServerContext): void =>
    registerColibriTool(ctx, name, { inputSchema: Nothing, mutates }, handler);

/** Takes the runner's process-wide handlers away for the length of a test. */
function withoutGlobalHandlers(): void {
  for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
    const kept = process.listeners(event as 'uncaughtException');
    process.removeAllListeners(event);
    onTestFinished(() => {
      process.removeAllListeners(event);
      for (const listener of kept) process.on(event as 'uncaughtException', listener);
    });
  }
}

const globalHandlers = () => ({
  unhandledRejection: process.listenerCount('unhandledRejection'),
  uncaughtException: process.listenerCount('uncaughtException'),
});

describe('the module', () => {
  test('has six runtime exports and no other', () => {
    expect(Object.keys(serverModule).sort()).toEqual(
      ['createNoOpAuditSink', 'createServer', 'main', 'registerColibriTool', 'start', 'stop'].sort(),
    );
  });

  test('exports five types and no other', () => {
    const source = readFileSync(SOURCE, 'utf8');
    const declared = [...source.matchAll(/^export (?:interface|type|class|enum) (\w+)/gm)].map(
      ([, name]) => name,
    );
    const listed = [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names]) =>
      (names ?? '').split(',').map((name) => name.trim()),
    );

    expect([...declared, ...listed].sort()).toEqual(
      ['AuditSink', 'ColibriServerContext', 'ColibriToolConfig', 'ToolEnterEvent', 'ToolExitEvent'].sort(),
    );
    expect(source).not.toMatch(/^export (?:\*|default)/m);
  });
});

describe('createServer', () => {
  test('T-1 takes its version from package.json when none is given', () => {
    const ctx = createServer();

    expect(ctx.version).toBe(PACKAGE.version);
    expect(ctx.getVersion()).toBe(PACKAGE.version);
  });

  test('T-1 says that package.json could not be read, and why', async () => {
    const fs = await import('node:fs');
    vi.doMock('node:fs', () => ({
      ...fs,
      readFileSync: () => {
        throw new Error('the disk is gone');
      },
    }));
    vi.resetModules();
    onTestFinished(() => {
      vi.doUnmock('node:fs');
      vi.resetModules();
    });
    const broken = await import('../server.ts');

    expect(() => broken.createServer({ mode: 'FULL' })).toThrow(
      'Failed to read package.json version: the disk is gone',
    );
    expect(broken.createServer({ mode: 'FULL', version: '1.2.3' }).version).toBe('1.2.3');
  });

  test('T-2 lets a given version win over package.json', () => {
    const ctx = createServer({ version: '9.9.9-test' });

    expect(ctx.getVersion()).toBe('9.9.9-test');
  });

  test('T-3 lets a given mode win over the environment, even one it would refuse', () => {
    vi.stubEnv('COLIBRI_MODE', 'no such mode');

    const ctx = createServer({ mode: 'READONLY' });

    expect(ctx.mode).toBe('READONLY');
    expect(ctx.getMode()).toBe('READONLY');
  });

  test('T-4 does not start its transport', () => {
    const transport = stubTransport();

    const ctx = createServer({ mode: 'FULL', transport });

    expect(transport.start).not.toHaveBeenCalled();
    expect(ctx.isConnected()).toBe(false);
  });

  test('T-5 installs no process-wide handler', () => {
    const before = globalHandlers();

    createServer();

    expect(globalHandlers()).toEqual(before);
  });

  test('T-6 takes its mode from the configuration when none is given', () => {
    vi.stubEnv('COLIBRI_MODE', 'MINIMAL');

    expect(createServer().mode).toBe('MINIMAL');
    expect(createServer({ config: readConfig({ COLIBRI_MODE: 'TEST' }, '/') }).mode).toBe('TEST');
  });

  test('T-6 starts in FULL when the environment says nothing', () => {
    expect(createServer().mode).toBe('FULL');
  });

  test('T-7 tells a given sink of a call', async () => {
    const { sink, order } = recordingSink();
    const { call } = await connect(
      { auditSink: sink },
      tool('probe', () => ({})),
    );

    await call('probe');

    expect(order).toEqual(['enter probe', 'exit probe']);
  });

  test('measures uptime from the given moment with the given clock', () => {
    const ctx = createServer({ mode: 'FULL', nowMs: () => 1_500, bootStartMs: 1_000 });

    expect(ctx.nowMs() - ctx.bootStartMs).toBe(500);
    expect(createServer({ mode: 'FULL', nowMs: () => 42 }).bootStartMs).toBe(42);
  });

  test('hands out methods that do what the functions of the same name do', async () => {
    const transport = stubTransport();
    const ctx = quietServer({ transport });

    ctx.registerColibriTool('probe', { inputSchema: Nothing, mutates: false }, () => ({}));
    await ctx.start();
    const connected = ctx.isConnected();
    await ctx.stop();

    expect([...ctx.tools.keys()]).toEqual(['probe']);
    expect(connected).toBe(true);
    expect(transport.close).toHaveBeenCalled();
  });
});

describe('registerColibriTool', () => {
  test('T-8 makes server_ping retrievable on a server that is not connected', () => {
    const ctx = quietServer();

    registerPing(ctx);

    expect(ctx.isConnected()).toBe(false);
    expect(ctx.tools.get('server_ping')).toMatchObject({ name: 'server_ping', effect: 'reads' });
  });

  test('T-9 refuses a name that is taken and keeps the first tool', () => {
    const ctx = quietServer();
    tool('probe', () => 'first')(ctx);
    const first = ctx.tools.get('probe');

    expect(() => tool('probe', () => 'second')(ctx)).toThrow('tool already registered: probe');
    expect(ctx.tools.get('probe')).toBe(first);
  });

  test.each(['server-ping', '', 'Server_ping', '1ping', 'server ping', 'ping\n', 'pîng'])(
    'T-10 refuses the name %j',
    (name) => {
      const ctx = quietServer();

      expect(() => tool(name, () => ({}))(ctx)).toThrow('invalid tool name:');
      expect(ctx.tools.size).toBe(0);
    },
  );

  test.each(['server_ping', '_', '_9', 'a1_b2'])('T-10 takes the name %j', (name) => {
    const ctx = quietServer();

    tool(name, () => ({}))(ctx);

    expect([...ctx.tools.keys()]).toEqual([name]);
  });

  test('T-10 refuses a name that is no text at all', () => {
    const ctx = quietServer();

    expect(() => tool(7 as unknown as string, () => ({}))(ctx)).toThrow('invalid tool name: 7');
  });

  test.each([
    ['a text schema', z.string()],
    ['a raw shape', { field: z.string() }],
    ['a JSON Schema', { type: 'object' }],
    ['nothing', undefined],
  ])('T-11 refuses %s for an input schema', (_, schema) => {
    const ctx = quietServer();
    const inputSchema = schema as unknown as z.ZodObject;

    expect(() => registerColibriTool(ctx, 'probe', { inputSchema, mutates: false }, () => ({}))).toThrow(
      'inputSchema must be a Zod object',
    );
    expect(ctx.tools.size).toBe(0);
  });

  test('derives effect, title and summary from the one configuration', () => {
    const ctx = quietServer();

    registerColibriTool(
      ctx,
      'probe',
      {
        title: 'Probe',
        description: 'Says nothing.',
        inputSchema: Nothing,
        mutates: true,
        family: 'tasks',
      },
      () => ({}),
    );

    expect(ctx.tools.get('probe')).toMatchObject({
      title: 'Probe',
      summary: 'Says nothing.',
      effect: 'writes',
      family: 'tasks',
    });
  });
});

describe('the five stages, seen by a client', () => {
  test('T-12 server_ping answers its version, mode and uptime in a success envelope', async () => {
    const { call } = await connect({ version: '3.2.1', mode: 'TEST', nowMs: () => 90.9, bootStartMs: 20 });

    const { result, envelope } = await call('server_ping');

    expect(envelope).toEqual({
      ok: true,
      data: { version: '3.2.1', mode: 'TEST', uptime_ms: 70, timestamp: '2026-01-01T00:00:00.000Z' },
    });
    expect(result.content).toEqual([{ type: 'text', text: JSON.stringify(envelope) }]);
    expect(result.isError).toBeUndefined();
  });

  test.each([
    ['the moment of the start', 50],
    ['a clock that fell behind', 49],
  ])('T-13 uptime_ms is never negative, at %s', async (_, now) => {
    const { call } = await connect({ nowMs: () => now, bootStartMs: 50 });

    const { envelope } = await call('server_ping');

    expect(envelope.data?.uptime_ms).toBe(0);
  });

  test('T-14 a successful call is one enter and one exit with the same correlation id', async () => {
    const { sink, enters, exits } = recordingSink();
    let now = 0;
    const { call } = await connect({
      auditSink: sink,
      nowMs: () => {
        now += 7.5;
        return now;
      },
    });

    await call('server_ping');

    expect(enters).toHaveLength(1);
    expect(exits).toHaveLength(1);
    expect(exits[0]).toMatchObject({ tool: 'server_ping', correlationId: enters[0]?.correlationId });
    expect(enters[0]?.correlationId).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(exits[0]?.durationMs).toBeGreaterThan(0);
    expect(Number.isInteger(exits[0]?.durationMs)).toBe(true);
  });

  test('T-14 the events of two calls carry different correlation ids', async () => {
    const { sink, enters } = recordingSink();
    const { call } = await connect({ auditSink: sink });

    await call('server_ping');
    await call('server_ping');

    expect(new Set(enters.map((event) => event.correlationId)).size).toBe(2);
  });

  test('T-14 both events are frozen, and so is the list of effects', async () => {
    const { sink, enters, exits } = recordingSink();
    const { call } = await connect({ auditSink: sink });

    await call('server_ping');

    expect(Object.isFrozen(enters[0])).toBe(true);
    expect(Object.isFrozen(exits[0])).toBe(true);
    expect(Object.isFrozen(exits[0]?.effects)).toBe(true);
    expect(exits[0]?.entered).toBe(enters[0]);
  });

  test('T-14 the enter event says who called, with what, and that nothing was repaired', async () => {
    const { sink, enters } = recordingSink();
    const { call } = await connect({ auditSink: sink, nowMs: () => 12 });

    await call('server_ping');

    expect(enters[0]).toMatchObject({
      tool: 'server_ping',
      args: {},
      timestamp: 12,
      actor: 'a-client',
      mutates: false,
      schemaValid: true,
      repaired: [],
    });
  });

  test('T-15 on success the exit event has a result and no error', async () => {
    const { sink, exits } = recordingSink();
    const { call } = await connect(
      { auditSink: sink },
      tool('probe', () => ({ found: 3 })),
    );

    await call('probe');

    expect(exits[0]?.result).toEqual({ found: 3 });
    expect(exits[0]?.error).toBeUndefined();
    expect(exits[0]?.outcome).toBe('ok');
  });

  test('T-16 on failure the exit event has the very error that was thrown and no result', async () => {
    const thrown = new Error('the handler gave up');
    const { sink, exits } = recordingSink();
    const { call } = await connect(
      { auditSink: sink },
      tool('probe', () => {
        throw thrown;
      }),
    );

    const { result, envelope } = await call('probe');

    expect(exits).toHaveLength(1);
    expect(exits[0]?.error).toBe(thrown);
    expect(exits[0]?.result).toBeUndefined();
    expect(exits[0]).toMatchObject({ outcome: 'error', errorCode: 'HANDLER_ERROR' });
    expect(envelope).toEqual({ ok: false, error: { code: 'HANDLER_ERROR', message: 'the handler gave up' } });
    expect(result.isError).toBe(true);
  });

  test('T-17 two calls at once of one tool run one after the other', async () => {
    const { sink, order } = recordingSink();
    const { call } = await connect({ auditSink: sink });

    await Promise.all([call('server_ping'), call('server_ping')]);

    expect(order).toEqual(['enter server_ping', 'exit server_ping', 'enter server_ping', 'exit server_ping']);
  });

  test('T-17 two calls at once of different tools run one after the other, in the order sent', async () => {
    const { sink, order } = recordingSink();
    const { call } = await connect({ auditSink: sink }, (ctx) => {
      tool('slow', () => new Promise((done) => setTimeout(() => done({}), 20)))(ctx);
      tool('quick', () => ({}))(ctx);
    });

    await Promise.all([call('slow'), call('quick')]);

    expect(order).toEqual(['enter slow', 'exit slow', 'enter quick', 'exit quick']);
  });

  test('T-18 arguments the schema refuses never reach the handler and leave one pair of events', async () => {
    const { sink, enters, exits } = recordingSink();
    const handler = vi.fn(() => ({}));
    const { call } = await connect({ auditSink: sink }, (ctx) =>
      registerColibriTool(
        ctx,
        'probe',
        { inputSchema: z.object({ required: z.string() }), mutates: true },
        handler,
      ),
    );

    const { result, envelope } = await call('probe', {});

    expect(envelope).toMatchObject({ ok: false, error: { code: 'INVALID_PARAMS' } });
    expect(envelope.error?.details).toMatchObject({ issues: [{ code: 'invalid_type', path: ['required'] }] });
    expect(result.isError).toBe(true);
    expect(handler).not.toHaveBeenCalled();
    expect(enters).toHaveLength(1);
    expect(enters[0]).toMatchObject({ schemaValid: false, args: {} });
    expect(exits).toHaveLength(1);
    expect(exits[0]).toMatchObject({ outcome: 'rejected', errorCode: 'INVALID_PARAMS' });
    expect(exits[0]?.error).toBeInstanceOf(ColibriError);
  });

  test('a name outside the surface is answered -32602, after one pair of events', async () => {
    const { sink, enters, exits } = recordingSink();
    const { client } = await connect({ auditSink: sink });

    const answer = client.callTool({ name: 'server_pong', arguments: {} });

    await expect(answer).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('Did you mean server_ping?'),
    });
    expect(enters).toMatchObject([{ tool: 'server_pong', schemaValid: false }]);
    expect(exits).toMatchObject([{ tool: 'server_pong', outcome: 'rejected' }]);
  });

  test('a tool the mode does not admit is listed nowhere, and calling it is denied and audited', async () => {
    const { sink, exits } = recordingSink();
    const handler = vi.fn(() => ({}));
    const { client, call } = await connect({ auditSink: sink, mode: 'READONLY' }, (ctx) => {
      registerPing(ctx);
      tool('change', handler, true)(ctx);
    });

    const { tools } = await client.listTools();
    const { envelope } = await call('change');

    expect(tools.map(({ name }) => name)).toEqual(['server_ping']);
    expect(envelope.error).toMatchObject({
      code: 'HANDLER_ERROR',
      message: expect.stringMatching(/^TOOL_NOT_ADMITTED: /),
    });
    expect(handler).not.toHaveBeenCalled();
    expect(exits).toMatchObject([{ outcome: 'denied', errorCode: 'TOOL_NOT_ADMITTED' }]);
  });

  test('what was repaired in the arguments is told to the sink', async () => {
    const { sink, enters } = recordingSink();
    const { call } = await connect({ auditSink: sink }, (ctx) =>
      registerColibriTool(
        ctx,
        'probe',
        { inputSchema: z.object({ n: z.number() }), mutates: false },
        ({ n }) => ({
          n,
        }),
      ),
    );

    const { envelope } = await call('probe', { n: '42' });

    expect(envelope.data).toEqual({ n: 42 });
    expect(enters[0]).toMatchObject({ args: { n: 42 }, repaired: ['n: text taken as number'] });
  });
});

describe('what a handler throws', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;

  test.each<[string, unknown, string | RegExp]>([
    ['a text', 'just words', 'just words'],
    ['null', null, 'null'],
    ['undefined', undefined, 'undefined'],
    ['a circular object', circular, '[object Object]'],
    ['an object without a text form', Object.create(null), 'something without a text form was thrown'],
    ['an error of a million characters', new Error('x'.repeat(1_000_000)), /^x{4000}$/],
    ['an error with half a character', new Error('half \ud83d'), 'half \ufffd'],
    ['an error that names itself as its cause', selfCaused(), 'around and around'],
  ])('is one HANDLER_ERROR and one outcome, and frees the lock: %s', async (_, thrown, message) => {
    const { sink, exits, order } = recordingSink();
    const { call } = await connect({ auditSink: sink }, (ctx) => {
      tool('probe', () => {
        throw thrown;
      })(ctx);
      registerPing(ctx);
    });

    const { result, envelope } = await call('probe');
    const after = await call('server_ping');

    expect(envelope).toEqual({
      ok: false,
      error: {
        code: 'HANDLER_ERROR',
        message: typeof message === 'string' ? message : expect.stringMatching(message),
      },
    });
    expect(result.isError).toBe(true);
    expect(exits[0]?.error).toBeInstanceOf(Error);
    expect(order.slice(0, 2)).toEqual(['enter probe', 'exit probe']);
    expect(after.envelope.ok).toBe(true);
  });

  function selfCaused(): Error {
    const error = new Error('around and around');
    error.cause = error;
    return error;
  }
});

describe('a sink that fails', () => {
  test.each<[string, () => void | Promise<void>, string]>([
    [
      'throws',
      () => {
        throw new Error('no room');
      },
      'no room',
    ],
    ['rejects', () => Promise.reject(new Error('no room')), 'no room'],
    ['rejects with a text', () => Promise.reject('no words'), 'no words'],
  ])('in enter stops the call before the handler and frees the lock: it %s', async (_, fail, reason) => {
    const handler = vi.fn(() => ({}));
    const enter = vi.fn<AuditSink['enter']>().mockImplementationOnce(fail);
    const exit = vi.fn<AuditSink['exit']>();
    const { call } = await connect({ auditSink: { enter, exit } }, tool('probe', handler, true));

    const { result, envelope } = await call('probe');
    const after = await call('probe');

    expect(envelope.error?.code).toBe('AUDIT_ENTER_FAILED');
    expect(envelope.error?.message).toContain(reason);
    expect(result.isError).toBe(true);
    expect(after.envelope.ok).toBe(true);
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test('in exit of a reading call is logged and changes no answer', async () => {
    const logged: unknown[][] = [];
    const exit = vi.fn<AuditSink['exit']>().mockRejectedValueOnce(new Error('the pen broke'));
    const { call } = await connect(
      { auditSink: { enter() {}, exit }, logger: (...parts) => logged.push(parts) },
      tool('probe', () => ({ read: true })),
    );

    const { envelope } = await call('probe');
    const after = await call('probe');

    expect(envelope).toEqual({ ok: true, data: { read: true } });
    expect(exit).toHaveBeenCalledTimes(2);
    expect(logged.flat().join(' ')).toMatch(/probe .*could not be recorded: the pen broke/);
    expect(after.envelope.ok).toBe(true);
  });

  test('in exit does not hide what the handler threw', async () => {
    const exit = vi.fn<AuditSink['exit']>().mockRejectedValue(new Error('the pen broke'));
    const { call } = await connect(
      { auditSink: { enter() {}, exit } },
      tool('probe', () => {
        throw new Error('the first thing that went wrong');
      }),
    );

    const { envelope } = await call('probe');

    expect(envelope.error).toEqual({ code: 'HANDLER_ERROR', message: 'the first thing that went wrong' });
    expect(exit).toHaveBeenCalledTimes(1);
  });

  test('in exit of a writing call is the outcome of the call, and is told to the sink as its end', async () => {
    const outcomes: string[] = [];
    const exit = vi.fn<AuditSink['exit']>((event, tx) => {
      if (tx !== undefined) throw new Error('the pen broke');
      outcomes.push(event.outcome);
    });
    const { call } = await connect({ auditSink: { enter() {}, exit } }, (ctx) => {
      tool('change', () => ({ changed: true }), true)(ctx);
      registerPing(ctx);
    });

    const { envelope } = await call('change');
    const after = await call('server_ping');

    expect(envelope).toEqual({ ok: false, error: { code: 'HANDLER_ERROR', message: 'the pen broke' } });
    expect(after.envelope.ok).toBe(true);
    expect(outcomes).toEqual(['error', 'ok']);
  });
});

describe('createNoOpAuditSink', () => {
  test('takes every event, returns nothing, and cannot be changed', () => {
    const sink = createNoOpAuditSink();

    expect(sink.enter({} as ToolEnterEvent)).toBeUndefined();
    expect(sink.exit({} as ToolExitEvent)).toBeUndefined();
    expect(Object.isFrozen(sink)).toBe(true);
  });
});

describe('start and stop', () => {
  test('T-19 start resolves once its transport listens, and says so in the log', async () => {
    const order: string[] = [];
    const transport = stubTransport(async () => {
      order.push('listening');
    });
    const ctx = quietServer({
      transport,
      version: '1.1.1',
      logger: (...parts) => order.push(parts.join(' ')),
    });

    await start(ctx);

    expect(order).toEqual(['[colibri] starting in mode=FULL version=1.1.1', 'listening', '[colibri] ready']);
    expect(ctx.isConnected()).toBe(true);
  });

  test('T-19 start rejects with the error of a transport that cannot start', async () => {
    const ctx = quietServer({
      transport: stubTransport(() => Promise.reject(new Error('the pipe is gone'))),
    });

    await expect(start(ctx)).rejects.toThrow('the pipe is gone');
  });

  test('T-20 start rejects when its transport never starts', async () => {
    const ctx = quietServer({
      transport: stubTransport(() => new Promise(() => undefined)),
      startupTimeoutMs: 15,
    });

    await expect(start(ctx)).rejects.toThrow('startup timeout exceeded (15 ms)');
  });

  test('T-20 start takes its limit from the configuration', async () => {
    const config = readConfig({ COLIBRI_MODE: 'MINIMAL', COLIBRI_STARTUP_TIMEOUT_MS: '20' }, '/');
    const ctx = quietServer({ config, transport: stubTransport(() => new Promise(() => undefined)) });

    await expect(start(ctx)).rejects.toThrow('startup timeout exceeded (20 ms)');
  });

  test('T-21 start installs one handler each for what nobody else catches', async () => {
    withoutGlobalHandlers();
    const ctx = quietServer({ installGlobalHandlers: true });

    await start(ctx);

    expect(globalHandlers()).toEqual({ unhandledRejection: 1, uncaughtException: 1 });
  });

  test('T-21 what nobody caught is logged and ends the process with 1', async () => {
    withoutGlobalHandlers();
    const logged: unknown[][] = [];
    const exit = vi.fn();
    const thrown = new Error('nobody caught me');
    await start(quietServer({ installGlobalHandlers: true, exit, logger: (...parts) => logged.push(parts) }));

    process.emit('uncaughtException', thrown);
    process.emit('unhandledRejection', 'a reason', Promise.resolve());

    expect(exit.mock.calls).toEqual([[1], [1]]);
    expect(logged).toContainEqual(['[colibri] uncaughtException:', thrown]);
    expect(logged).toContainEqual(['[colibri] unhandledRejection:', 'a reason']);
  });

  test('T-22 a second start installs no second handler', async () => {
    withoutGlobalHandlers();
    const ctx = quietServer({ installGlobalHandlers: true });

    await start(ctx);
    await start(ctx);
    await start(quietServer({ installGlobalHandlers: true }));

    expect(globalHandlers()).toEqual({ unhandledRejection: 1, uncaughtException: 1 });
  });

  test('T-23 stop closes the transport, after which the server is not connected', async () => {
    const transport = stubTransport();
    const ctx = quietServer({ transport });
    await start(ctx);

    await stop(ctx);

    expect(transport.close).toHaveBeenCalledTimes(1);
    expect(ctx.isConnected()).toBe(false);
  });

  test('T-23 stop waits for the call that is running', async () => {
    const { sink, order } = recordingSink();
    let finish: () => void = () => undefined;
    const { ctx, client } = await connect(
      { auditSink: sink },
      tool('slow', () => new Promise((done) => (finish = () => done({})))),
    );
    void client.callTool({ name: 'slow', arguments: {} }).catch(() => undefined);
    await vi.waitFor(() => expect(order).toEqual(['enter slow']), 10_000);

    const stopped = stop(ctx).then(() => order.push('stopped'));
    await new Promise((done) => setTimeout(done, 10));
    finish();
    await stopped;

    expect(order).toEqual(['enter slow', 'exit slow', 'stopped']);
  });

  test('T-23 stop of a server that was never started resolves', async () => {
    await expect(stop(quietServer())).resolves.toBeUndefined();
  });
});

describe('with a database', () => {
  const configIn = (folder: string, env: Record<string, string> = {}) =>
    readConfig({ CLAUDE_PROJECT_DIR: folder, HOME: folder, ...env }, folder);

  test('a call leaves its two rows in the configured file, under the configured name', async () => {
    const config = configIn(scratchFolder(), { COLIBRI_AGENT_ID: 'agent-7' });
    const { ctx, call } = await connect(
      { config },
      tool('change', () => ({ done: true }), true),
    );

    const { envelope } = await call('change');
    await stop(ctx);
    const engine = await openScratch(config.dbPath);
    const rows = await engine.read((tx) =>
      tx.all('SELECT stage, tool, actor, outcome FROM audit_rows ORDER BY position'),
    );

    expect(envelope).toEqual({ ok: true, data: { done: true } });
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { stage: 'enter', tool: 'change', actor: 'agent-7', outcome: 'running' },
      { stage: 'exit', tool: 'change', actor: 'agent-7', outcome: 'ok' },
    ]);
  });

  test('a file that is no database leaves a server that answers and says why', async () => {
    const folder = scratchFolder();
    const path = join(folder, 'notes.txt');
    writeFileSync(path, 'these are notes');
    const { call } = await connect({ config: configIn(folder, { COLIBRI_DB_PATH: path }) }, (ctx) => {
      registerPing(ctx);
      registerColibriTool(ctx, 'task', { inputSchema: Nothing, mutates: true, family: 'tasks' }, () => ({}));
      registerColibriTool(
        ctx,
        'skill',
        { inputSchema: Nothing, mutates: false, family: 'skills' },
        () => ({}),
      );
    });

    const ping = await call('server_ping');
    const task = await call('task');
    const skill = await call('skill');

    expect(ping.envelope.ok).toBe(true);
    for (const { envelope } of [task, skill])
      expect(envelope).toMatchObject({
        ok: false,
        error: { code: 'HANDLER_ERROR', message: expect.stringMatching(/^ERR_INIT_FAILED: /) },
      });
    expect(task.envelope.error?.message).toContain(path);
    expect(readFileSync(path, 'utf8')).toBe('these are notes');
  });

  test('a file that another process holds is opened as soon as it is free', async () => {
    const { config, holder } = await heldDatabase();
    const said: unknown[] = [];
    const { call } = await connect(
      { config, logger: (...parts) => void said.push(parts.join(' ')) },
      tool('change', () => ({}), true),
    );

    const isLocked = said.some((line) => String(line).includes('is locked by another process'));
    holder.close();
    await vi.waitFor(() => expect(said.at(-1)).toContain('the database is free, and open now'), 10_000);
    const { envelope } = await call('change');

    expect([isLocked, envelope.ok]).toEqual([true, true]);
  });

  test('a server that is stopped while another process holds the file leaves nothing open', async () => {
    const { config, holder } = await heldDatabase();
    const { ctx } = await connect({ config });

    const stopped = stop(ctx);
    holder.close();
    await stopped;
    // The next look at the file, which had begun, opens it and closes it again.
    await vi.waitFor(() => expect(existsSync(`${config.dbPath}-wal`)).toBe(false), 10_000);

    expect(ctx.isConnected()).toBe(false);
  });

  test('a log that lost its newest rows is not signed, and every answer says so', async () => {
    const config = configIn(scratchFolder());
    const work = async () => {
      const { ctx, call } = await connect(
        { config },
        tool('change', () => ({}), true),
      );
      const { result } = await call('change');
      await stop(ctx);
      return result._meta;
    };
    const before = await work();
    const older = readFileSync(config.dbPath);
    await work();
    writeFileSync(config.dbPath, older);

    const after = await work();

    expect(Object.keys(before ?? {})).toEqual(['colibri/checkpoint']);
    expect(Object.keys(after ?? {})).toEqual(['colibri/unsigned']);
  });

  /** A database that another connection holds for itself, on a clock that runs fast, so that nobody waits for it long. */
  async function heldDatabase() {
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() * 200);
    const config = configIn(scratchFolder());
    const { ctx } = await connect({ config });
    await stop(ctx);
    const holder = openDatabase(config.dbPath);
    holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    return { config, holder };
  }
});

describe('what createServer leaves alone', () => {
  test('T-24 it does not touch stdout', () => {
    const { write } = process.stdout;
    const { log } = console;

    createServer({});

    expect(process.stdout.write).toBe(write);
    expect(console).toHaveProperty('log', log);
  });

  test('T-25 nothing it imports speaks HTTP or WebSocket', () => {
    const { files, packages } = importsOf(SOURCE);

    expect(files.size).toBeGreaterThan(10);
    expect(
      [...packages].filter((name) => /http|net$|tls|dgram|^ws$|socket|express|hono|sse/i.test(name)),
    ).toEqual([]);
    expect([...packages].filter((name) => name.startsWith('@modelcontextprotocol/')).sort()).toEqual([
      '@modelcontextprotocol/server',
      '@modelcontextprotocol/server/stdio',
    ]);
    for (const file of files)
      expect(readFileSync(file, 'utf8')).not.toMatch(/\b\w*(?:HTTP|WebSocket|SSE)\w*Transport/);
  });

  test.each([
    ['AMS_MODE', 'FULL'],
    ['COLIBRI_MODE', 'SOMETIMES'],
  ])('T-26 it refuses a set %s and names it', (name, value) => {
    vi.stubEnv(name, value);

    expect(() => createServer()).toThrow(new RegExp(`${name} is `));
    expect(() => createServer({ mode: 'FULL' })).not.toThrow();
  });

  /** Every file reached from `entry` by import, and every package they name. */
  function importsOf(entry: string): { files: Set<string>; packages: Set<string> } {
    const files = new Set([entry]);
    const packages = new Set<string>();
    for (const file of files) {
      for (const [, name] of readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g)) {
        if (name?.startsWith('.')) files.add(resolve(dirname(file), name));
        else if (name !== undefined) packages.add(name);
      }
    }
    return { files, packages };
  }
});

describe('main', () => {
  test.each([
    [
      'T-26 a variable of another product',
      { AMS_MODE: 'FULL' },
      /^\[colibri\] ERR_CONFIG_INVALID: AMS_MODE is /,
    ],
    ['an invalid value', { COLIBRI_LOG_LEVEL: 'loud' }, /COLIBRI_LOG_LEVEL is "loud"; allowed: error, warn/],
  ])('ends with 1 and one complaint on stderr for %s', async (_, env, complaint) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const { log, info, debug } = console;
    onTestFinished(() => {
      Object.assign(console, { log, info, debug });
    });
    const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
    const stderr = vi.spyOn(console, 'error').mockImplementation(() => undefined);

    await main();

    expect(exit.mock.calls).toEqual([[1]]);
    expect(stderr).toHaveBeenCalledTimes(1);
    expect(stderr.mock.calls[0]?.[0]).toMatch(complaint);
    expect(console).toHaveProperty('log', console.error);
  });

  test('serves stdin and stdout with every tool, warns of names that are no settings, and ends with its input', async () => {
    const { input, output, said, exit } = onPipes({ COLIBRI_MODE: 'TEST', COLIBRI_MOOD: 'good' });

    await main();
    const requests = [
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'server_health' } },
    ];
    input.end(requests.map((request) => `${JSON.stringify(request)}\n`).join(''));
    await vi.waitFor(() => expect(exit).toHaveBeenCalledWith(0), 10_000);
    const answers = output
      .read()
      .toString()
      .trim()
      .split('\n')
      .map((line: string): unknown => JSON.parse(line));

    expect(answers).toMatchObject([
      { id: 1, result: { tools: { length: 14 } } },
      { id: 2, result: { structuredContent: { ok: true } } },
    ]);
    expect(said()).toContain('COLIBRI_MOOD is not a setting');
  });

  test.each([
    ['nothing', () => undefined, 0],
    ['a file that is not there', () => join(scratchFolder(), 'server.js'), 0],
    ['another file', () => join(ROOT, 'package.json'), 0],
    ['this file', () => SOURCE, 1],
  ])('runs when Node was started with %s: that is $2 times', async (_, script, runs) => {
    const { exit } = onPipes({ AMS_MODE: 'FULL' });
    const { argv } = process;
    onTestFinished(() => {
      process.argv = argv;
    });
    process.argv = [process.execPath, script() ?? []].flat();
    vi.resetModules();

    await import('../server.ts');

    expect(exit).toHaveBeenCalledTimes(runs);
  });

  /** Puts pipes in the place of the process's own, and keeps it from ending. */
  function onPipes(env: Record<string, string>) {
    const folder = scratchFolder();
    for (const [name, value] of Object.entries({ HOME: folder, CLAUDE_PROJECT_DIR: folder, ...env }))
      vi.stubEnv(name, value);
    const { log, info, debug } = console;
    onTestFinished(() => {
      Object.assign(console, { log, info, debug });
    });
    const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
    const kept = signals.map((signal) => process.listeners(signal));
    onTestFinished(() => {
      for (const [i, signal] of signals.entries())
        for (const listener of process.listeners(signal))
          if (!kept[i]?.includes(listener)) process.off(signal, listener);
    });
    withoutGlobalHandlers();
    const [input, output] = [new PassThrough(), new PassThrough()];
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(input as never);
    vi.spyOn(process, 'stdout', 'get').mockReturnValue(output as never);
    const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
    const stderr = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    return { input, output, exit, said: () => stderr.mock.calls.flat().join('\n') };
  }
});

describe('as a program', () => {
  const home = mkdtempSync(join(tmpdir(), 'colibri-'));
  const program = join(home, 'dist', 'server.js');

  beforeAll(async () => {
    copyFileSync(join(ROOT, 'package.json'), join(home, 'package.json'));
    symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'));
    await build({
      entryPoints: [SOURCE],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      external: ['@photostructure/sqlite'],
      logLevel: 'error',
    });
  });

  afterAll(() => rmSync(home, { recursive: true, force: true }));

  function run(args: string[], env: Record<string, string>, cwd = scratchFolder()): ChildProcess {
    return spawn(process.execPath, args, { cwd, env: { HOME: cwd, PATH: process.env.PATH, ...env } });
  }

  async function ended(child: ChildProcess): Promise<{ code: number | null; out: string; err: string }> {
    if (child.stdout === null || child.stderr === null) throw new Error('no pipes');
    const exited = new Promise<number | null>((done) => child.once('close', done));
    const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
    return { code, out, err };
  }

  test('T-26 a refused environment is exit 1, named on stderr, and silence on stdout', async () => {
    const child = run([program], { AMS_MODE: 'FULL', COLIBRI_WORKFLOW: 'scrum' });
    child.stdin?.end();

    const { code, out, err } = await ended(child);

    expect(code).toBe(1);
    expect(out).toBe('');
    expect(err).toContain('AMS_MODE');
    expect(err).toContain('COLIBRI_WORKFLOW');
  });

  test('T-12 answers server_ping over stdio when started through a link, and ends with its client', async () => {
    const folder = scratchFolder();
    const link = join(folder, 'colibri');
    symlinkSync(program, link);
    const child = run([link], { COLIBRI_MODE: 'TEST' }, folder);
    const request = (id: number, method: string, params: object) => ({ jsonrpc: '2.0', id, method, params });
    const clientInfo = { name: 'a-client', version: '1' };
    child.stdin?.end(
      [
        request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }),
        { jsonrpc: '2.0', method: 'notifications/initialized' },
        request(2, 'tools/call', { name: 'server_ping', arguments: {} }),
      ]
        .map((message) => `${JSON.stringify(message)}\n`)
        .join(''),
    );

    const { code, out } = await ended(child);
    const answers = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: number; result: { structuredContent?: Envelope } });

    expect(code).toBe(0);
    expect(answers.map(({ id }) => id)).toEqual([1, 2]);
    expect(answers[1]?.result.structuredContent).toMatchObject({
      ok: true,
      data: { version: PACKAGE.version, mode: 'TEST' },
    });
  });

  test('importing the module starts nothing', async () => {
    const child = run(['-e', `import(${JSON.stringify(pathToFileURL(program).href)})`], {});
    child.stdin?.end();

    const { code, out, err } = await ended(child);

    expect({ code, out, err }).toEqual({ code: 0, out: '', err: '' });
  });

  test('T-20 a database that stays locked past the startup limit is exit 75', async () => {
    const folder = scratchFolder();
    const path = join(folder, 'locked.db');
    // Not ours yet, so that a start has something to write.
    const holder = openDatabase(path);
    onTestFinished(() => holder.close());
    holder.exec('BEGIN EXCLUSIVE; CREATE TABLE notes (text)');
    const child = run([program], { COLIBRI_DB_PATH: path, COLIBRI_STARTUP_TIMEOUT_MS: '300' }, folder);

    const { code, err } = await ended(child);

    expect(code).toBe(75);
    expect(err).toContain('startup timeout exceeded (300 ms)');
  });
});
