import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { partsOf } from './postgres.ts';

const SOCKET = '.s.PGSQL.5432';

/** Stands before a cluster. When it is told to, it cuts a connection in the middle of a commit, or holds it behind one. */
export class CuttingProxy {
  readonly folder = mkdtempSync(join(tmpdir(), 'colibri-cut-'));
  /** Connections that were cut. */
  cuts = 0;
  readonly #server;
  readonly #sockets = new Set<Socket>();
  #where: 'before' | 'behind' | undefined;
  #after = 0;
  /** What a client sent that is held, once its commit was answered. */
  #held: (() => void)[] | undefined;
  #holdAfter = 0;

  /** A proxy that listens, before the server of a URL, and the URL by way of it. */
  static async before(url: string): Promise<{ readonly proxy: CuttingProxy; readonly url: string }> {
    const { folder } = partsOf(url);
    const proxy = new CuttingProxy(folder);
    await proxy.listen();
    return { proxy, url: url.replace(encodeURIComponent(folder), encodeURIComponent(proxy.folder)) };
  }

  constructor(cluster: string) {
    this.#server = createServer((client) => {
      const server = connect(join(cluster, SOCKET));
      const cut = () => {
        this.cuts += 1;
        this.#where = undefined;
        client.destroy();
        server.destroy();
      };
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          client.destroy();
          server.destroy();
        });
      }
      // Those that only read commit as well.
      let isWriter = false;
      // The text of a statement is sent once per connection, then its name; the server names the command each time.
      let commit = 'COMMIT';
      client.on('data', (bytes) => {
        const text = bytes.toString('latin1');
        isWriter ||= text.includes('FOR UPDATE');
        const isCommit = text.includes(`\0${commit}\0`);
        commit = /(c\d+)\0COMMIT\0/.exec(text)?.[1] ?? commit;
        if (this.#where === 'before' && isWriter && isCommit && this.#isDue()) cut();
        else if (isWriter && this.#held !== undefined) this.#held.push(() => server.write(bytes));
        else server.write(bytes);
      });
      server.on('data', (bytes) => {
        if (this.#holdAfter > 0 && isWriter && bytes.includes('COMMIT\0')) {
          this.#holdAfter -= 1;
          if (this.#holdAfter === 0) this.#held = [];
        }
        if (this.#where === 'behind' && isWriter && bytes.includes('COMMIT\0') && this.#isDue()) cut();
        else client.write(bytes);
      });
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(join(this.folder, SOCKET), resolve));
  }

  /** Cuts the connection of the n-th commit from now on: before the server gets it, or behind it, before it is answered. */
  cutAt(where: 'before' | 'behind', n = 1): void {
    this.#where = where;
    this.#after = n;
  }

  /** Lets the n-th commit from now on be answered, and nothing through that its client sends behind it. */
  holdBehind(n = 1): void {
    this.#holdAfter = n;
  }

  /** Whether a client is between two transactions, and kept there. */
  get isHolding(): boolean {
    return this.#held !== undefined;
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const send of held) send();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }

  #isDue(): boolean {
    this.#after -= 1;
    return this.#after === 0;
  }
}
