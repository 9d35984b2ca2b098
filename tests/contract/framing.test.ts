import { expect } from 'vitest';
import { sleepMs } from '../driver/server-process.ts';
import { tier } from '../driver/tier.ts';
import { proves } from './proves.ts';

const LIMIT = 1_048_576;
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

const MEGABYTES = [1.1, 9, 11, ...tier([], [50, 100])];

proves(
  ['protocol.parse-error', 'protocol.stays-up'],
  'what is not JSON is -32700 with id null',
  async ({ colibri }) => {
    const server = await colibri.start();

    for (const line of [
      'hello',
      '{',
      '{"jsonrpc":"2.0","id":7,"method":"pi',
      "{'id':1}",
      'undefined',
      '\u0000',
      '"',
      'NaN',
    ]) {
      expect([line, (await server.sendLine(line)).error?.code]).toEqual([line, PARSE_ERROR]);
    }
    expect((await server.call('server_ping')).envelope?.ok).toBe(true);
  },
);

proves(
  ['protocol.invalid-request', 'protocol.stays-up'],
  'JSON that is no message is -32600 with id null',
  async ({ colibri }) => {
    const server = await colibri.start();
    const batch = JSON.stringify([ping(1), ping(2)]);

    for (const line of ['[]', batch, '5', '"text"', 'null', 'true', '{}', '{"jsonrpc":"2.0"}']) {
      expect([line, (await server.sendLine(line)).error?.code]).toEqual([line, INVALID_REQUEST]);
    }
    expect((await server.call('server_ping')).envelope?.ok).toBe(true);
  },
);

proves(
  ['protocol.invalid-request', 'protocol.one-answer'],
  'a message that is wrong only around its id is -32600 with that id',
  async ({ colibri }) => {
    const server = await colibri.start();
    const wrong = [
      { id: 7, method: 'ping' },
      { jsonrpc: '1.0', id: 7, method: 'ping' },
      { jsonrpc: 2, id: 7, method: 'ping' },
      { jsonrpc: '2.0', id: 7 },
      { jsonrpc: '2.0', id: 7, method: 5 },
      { jsonrpc: '2.0', id: 7, method: null },
      { jsonrpc: '2.0', id: 7, method: 'ping', params: [] },
      { jsonrpc: '2.0', id: 7, method: 'ping', params: null },
      { jsonrpc: '2.0', id: 7, method: 'ping', params: 'text' },
      { jsonrpc: '2.0', id: 1.5, method: 'ping' },
      { jsonrpc: '2.0', id: 2 ** 60, method: 'ping' },
    ];

    for (const message of wrong) {
      const { error } = await server.sendLine(JSON.stringify(message), message.id);
      expect([message, error?.code]).toEqual([message, INVALID_REQUEST]);
    }
  },
);

