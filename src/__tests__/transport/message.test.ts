import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../limits.ts';
import {
  carryCall,
  type IncomingMessage,
  RAW_ARGUMENTS,
  type ReadLine,
  RPC,
  readLine,
  refuseOversized,
  sentParams,
} from '../../transport/message.ts';

const MODERN = ['2026-07-28'];

const read = (line: string | object): ReadLine =>
  readLine(Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)));

function messageOf(line: string | object): IncomingMessage {
  const outcome = read(line);
  if (outcome.kind === 'refused') throw new Error(outcome.error.message);
  return outcome.message;
}

function refusalOf(outcome: ReadLine) {
  if (outcome.kind === 'message') throw new Error('it was taken');
  return {
    id: outcome.id,
    code: outcome.error.code,
    message: outcome.error.message,
    data: outcome.error.data,
  };
}

const request = (parts: object) => ({ jsonrpc: '2.0', id: 1, method: 'ping', ...parts });

describe('a line that is taken', () => {
  test.each<[string, object]>([
    ['a request', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { cursor: 'x' } }],
    ['a request without params', { jsonrpc: '2.0', id: 'a', method: 'ping' }],
    ['a notification', { jsonrpc: '2.0', method: 'notifications/initialized' }],
    ['the id 0', { jsonrpc: '2.0', id: 0, method: 'ping' }],
    ['an empty id', { jsonrpc: '2.0', id: '', method: 'ping' }],
  ])('is passed on as it is: %s', (_, line) => {
    expect(messageOf(line)).toEqual(line);
  });

  test('is passed on when it answers something', () => {
    expect(messageOf({ jsonrpc: '2.0', id: 5, result: {} })).toMatchObject({ id: 5, result: {} });
    expect(messageOf({ jsonrpc: '2.0', id: 5, error: { code: 1, message: 'x' } })).toMatchObject({
      id: 5,
      error: { code: 1 },
    });
  });

  test('loses the keys nobody knows', () => {
    expect(messageOf(request({ extra: 1, constructor: 2 }))).toEqual(request({}));
  });

  test.each(['x'.repeat(LIMITS.requestIdCharsMax), Number.MAX_SAFE_INTEGER, -1])('keeps the id %j', (id) => {
    expect(messageOf(request({ id })).id).toBe(id);
  });
});

describe('a line that is no JSON', () => {
  test.each(['{', 'hello', '{"jsonrpc":"2.0",}', "{'a':1}", '\u0000', '{}{}'])('is -32700: %j', (line) => {
    expect(refusalOf(read(line))).toMatchObject({ id: null, code: -32700 });
  });

  test('is -32700 when it is not UTF-8, with the id where one can be read', () => {
    const bytes = Buffer.from(`${JSON.stringify(request({ id: 9, params: { a: '~' } }))}`);
    bytes[bytes.indexOf('~')] = 0xff;

    expect(refusalOf(readLine(bytes))).toMatchObject({ id: 9, code: RPC.parseError });
    expect(refusalOf(readLine(Buffer.of(0xff, 0xfe)))).toMatchObject({
      id: null,
      code: RPC.parseError,
    });
  });
});

