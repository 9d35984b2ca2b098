import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What a tool answered, as an agent sees it. */
export interface Answer {
  readonly ok: boolean;
  readonly data: Readonly<Record<string, unknown>>;
  /** Set when the call was refused, in either pattern. */
  readonly refused: { readonly code: string; readonly message: string } | undefined;
}

/** An agent's side of the connection: a real server process over real stdio. */
export class DemoClient {
  readonly #server: ChildProcess;
  readonly #waiting = new Map<number, { resolve(message: Message): void; reject(error: Error): void }>();
  #id = 0;

  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#server = spawn(process.execPath, [fileURLToPath(new URL('server.js', import.meta.url))], {
      env: { ...env, COLIBRI_LOG_LEVEL: 'error' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (this.#server.stdout === null) throw new Error('the server has no output to read');
    createInterface({ input: this.#server.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as Message;
      this.#waiting.get(message.id)?.resolve(message);
      this.#waiting.delete(message.id);
    });
    this.#server.once('exit', (code) => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(`the server ended with code ${code}`));
    });
  }

  async start(name: string): Promise<void> {
    await this.#request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name, version: '1' },
    });
  }

  async call(tool: string, args: object): Promise<Answer> {
    const { result, error } = await this.#request('tools/call', { name: tool, arguments: args });
    const envelope = result?.structuredContent;
    if (envelope === undefined) throw new Error(`${tool}: ${error?.message ?? 'no answer'}`);
    const data = envelope.data ?? {};
    return {
      ok: envelope.ok && data.ok !== false,
      data,
      refused: envelope.error ?? (data.error as Answer['refused']),
    };
  }

  /** Closes its end, as a client does; the server then stops cleanly. */
  async stop(): Promise<void> {
    const exited = new Promise((resolve) => this.#server.once('exit', resolve));
    this.#server.stdin?.end();
    await exited;
  }

  #request(method: string, params: object): Promise<Message> {
    this.#id += 1;
    const id = this.#id;
    this.#server.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
}

interface Message {
  readonly id: number;
  readonly error?: { readonly message: string };
  readonly result?: {
    readonly structuredContent?: {
      readonly ok: boolean;
      readonly data?: Readonly<Record<string, unknown>>;
      readonly error?: { readonly code: string; readonly message: string };
    };
  };
}
