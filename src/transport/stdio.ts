import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { LIMITS } from '../limits.ts';
import { LineReader } from './line-reader.ts';
import {
  carryCall,
  type Era,
  eraOf,
  type Params,
  type ReadLine,
  type RequestId,
  readLine,
  refuseOversized,
} from './message.ts';
import { Wakefulness } from './wakefulness.ts';

/** A subscription is answered when it ends, and it ends with the connection: nothing to wait for. */
const SUBSCRIBE = 'subscriptions/listen';

interface Pending {
  readonly id: RequestId;
  readonly bytes: number;
  readonly isCall: boolean;
  /** The client wants no answer any more. */
  isCancelled: boolean;
}

/** Takes a call, or not, and answers the last member of its answer as JSON. Never rejects. */
type TakeCall = (params: Params) => Promise<string> | undefined;

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
  /** Asked first for each call; a call that it does not take is a message like others. */
  oncall?: TakeCall;

  readonly #input: Readable;
  readonly #output: Writable;
  readonly #lines: LineReader;
  readonly #wakefulness = new Wakefulness();
  /** Lines that leave together at the next moment. */
  #unsent = '';
  /** What was read and is not handed on yet, because there is no room for more requests. */
  #unread: Uint8Array[] = [];
  /** Requests handed on that have not ended. A client may use an id again. */
  #pending: Pending[] = [];
  #pendingBytes = 0;
  #idle: (() => void)[] = [];
  #room: (() => void)[] = [];
  #peeking: NodeJS.Timeout | undefined;
  #isReading = true;
  #isEnded = false;
  #closed = false;
  #era: Era | undefined;

  constructor(input: Readable = process.stdin, output: Writable = process.stdout) {
    this.#input = input;
    this.#output = output;
    this.#lines = new LineReader({
      line: (bytes) => this.#receive(readLine(bytes, this.#era), bytes.length),
      oversized: (id) => this.#receive(refuseOversized(id), 0),
      isFull: () => this.#isFull(),
    });
  }

  async start(): Promise<void> {
    this.#input.on('data', this.#ondata);
    for (const event of ['end', 'close', 'error']) this.#input.once(event, this.#onend);
    this.#output.on('error', this.#onbroken);
    this.#output.on('drain', this.#ondrain);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if ('method' in message || this.ended(message.id)?.isCancelled !== true) this.#write(message);
  }

  /** A request has its answer, or was cancelled and will have none. Until then it counts, whether it waits or runs. */
  ended(id: unknown): Pending | undefined {
    // Nearly always the first: calls are answered in their order.
    const at = this.#pending.findIndex((request) => request.id === id);
    const [request] = at < 0 ? [] : this.#pending.splice(at, 1);
    if (request === undefined) return undefined;
    this.#pendingBytes -= request.bytes;
    // Not at once: what is handed on could cancel another call that has ended and whose answer is on its way here.
    if (this.#peeking !== undefined) setImmediate(() => this.#handOn());
    this.#wakeIfIdle();
    return request;
  }

  /** While the client does not read: resolves when it has read everything, or nobody will. */
  room(): Promise<void> | undefined {
    const isFull = this.#unreadBytes > LIMITS.unsentBytesMax;
    if (!isFull || this.#closed || this.#output.destroyed) return undefined;
    return new Promise((resolve) => this.#room.push(resolve));
  }

  /** Takes no more input; what was received can still be answered. */
  stopReading(): void {
    this.#isReading = false;
    this.#input.off('data', this.#ondata);
    this.#input.pause();
  }

  /** Resolves when every request received so far has its answer. */
  async drained(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Resolves when the client's side of the pipe has taken what was written, or is gone. */
  async flushed(): Promise<void> {
    this.#send();
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
    wake(this.#room);
    this.onclose?.();
  }

  #ondata = (chunk: Uint8Array): void => {
    this.#unread.push(chunk);
    this.#handOn();
  };

  #onend = (): void => {
    this.#input.off('end', this.#onend);
    this.#input.off('close', this.#onend);
    this.#isEnded = true;
    this.#handOn();
    this.onend?.();
  };

  #ondrain = (): void => {
    wake(this.#room);
    this.#handOn();
  };

  /** The client no longer reads: nobody can be answered any more. */
  #onbroken = (): void => {
    this.#unread = [];
    this.#pending = [];
    this.#pendingBytes = 0;
    wake(this.#room);
    this.#wakeIfIdle();
    this.onend?.();
  };

  /** Hands on what was read, as long as there is room, and reads on when all of it was. */
  #handOn(): void {
    while (!this.#isFull()) {
      const chunk = this.#unread.shift();
      if (chunk === undefined) return void this.#readOn();
      const rest = this.#lines.push(chunk);
      if (rest.length > 0) this.#unread.unshift(rest);
    }
    this.#hold();
  }

  #hold(): void {
    this.#input.pause();
    // While nothing is read, nobody would see that the client has closed its end: look at one chunk now and then.
    this.#peeking ??= setInterval(() => this.#peek(), LIMITS.peekMs).unref();
  }

  #peek(): void {
    const bytes = this.#unread.reduce((sum, chunk) => sum + chunk.length, 0);
    if (this.#isReading && bytes < LIMITS.lineBytesMax) this.#input.resume();
  }

  #readOn(): void {
    if (this.#isEnded) this.#lines.end();
    this.#wakeIfIdle();
    if (this.#peeking === undefined) return;
    clearInterval(this.#peeking);
    this.#peeking = undefined;
    if (this.#isReading) this.#input.resume();
  }

  /** Whether the client does not read, or has asked faster than can be answered. */
  #isFull(): boolean {
    const bytes = this.#unreadBytes + this.#pendingBytes;
    return bytes > LIMITS.unsentBytesMax || this.#pending.length > LIMITS.pendingRequestsMax;
  }

  #isIdle(): boolean {
    return this.#pending.length === 0 && this.#unread.length === 0;
  }

  #receive(read: ReadLine, bytes: number): void {
    this.#wakefulness.received(this.#pending.length === 0);
    if (read.kind === 'refused') return void this.#write({ jsonrpc: '2.0', id: read.id, error: read.error });
    const { id, method, params } = read.message;
    if (method !== undefined && id !== undefined) this.#era ??= eraOf(params);
    if (method !== undefined && id !== undefined && method !== SUBSCRIBE) {
      const isCall = method === 'tools/call';
      this.#pending.push({ id, bytes, isCall, isCancelled: false });
      this.#pendingBytes += bytes;
      const answer = isCall ? this.oncall?.(params ?? {}) : undefined;
      if (answer !== undefined) return void answer.then((member) => this.#answer(id, member));
    } else if (method === 'notifications/cancelled') this.#cancelled(params?.requestId);
    const message = method === 'tools/call' ? carryCall(read.message) : read.message;
    this.onmessage?.(message as JSONRPCMessage);
  }

  /** A call that is cancelled still waits for its turn and runs; of any other request nothing is left. */
  #cancelled(id: unknown): void {
    const request = this.#pending.find((one) => one.id === id);
    if (request?.isCall === false) this.ended(id);
    else if (request !== undefined) request.isCancelled = true;
  }

  #wakeIfIdle(): void {
    if (this.#isIdle()) wake(this.#idle);
  }

  #answer(id: RequestId, member: string): void {
    if (this.ended(id)?.isCancelled === true) return;
    this.#writeLine(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${member}}`);
  }

  #write(message: object): void {
    this.#writeLine(JSON.stringify(message));
  }

  #writeLine(line: string): void {
    if (this.#output.destroyed || this.#output.writableEnded) return;
    // What is written before anything else happens leaves in one piece: the answers of a batch, in one system call.
    if (this.#unsent === '') process.nextTick(() => this.#send());
    this.#unsent += `${line}\n`;
    if (this.#isFull()) this.#hold();
  }

  #send(): void {
    const text = this.#unsent;
    this.#unsent = '';
    if (text === '' || this.#output.destroyed || this.#output.writableEnded) return;
    this.#output.write(text);
    if (this.#pending.length === 0) this.#wakefulness.answered();
  }

  /** What the client has not read. What leaves at the next moment is counted in characters. */
  get #unreadBytes(): number {
    return this.#output.writableLength + this.#unsent.length;
  }
}

function wake(waiting: (() => void)[]): void {
  for (const resolve of waiting.splice(0)) resolve();
}
