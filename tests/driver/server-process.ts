import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CLIENT_NAME, legacyInitialize, modernMeta } from './era.ts';
import { type Message, messageComplaint, type ToolAnswer, toToolAnswer } from './message.ts';

export const SERVER_FILE =
  process.env.COLIBRI_TEST_SERVER ?? fileURLToPath(new URL('../../dist/server.js', import.meta.url));
export const NODE = process.env.COLIBRI_TEST_NODE ?? process.execPath;

/** Longer than anything may take on a busy machine; a test that waits this long has found a stall. */
/** On PostgreSQL, looking into the database starts a program each time, and there are more processes. */
export const PATIENCE = process.env.COLIBRI_TEST_POSTGRES === undefined ? 1 : 5;
const ANSWER_MS_MAX = 30_000 * PATIENCE;
const EXIT_MS_MAX = 20_000 * PATIENCE;

export interface ServerOptions {
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What stands before `node server.js` on the command line: a shell that sets a umask, strace. Must exec, so that the pid is the server's. */
  readonly wrapper?: readonly string[];
  /** Another server than the built one: a copy that was broken on purpose. */
  readonly serverFile?: string;
  /** Another Node than the usual. */
  readonly node?: string;
  /** For a crowd that takes longer. */
  readonly answerMsMax?: number;
}

/** One call as the client saw it. `unknown`: the server ended before it answered. */
export interface Sent {
  readonly id: number | string;
  readonly what: string;
  readonly sentMs: number;
  settledMs?: number;
  state: 'sent' | 'acked' | 'failed' | 'unknown';
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Every server that has not ended. A worker that leaves early takes them with it, also those that are stopped. */
const running = new Map<number, ServerProcess>();
process.on('exit', () => {
  for (const server of running.values()) server.kill('SIGKILL');
});

interface Waiter {
  readonly id: Message['id'];
  resolve(message: Message): void;
  reject(error: Error): void;
}

/** The built server at the other end of three pipes. Speaks lines, remembers everything, kills by pid only. */
export class ServerProcess {
  /** Every call in the order it was sent. */
  readonly history: Sent[] = [];
  /** Every line of stdout that is a message, in order. */
  readonly messages: Message[] = [];
  /** Lines of stdout that are none. Always empty, or stdout is not pure. */
  readonly stray: string[] = [];
  readonly exited: Promise<Exit>;
  readonly pid: number;
  exit: Exit | undefined;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiters: Waiter[] = [];
  #unclaimed: Message[] = [];
  #expectsUnclaimed = false;
  #stderr = '';
  #partial: Buffer[] = [];
  #nextId = 1;
  readonly #answerMsMax: number;

  constructor(options: ServerOptions) {
    const { wrapper = [], node = NODE, serverFile = SERVER_FILE } = options;
    const [program = NODE, ...args] = [...wrapper, node, serverFile];
    const env = Object.entries(options.env).filter(([, value]) => value !== undefined);
    const child = spawn(program, args, { cwd: options.folder, env: Object.fromEntries(env), stdio: 'pipe' });
    if (child.pid === undefined) throw new Error(`could not start ${program}`);
    this.#child = child;
    this.#answerMsMax = options.answerMsMax ?? ANSWER_MS_MAX;
    this.pid = child.pid;
    running.set(child.pid, this);
    child.stdin.on('error', () => undefined);
    child.stdout.on('data', (chunk: Buffer) => this.#receive(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    this.exited = new Promise((resolve) => {
      // `close` comes after the last byte of both pipes, `exit` may come before.
      child.on('close', (code, signal) => {
        this.exit = { code, signal };
        running.delete(this.pid);
        this.#giveUpWaiting();
        resolve(this.exit);
      });
    });
  }

  get stderr(): string {
    return this.#stderr;
  }

  get isAlive(): boolean {
    return this.exit === undefined && existsSync(`/proc/${this.pid}`);
  }

  /** Bytes of memory the process holds now (Linux). */
  get rssBytes(): number {
    return this.#memory('VmRSS');
  }

