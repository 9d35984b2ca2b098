import { PassThrough, Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { JSONRPCMessage } from '@modelcontextprotocol/server';
import { describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { StdioTransport } from '../../transport/stdio.ts';

/** A transport on two pipes of its own, what it passed on, and what it wrote. */
async function started(output: Writable = new PassThrough()) {
  const input = new PassThrough();
  const transport = new StdioTransport(input, output);
  const received: JSONRPCMessage[] = [];
  const ended = vi.fn();
  transport.onmessage = (message) => received.push(message);
  transport.onend = ended;
  await transport.start();
  const send = async (...lines: (string | object)[]) => {
    for (const line of lines) input.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
    await turn();
  };
  const written = () =>
    String(output instanceof PassThrough ? (output.read() ?? '') : '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { input, output, transport, received, ended, send, written };
}

const request = (id: number | string, method = 'ping') => ({ jsonrpc: '2.0' as const, id, method });
const answer = (id: number | string) => ({ jsonrpc: '2.0' as const, id, result: {} });

describe('what comes in', () => {
  test('is passed on line by line', async () => {
    const { send, received } = await started();

    await send(request(1), request('two'));

    expect(received).toEqual([request(1), request('two')]);
  });

  test('and is no message is answered at once, and the next line is served', async () => {
    const { send, received, written } = await started();

    await send('', 'not JSON', [], `{"pad":"${'x'.repeat(LIMITS.lineBytesMax)}","id":4}`, request(5));

    expect(written()).toEqual([
      { jsonrpc: '2.0', id: null, error: expect.objectContaining({ code: -32700 }) },
      { jsonrpc: '2.0', id: null, error: expect.objectContaining({ code: -32600 }) },
      { jsonrpc: '2.0', id: 4, error: expect.objectContaining({ code: -32600 }) },
    ]);
    expect(received).toEqual([request(5)]);
  });

  test('before the end without a newline is served, then the end is told', async () => {
    const { input, received, ended } = await started();

    input.end(JSON.stringify(request(1)));
    await turn();
    await turn();

    expect(received).toEqual([request(1)]);
    expect(ended).toHaveBeenCalled();
  });

  test('after stopReading is not looked at', async () => {
    const { transport, send, received } = await started();

    transport.stopReading();
    await send(request(1));

    expect(received).toEqual([]);
  });
});

describe('what goes out', () => {
  test('is one line of JSON a message', async () => {
    const { transport, written } = await started();

    await transport.send(answer(1));
    await transport.send({ jsonrpc: '2.0', method: 'notifications/message', params: { text: 'a\nb' } });
    await turn();

    expect(written()).toEqual([
      answer(1),
      { jsonrpc: '2.0', method: 'notifications/message', params: { text: 'a\nb' } },
    ]);
  });

  test('leaves in one piece where several answers come together', async () => {
    const pieces: number[] = [];
    const write: Writable['_write'] = (chunk: Buffer, _encoding, done) => {
      pieces.push(chunk.toString().split('\n').length - 1);
      done();
    };
    const { transport } = await started(new Writable({ write }));

    await Promise.all([1, 2, 3].map((id) => transport.send(answer(id))));
    await turn();
    await Promise.all([4, 5].map((id) => transport.send(answer(id))));
    await turn();

    expect(pieces).toEqual([3, 2]);
  });

  test('to a client that has gone is dropped without an error', async () => {
    const { output, transport, ended } = await started();
    output.destroy(new Error('EPIPE'));
    await turn();

    await expect(transport.send(answer(1))).resolves.toBeUndefined();
    await expect(transport.flushed()).resolves.toBeUndefined();
    expect(ended).toHaveBeenCalled();
  });

  test('to a client that does not read stops the reading until it does', async () => {
    const stuck = new Writable({ write: (_chunk, _encoding, done) => void held.push(done) });
    const held: (() => void)[] = [];
    const { input, transport } = await started(stuck);

    await transport.send({ ...answer(1), result: { pad: 'x'.repeat(LIMITS.unsentBytesMax) } });
    const whileFull = input.isPaused();
    await turn();
    held.shift()?.();
    await turn();

    expect(whileFull).toBe(true);
    expect(input.isPaused()).toBe(false);
  });
});

describe('more than there is room for', () => {
  const FULL = LIMITS.pendingRequestsMax + 1;
  const linesOf = (messages: readonly object[]) =>
    messages.map((message) => `${JSON.stringify(message)}\n`).join('');
  const requests = (count: number, method = 'ping', from = 0) =>
    Array.from({ length: count }, (_, i) => request(from + i, method));
  const cancel = (requestId: number | string) => ({
    jsonrpc: '2.0' as const,
    method: 'notifications/cancelled',
    params: { requestId },
  });

  test('is not handed on, also where it came in one chunk, until others have their answers', async () => {
    const { input, transport, received } = await started();

    input.write(linesOf(requests(FULL + 10)));
    await turn();
    const before = received.length;
    for (let id = 0; id < 4; id += 1) await transport.send(answer(id));
    await turn();
    await turn();

    expect(before).toBe(FULL);
    expect(received.length).toBe(FULL + 4);
    expect(received.at(-1)).toEqual(request(FULL + 3));
  });

  test('in bytes is not handed on, nor while that many bytes of answers wait', async () => {
    const { transport, send, received } = await started();
    const pad = 'x'.repeat(LIMITS.unsentBytesMax / 4);
    const large = (id: number) => ({ ...request(id), params: { pad } });

    await send(...Array.from({ length: 9 }, (_, id) => large(id)));
    const before = received.length;
    await transport.send(answer(0));
    await turn();
    await turn();

    expect(before).toBeLessThan(6);
    expect(received.length).toBe(before + 1);
  });

  test('counts calls that were cancelled until they have ended, and no other request that was', async () => {
    const { input, transport, received } = await started();

    input.write(linesOf([...requests(FULL, 'tools/call'), ...requests(FULL).map(({ id }) => cancel(id))]));
    input.write(linesOf([request('after')]));
    await turn();
    const before = received.length;
    for (let id = 0; id < FULL; id += 1) transport.ended(id);
    await turn();
    await turn();
    await send(linesOf(requests(FULL).flatMap((ping) => [ping, cancel(ping.id)])));

    expect(before).toBe(FULL);
    expect(received.length).toBe(2 * FULL + 1 + 2 * FULL);

    async function send(text: string): Promise<void> {
      input.write(text);
      await turn();
    }
  });

  test('is still answered after the end of input and after the reading was stopped', async () => {
    const { input, transport, received, ended } = await started();

    input.end(`${linesOf(requests(FULL + 1))}${JSON.stringify(request('last'))}`);
    await turn();
    await turn();
    transport.stopReading();
    const toldAt = received.length;
    let isDrained = false;
    void transport.drained().then(() => {
      isDrained = true;
    });
    for (let id = 0; id < FULL; id += 1) await transport.send(answer(id));
    await turn();
    const early = isDrained;
    for (const id of [FULL, 'last']) await transport.send(answer(id));
    await turn();
    await turn();

    expect(ended).toHaveBeenCalled();
    expect(toldAt).toBe(FULL);
    expect(received.at(-1)).toEqual(request('last'));
    expect([early, isDrained]).toEqual([false, true]);
  });

  test('is not read without end while nothing can be handed on', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { input } = await started();
      input.write(linesOf(requests(FULL + 1)));
      for (let i = 0; i < 200; i += 1) {
        input.write(Buffer.alloc(65_536, 'x'));
        await turn();
        vi.advanceTimersByTime(LIMITS.peekMs);
        await turn();
      }

      // Of 13 MB, one longest line was looked at, for the end of input.
      expect(input.readableLength + input.writableLength).toBeGreaterThan(11_000_000);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('room', () => {
  test('is there unless a client does not read what was written, and again when it has', async () => {
    const held: (() => void)[] = [];
    const stuck = new Writable({ write: (_chunk, _encoding, done) => void held.push(done) });
    const { transport } = await started(stuck);
    const before = transport.room();

    await transport.send({ ...answer(1), result: { pad: 'x'.repeat(LIMITS.unsentBytesMax) } });
    const room = transport.room();
    await turn();
    held.shift()?.();
    await room;

    expect(before).toBeUndefined();
    expect(room).toBeInstanceOf(Promise);
    expect(transport.room()).toBeUndefined();
  });

  test.each<[how: string, end: (transport: StdioTransport, output: Writable) => void]>([
    ['the client has gone', (_, output) => void output.destroy(new Error('EPIPE'))],
    ['the transport was closed', (transport) => void transport.close()],
  ])('is not waited for when %s', async (_, end) => {
    const { transport, output } = await started(new Writable({ write: () => undefined }));
    await transport.send({ ...answer(1), result: { pad: 'x'.repeat(LIMITS.unsentBytesMax) } });

    const room = transport.room();
    end(transport, output);
    await room;

    expect(transport.room()).toBeUndefined();
  });
});

describe('drained', () => {
  /** Whether a promise is settled by the next turn. */
  async function isSettled(promise: Promise<unknown>): Promise<boolean> {
    let settled = false;
    void promise.then(() => {
      settled = true;
    });
    await turn();
    return settled;
  }

  test('resolves at once when nothing was asked', async () => {
    const { transport, send } = await started();

    await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, 'not JSON');

    expect(await isSettled(transport.drained())).toBe(true);
  });

  test('waits until every request has its answer, an id used twice included', async () => {
    const { transport, send } = await started();
    await send(request(1), request(1), request(2));
    const drained = transport.drained();

    await transport.send(answer(1));
    await transport.send(answer(2));
    const early = await isSettled(drained);
    await transport.send(answer(1));

    expect(early).toBe(false);
    expect(await isSettled(drained)).toBe(true);
  });

  test('does not wait for a request its client has cancelled, unless it is a call that runs', async () => {
    const { transport, send } = await started();
    await send(request(1));
    const drained = transport.drained();

    await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    const withoutPing = await isSettled(drained);
    await send(request(2, 'tools/call'));
    const drainedAgain = transport.drained();
    await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } });
    const whileItRuns = await isSettled(drainedAgain);
    transport.ended(2);

    expect([withoutPing, whileItRuns]).toEqual([true, false]);
    expect(await isSettled(drainedAgain)).toBe(true);
  });

  test('does not wait for a client that no longer reads', async () => {
    const { transport, output, send } = await started();
    await send(request(1));
    const drained = transport.drained();

    output.destroy(new Error('EPIPE'));

    expect(await isSettled(drained)).toBe(true);
  });
});

describe('close', () => {
  test('tells its owner once and reads no more', async () => {
    const { transport, send, received } = await started();
    const closed = vi.fn();
    transport.onclose = closed;

    await transport.close();
    await transport.close();
    await send(request(1));

    expect(closed).toHaveBeenCalledTimes(1);
    expect(received).toEqual([]);
  });
});
