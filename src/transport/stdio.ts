import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { LIMITS } from '../limits.ts';
import { LineReader } from './line-reader.ts';
import { type ReadLine, readLine, refuseOversized } from './message.ts';

/** A subscription is answered when it ends, and it ends with the connection: nothing to wait for. */
const SUBSCRIBE = 'subscriptions/listen';

/**
 * MCP's stdio binding. Unlike the SDK's own transport it answers every line, survives a long one, keeps its place open
 * until everything received was answered, and stops reading while the client does not.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** The client has closed its end; what it sent before is still being answered. */
  onend?: () => void;

  readonly #input: Readable;
  readonly #output: Writable;
  readonly #lines: LineReader;
  /** The ids of requests handed on and not yet answered. A client may reuse one. */
  #pending: unknown[] = [];
  #idle: (() => void)[] = [];
  #peeking: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(input: Readable = process.stdin, output: Writable = process.stdout) {
    this.#input = input;
    this.#output = output;
    this.#lines = new LineReader({
      line: (bytes) => this.#receive(readLine(bytes)),
      oversized: (id) => this.#receive(refuseOversized(id)),
    });
  }

  async start(): Promise<void> {
    this.#input.on('data', this.#ondata);
    for (const event of ['end', 'close', 'error']) this.#input.once(event, this.#onend);
    this.#output.on('error', this.#onbroken);
    this.#output.on('drain', () => this.#readOn());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!('method' in message)) this.#answered(message.id);
    this.#write(message);
  }

  /** Takes no more input; what was received can still be answered. */
  stopReading(): void {
    clearInterval(this.#peeking);
    this.#input.off('data', this.#ondata);
    this.#input.pause();
  }

  /** Resolves when every request received so far has its answer. */
  async drained(): Promise<void> {
    if (this.#pending.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Resolves when the client's side of the pipe has taken what was written, or is gone. */
  async flushed(): Promise<void> {
    if (this.#closed || this.#output.destroyed || this.#output.writableLength === 0) return;
    await new Promise<void>((resolve) => {
      this.#output.write('', () => resolve());
      this.#output.once('close', () => resolve());
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.stopReading();
    this.onclose?.();
  }

  #ondata = (chunk: Uint8Array): void => {
    this.#lines.push(chunk);
    this.#holdIfFull();
  };

  #onend = (): void => {
    this.#input.off('end', this.#onend);
    this.#input.off('close', this.#onend);
    this.#lines.end();
    this.onend?.();
  };

  /** The client no longer reads: nobody can be answered any more. */
  #onbroken = (): void => {
    this.#pending = [];
    this.#wake();
    this.onend?.();
  };

  /** Takes no more while the client does not read, or has asked faster than can be answered. */
  #holdIfFull(): void {
    if (!this.#isFull()) return;
    this.#input.pause();
    // While nothing is read, nobody would see that the client has closed its end: look at one chunk now and then.
    this.#peeking ??= setInterval(() => this.#input.resume(), LIMITS.peekMs).unref();
  }

  #readOn(): void {
    if (this.#closed || this.#isFull()) return;
    clearInterval(this.#peeking);
    this.#peeking = undefined;
    this.#input.resume();
  }

  #isFull(): boolean {
    return (
      this.#output.writableLength > LIMITS.unsentBytesMax || this.#pending.length > LIMITS.pendingRequestsMax
    );
  }

  #receive(read: ReadLine): void {
    if (read.kind === 'refused') return void this.#write({ jsonrpc: '2.0', id: read.id, error: read.error });
    const { id, method, params } = read.message;
    if (method !== undefined && id !== undefined && method !== SUBSCRIBE) this.#pending.push(id);
    else if (method === 'notifications/cancelled') this.#answered(params?.requestId);
    this.onmessage?.(read.message as JSONRPCMessage);
  }

  #answered(id: unknown): void {
    // Nearly always the first: calls are answered in their order.
    const at = this.#pending.indexOf(id);
    if (at < 0) return;
    this.#pending.splice(at, 1);
    if (this.#peeking !== undefined) this.#readOn();
    if (this.#pending.length === 0) this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #write(message: object): void {
    if (this.#output.destroyed || this.#output.writableEnded) return;
    this.#output.write(`${JSON.stringify(message)}\n`);
    this.#holdIfFull();
  }
}
