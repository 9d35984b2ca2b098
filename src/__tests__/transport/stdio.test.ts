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

    expect(written()).toEqual([
      answer(1),
      { jsonrpc: '2.0', method: 'notifications/message', params: { text: 'a\nb' } },
    ]);
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
    held.shift()?.();
    await turn();

    expect(whileFull).toBe(true);
    expect(input.isPaused()).toBe(false);
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

  test('does not wait for a request its client has cancelled', async () => {
    const { transport, send } = await started();
    await send(request(1));
    const drained = transport.drained();

    await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });

    expect(await isSettled(drained)).toBe(true);
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
