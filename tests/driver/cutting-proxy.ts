import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SOCKET = '.s.PGSQL.5432';

/** Stands before a cluster and cuts a connection in the middle of a commit, when it is told to. */
export class CuttingProxy {
  readonly folder = mkdtempSync(join(tmpdir(), 'colibri-cut-'));
  /** Connections that were cut. */
  cuts = 0;
  readonly #server;
  readonly #sockets = new Set<Socket>();
  #where: 'before' | 'behind' | undefined;
  #after = 0;

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
        else server.write(bytes);
      });
      server.on('data', (bytes) => {
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