  /** The most it has held so far (Linux). */
  get peakBytes(): number {
    return this.#memory('VmHWM');
  }

  #memory(field: string): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
  }

  /** Processor time the process has used so far (Linux counts in hundredths). Unlike time on the wall it is its own. */
  get cpuMs(): number {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'utf8');
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13);
    return (Number(user) + Number(system)) * 10;
  }

  /** What was written to the server and waits here, because it does not read. */
  get unsentBytes(): number {
    return this.#child.stdin.writableLength;
  }

  /** The handshake of every revision before 2026-07-28. */
  async initialize(clientName = CLIENT_NAME, protocolVersion = '2025-11-25'): Promise<Message> {
    const answer = await this.request('initialize', legacyInitialize(clientName, protocolVersion));
    this.notify('notifications/initialized');
    return answer;
  }

  request(method: string, params?: object): Promise<Message> {
    const id = this.#nextId++;
    const answer = this.#track(id, method, this.answerTo(id));
    this.send({ jsonrpc: '2.0', id, method, ...(params !== undefined && { params }) });
    return answer;
  }

  /** A request that carries what revision 2026-07-28 wants with each. */
  modern(method: string, params: object = {}, meta: object = modernMeta()): Promise<Message> {
    return this.request(method, { ...params, _meta: meta });
  }

  notify(method: string, params?: object): void {
    this.send({ jsonrpc: '2.0', method, ...(params !== undefined && { params }) });
  }

  /** A tool call as a client makes it. `args` undefined leaves the field out. */
  async call(name: string, args?: unknown): Promise<ToolAnswer> {
    return toToolAnswer(
      await this.request('tools/call', { name, ...(args !== undefined && { arguments: args }) }),
    );
  }

  /** Tool calls in one write, so that the server reads them together. Answers in the same order. */
  async callTogether(calls: readonly (readonly [name: string, args?: unknown])[]): Promise<ToolAnswer[]> {
    const lines: string[] = [];
    const answers = calls.map(([name, args]) => {
      const id = this.#nextId++;
      const params = { name, ...(args !== undefined && { arguments: args }) };
      lines.push(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`);
      return this.#track(id, name, this.answerTo(id));
    });
    this.write(lines.join(''));
    return (await Promise.all(answers)).map(toToolAnswer);
  }

  async callModern(name: string, args?: unknown, meta: object = modernMeta()): Promise<ToolAnswer> {
    return toToolAnswer(
      await this.modern('tools/call', { name, ...(args !== undefined && { arguments: args }) }, meta),
    );
  }

  send(message: object): void {
    this.write(`${JSON.stringify(message)}\n`);
  }

  /** One raw line; the newline is added. The answer is waited for under `id`. */
  async sendLine(line: string | Buffer, id: Message['id'] = null): Promise<Message> {
    const answer = this.answerTo(id);
    this.write(Buffer.concat([Buffer.from(line), Buffer.from('\n')]));
    return await answer;
  }

  write(bytes: string | Buffer): void {
    if (!this.#child.stdin.destroyed) this.#child.stdin.write(bytes);
  }

  /** The next answer with this id that nobody has claimed yet; null for errors the server could not attribute. */
  answerTo(id: Message['id'], msMax = this.#answerMsMax): Promise<Message> {
    const known = this.#unclaimed.findIndex((message) => message.id === id);
    if (known !== -1) return Promise.resolve(this.#unclaimed.splice(known, 1)[0] as Message);
    return new Promise<Message>((resolve, reject) => {
      const timer = setTimeout(
        () => waiter.reject(new Error(`no answer to ${id} within ${msMax} ms`)),
        msMax,
      );
      const settle = () => {
        clearTimeout(timer);
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      };
      const waiter: Waiter = {
        id,
        resolve: (message) => {
          settle();
          resolve(message);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      this.#waiters.push(waiter);
      if (this.exit !== undefined) this.#giveUpWaiting();
    });
  }

  /** Answers that came and were not waited for, taken out. For tests that count answers themselves. */
  takeUnclaimed(): Message[] {
    this.#expectsUnclaimed = true;
    return this.#unclaimed.splice(0);
  }

  /** Resolves when stderr holds the text. */
  async stderrHolds(text: string, msMax = ANSWER_MS_MAX): Promise<void> {
    await until(
      () => this.#stderr.includes(text),
      msMax,
      () => `stderr never said ${text}: ${this.#stderr}`,
    );
  }

  pauseReading(): void {
    this.#child.stdout.pause();
  }

  resumeReading(): void {
    this.#child.stdout.resume();
  }

  /** The client's reading end goes away; stdin stays open. */
  closeOutput(): void {
    this.#child.stdout.destroy();
  }

  async closeInput(): Promise<Exit> {
    this.#child.stdin.end();
    return await this.waitForExit();
  }

  /** Sends a signal to this process, by its id, and to no other. */
  kill(signal: NodeJS.Signals): void {
    if (this.exit === undefined) process.kill(this.pid, signal);
  }

  async killHard(): Promise<Exit> {
    this.kill('SIGKILL');
    return await this.waitForExit();
  }

  async waitForExit(msMax = EXIT_MS_MAX): Promise<Exit> {
    await until(
      () => this.exit !== undefined,
      msMax,
      () => `the server did not end within ${msMax} ms; stderr: ${this.#stderr.slice(-2_000)}`,
    );
    return this.exit as Exit;
  }

  async dispose(): Promise<void> {
    this.resumeReading();
    this.#child.stdin.destroy();
    const gone = await Promise.race([this.exited, sleepMs(5_000)]);
    if (gone !== undefined) return;
    this.kill('SIGCONT');
    await this.killHard();
  }

  /** What must be empty at the end of every test. */
  complaints(): string[] {
    const unasked = this.#expectsUnclaimed ? [] : this.#unclaimed;
    return [
      ...this.stray.map((line) => `stdout carried something else: ${line.slice(0, 300)}`),
      ...unasked.map((message) => `answer nobody asked for: ${JSON.stringify(message).slice(0, 300)}`),
    ];
  }

  #receive(chunk: Buffer): void {
    const pieces = Buffer.concat([...this.#partial, chunk])
      .toString('latin1')
      .split('\n');
    this.#partial = [Buffer.from(pieces.pop() ?? '', 'latin1')];
    for (const piece of pieces) this.#receiveLine(Buffer.from(piece, 'latin1').toString('utf8'));
  }

  #receiveLine(line: string): void {
    const complaint = messageComplaint(line);
    if (complaint !== undefined) {
      this.stray.push(`${complaint}: ${line}`);
      return;
    }
    const message = JSON.parse(line) as Message;
    this.messages.push(message);
    if (message.method !== undefined) return;
    const waiter = this.#waiters.find((waiting) => waiting.id === message.id);
    if (waiter === undefined) this.#unclaimed.push(message);
    else waiter.resolve(message);
  }

  #track(id: number, what: string, answer: Promise<Message>): Promise<Message> {
    const sent: Sent = { id, what, sentMs: performance.now(), state: 'sent' };
    this.history.push(sent);
    return answer.then(
      (message) => {
        sent.settledMs = performance.now();
        sent.state = message.error === undefined ? 'acked' : 'failed';
        return message;
      },
      (error) => {
        sent.state = 'unknown';
        throw error;
      },
    );
  }

  #giveUpWaiting(): void {
    const { code, signal } = this.exit ?? {};
    for (const waiter of [...this.#waiters]) {
      const stderr = this.#stderr.slice(-1_000);
      waiter.reject(new Error(`server ended (${code ?? signal}) before answering ${waiter.id}: ${stderr}`));
    }
  }
}

export function sleepMs(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined));
}

/** Waits until something is true, looking every few milliseconds. */
export async function until(holds: () => boolean, msMax: number, complaint: () => string): Promise<void> {
  const deadline = performance.now() + msMax * PATIENCE;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(complaint());
    await sleepMs(5);
  }
}