proves(
  'protocol.invalid-request',
  'an id that cannot be echoed is -32600 with id null',
  async ({ colibri }) => {
    const server = await colibri.start();

    for (const id of ['null', 'true', '{}', '[1]', '1e400', JSON.stringify('x'.repeat(257))]) {
      const { error } = await server.sendLine(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
      expect([id, error?.code]).toEqual([id, INVALID_REQUEST]);
    }
  },
);

proves(
  'protocol.one-answer',
  'every kind of id a client may use comes back as it was',
  async ({ colibri }) => {
    const server = await colibri.start();

    for (const id of ['', 'a', '0', 'é\u2028"\\', 'x'.repeat(256), 0, -1, Number.MAX_SAFE_INTEGER]) {
      const { result } = await server.sendLine(JSON.stringify(ping(id)), id);
      expect(result).toEqual({});
    }
  },
);

proves('protocol.tolerant-framing', 'unknown top-level keys are ignored', async ({ colibri }) => {
  const server = await colibri.start();

  const { result } = await server.sendLine(JSON.stringify({ ...ping(7), extra: { a: [1] }, meta: null }), 7);

  expect(result).toEqual({});
});

proves(
  'protocol.tolerant-framing',
  'Windows line ends, blanks and blank lines are taken',
  async ({ colibri }) => {
    const server = await colibri.start();

    server.write(`\r\n\n  \t\r\n${JSON.stringify(ping(7))}\r\n`);
    server.write(`  ${JSON.stringify(ping(8))}  \n`);

    expect((await server.answerTo(7)).result).toEqual({});
    expect((await server.answerTo(8)).result).toEqual({});
  },
);

proves(
  'protocol.tolerant-framing',
  'a byte order mark before the first message is taken, and before a later one refused',
  async ({ colibri }) => {
    const server = colibri.spawn();

    const { result } = await server.sendLine(`\ufeff${JSON.stringify(ping(7))}`, 7);
    const later = await server.sendLine(`\ufeff${JSON.stringify(ping(8))}`, null);

    expect(result).toEqual({});
    expect(later.error).toMatchObject({ code: -32700 });
  },
);

proves(
  'protocol.tolerant-framing',
  'R23: a message that comes one byte at a time is read, many in one chunk too',
  async ({ colibri }) => {
    const server = await colibri.start();
    const bytes = Buffer.from(`${JSON.stringify({ ...ping('é😀'), extra: '😀'.repeat(20) })}\n`);

    for (const byte of bytes) {
      server.write(Buffer.from([byte]));
      if (byte % 8 === 0) await sleepMs(0);
    }
    server.write(Array.from({ length: 200 }, (_, i) => `${JSON.stringify(ping(1_000 + i))}\n`).join(''));

    expect((await server.answerTo('é😀')).result).toEqual({});
    for (let i = 0; i < 200; i += 1) expect((await server.answerTo(1_000 + i)).result).toEqual({});
  },
);

proves(
  ['protocol.tolerant-framing', 'stop.end-of-input'],
  'a last message without its newline is read and answered',
  async ({ colibri }) => {
    const server = await colibri.start();

    server.write(JSON.stringify(ping('last')));
    const answer = server.answerTo('last');

    expect((await server.closeInput()).code).toBe(0);
    expect((await answer).result).toEqual({});
  },
);

proves(
  'protocol.utf8',
  'R25: bytes that are not UTF-8 are -32700, under their id where it can be read',
  async ({ colibri }) => {
    const server = await colibri.start();
    const call = (id: number, ...bytes: number[]) =>
      Buffer.concat([
        Buffer.from(
          `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"server_ping","arguments":{"x":"`,
        ),
        Buffer.from(bytes),
        Buffer.from('"}}}'),
      ]);

    const overlong = await server.sendLine(call(1, 0xc0, 0xaf), 1);
    const surrogate = await server.sendLine(call(2, 0xed, 0xa0, 0x80), 2);
    const cut = await server.sendLine(call(3, 0xf0, 0x9f, 0x98), 3);
    const lost = await server.sendLine(Buffer.from([0xff, 0xfe, 0x00]));

    for (const { error } of [overlong, surrogate, cut, lost]) expect(error?.code).toBe(PARSE_ERROR);
    await server.call('server_ping');
    expect(colibri.readAudit().rows).toHaveLength(2);
  },
);

proves(
  'protocol.line-limit',
  'R23: a line of exactly the limit is read, one byte more is not',
  async ({ colibri }) => {
    const server = await colibri.start();

    const [within, beyond] = [callOf(LIMIT, 7), callOf(LIMIT + 1, 8)];

    expect((await server.sendLine(within, 7)).result).toBeDefined();
    expect((await server.sendLine(beyond, 8)).error).toMatchObject({
      code: INVALID_REQUEST,
      message: expect.stringContaining(String(LIMIT)),
    });
  },
);

proves(
  ['protocol.line-limit', 'protocol.stays-up', 'protocol.bounded-memory'],
  `R23: lines of ${MEGABYTES.join(', ')} MB are answered with the limit under their id, which may come last`,
  async ({ colibri }) => {
    const server = await colibri.start();

    for (const [i, megabytes] of MEGABYTES.entries()) {
      const before = server.call('server_ping');
      const answer = await server.sendLine(callOf(megabytes * 1_000_000, `big-${i}`), `big-${i}`);
      expect(answer.error?.message).toContain(String(LIMIT));
      expect((await before).envelope?.ok).toBe(true);
      expect((await server.call('server_ping')).envelope?.ok).toBe(true);
    }
    expect(server.rssBytes).toBeLessThan(200_000_000);
  },
);

proves(
  'protocol.line-limit',
  'the longest and the oddest id are found in a line that is too long',
  async ({ colibri }) => {
    const server = await colibri.start();
    const ids = ['x'.repeat(256), 'é'.repeat(256), '😀'.repeat(128), 'a"b\\c', '\u0000', '', -5, 0];

    for (const id of ids) {
      expect((await server.sendLine(callOf(LIMIT + 500, id), id)).error?.code).toBe(INVALID_REQUEST);
    }
    const nested = callOf(LIMIT + 500, 'mine').replace('"x":"', '"id":"theirs","x":"');
    expect((await server.sendLine(nested, 'mine')).error?.code).toBe(INVALID_REQUEST);
  },
);

proves(
  'protocol.line-limit',
  'R23: five megabytes of nothing, then a newline, are one error, and what follows is read',
  async ({ colibri }) => {
    const server = await colibri.start();

    server.write(Buffer.alloc(5_000_000, 'x'));
    await sleepMs(100);
    const { error } = await server.sendLine('');

    expect(error?.message).toContain(String(LIMIT));
    expect((await server.call('server_ping')).envelope?.ok).toBe(true);
  },
);

proves('protocol.one-answer', 'a notification and a response are not answered', async ({ colibri }) => {
  const server = await colibri.start();

  server.notify('notifications/initialized');
  server.notify('notifications/unheard-of', { a: 1 });
  server.send({ jsonrpc: '2.0', id: 99, result: {} });
  server.send({ jsonrpc: '2.0', id: 99, error: { code: 1, message: 'no' } });
  await server.call('server_ping');
  await server.call('server_ping');

  expect(server.takeUnclaimed()).toEqual([]);
});

function ping(id: string | number) {
  return { jsonrpc: '2.0', id, method: 'ping' };
}

/** A tools/call of exactly `bytes` bytes, its id at the very end. */
function callOf(bytes: number, id: string | number): string {
  const shell = (filling: string) =>
    `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"server_ping","arguments":{"x":"${filling}"}},"id":${JSON.stringify(id)}}`;
  return shell('a'.repeat(bytes - Buffer.byteLength(shell(''))));
}