describe('a line that is no message', () => {
  test.each<[string, string | object, unknown, RegExp]>([
    ['a batch', [request({})], null, /batches/],
    ['an empty batch', [], null, /batches/],
    ['a text', '"hello"', null, /JSON object/],
    ['a number', '7', null, /JSON object/],
    ['null', 'null', null, /JSON object/],
    ['no version', { id: 1, method: 'ping' }, 1, /"jsonrpc" must be "2.0"/],
    ['version 1.0', request({ jsonrpc: '1.0' }), 1, /"jsonrpc" must be "2.0"/],
    ['version 2 as a number', request({ jsonrpc: 2 }), 1, /"jsonrpc" must be "2.0"/],
    ['the id null', request({ id: null }), null, /"id" must be/],
    ['a fraction as id', request({ id: 1.5 }), 1.5, /"id" must be/],
    ['an id beyond 2^53', `{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`, 2 ** 53, /"id" must be/],
    ['an infinite id', `{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, null, /"id" must be/],
    ['an object as id', request({ id: {} }), null, /"id" must be/],
    ['true as id', request({ id: true }), null, /"id" must be/],
    [
      'an id too long',
      request({ id: 'x'.repeat(LIMITS.requestIdCharsMax + 1) }),
      null,
      /at most 256 characters/,
    ],
    ['no method', { jsonrpc: '2.0', id: 1 }, 1, /"method" must be a string/],
    ['a number as method', request({ method: 7 }), 1, /"method" must be a string/],
    ['null as method', request({ method: null }), 1, /"method" must be a string/],
    ['params in an array', request({ params: [1] }), 1, /"params" must be an object/],
    ['params in a text', request({ params: '{}' }), 1, /"params" must be an object/],
    ['null as params', request({ params: null }), 1, /"params" must be an object/],
  ])('is -32600 with the id that can be echoed: %s', (_, line, id, message) => {
    expect(refusalOf(read(line))).toEqual({
      id,
      code: -32600,
      message: expect.stringMatching(message),
      data: undefined,
    });
  });
});

describe('a protocol version', () => {
  const claiming = (version: unknown, parts: object = {}) =>
    request({ params: { _meta: { 'io.modelcontextprotocol/protocolVersion': version } }, ...parts });

  test('that is served passes', () => {
    expect(messageOf(claiming('2026-07-28')).method).toBe('ping');
  });

  test('that is not is -32022, with those that are', () => {
    expect(refusalOf(read(claiming('1999-01-01')))).toEqual({
      id: 1,
      code: -32022,
      message: 'Unsupported protocol version "1999-01-01".',
      data: { supported: MODERN, requested: '1999-01-01' },
    });
  });

  test('of a notification, or that is no text, is for the protocol layer to judge', () => {
    expect(messageOf({ ...claiming('1999-01-01'), id: undefined }).method).toBe('ping');
    expect(messageOf(claiming(7)).method).toBe('ping');
  });

  test.each([null, 5, 'text', [], { progressToken: null }, { progressToken: 1.5 }])(
    'next to a _meta that cannot be read is refused in plain words: %j',
    (meta) => {
      expect(refusalOf(read(request({ params: { _meta: meta } })))).toMatchObject({ code: -32602 });
    },
  );
});

describe('a line over the limit', () => {
  test.each([7, 'seven', null])('is refused with its id, the limit and what to do: %j', (id) => {
    expect(refusalOf(refuseOversized(id))).toEqual({
      id,
      code: -32600,
      message: expect.stringContaining('limit of 1048576 bytes'),
      data: { limit_bytes: LIMITS.lineBytesMax },
    });
  });
});

describe('the arguments of a call', () => {
  const call = (parts: object) => request({ method: 'tools/call', params: { name: 'probe', ...parts } });
  const carried = (parts: object) => carryCall(messageOf(call(parts))).params ?? {};
  const sent = (parts: object) => sentParams(carried(parts)).arguments;

  test('keep a name that the protocol layer would drop', () => {
    const args = JSON.parse('{"__proto__":{"a":1}}') as object;

    expect(Object.keys(sent({ arguments: args }) as object)).toEqual(['__proto__']);
  });

  test.each([[{ a: 1 }], ['{"a":1}'], [[1]], [null], [7], [false], ['']])(
    'arrive as they were sent: %j',
    (args) => {
      expect(carried({ arguments: args }).arguments).toEqual({ [RAW_ARGUMENTS]: args });
      expect(sent({ arguments: args })).toEqual(args);
    },
  );

  test('that were not sent are not made up', () => {
    expect(carried({})).toEqual({ name: 'probe' });
    expect(sent({})).toBeUndefined();
  });

  test('of another method are left alone', () => {
    expect(messageOf(request({ params: { arguments: 'x' } })).params).toEqual({ arguments: 'x' });
  });
});

test('whatever the bytes are, the answer is a value', () => {
  const almost = fc.dictionary(
    fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'result', 'error', '__proto__'),
    fc.oneof(fc.constant('2.0'), fc.jsonValue()),
  );
  const lines = fc.oneof(
    fc.uint8Array(),
    fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
    almost.map((value) => Buffer.from(JSON.stringify(value))),
  );
  fc.assert(
    fc.property(lines, (bytes) => {
      expect(['message', 'refused']).toContain(readLine(bytes).kind);
    }),
  );
});
