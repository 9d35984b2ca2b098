import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AuditFile, readAuditFile } from './audit-file.ts';
import { databaseForTest, dropDatabase } from './postgres.ts';
import { type ServerOptions, ServerProcess } from './server-process.ts';

/** The server of a database is busy with many tests at once. */
const STARTUP_MS_MAX = 150_000;

/** Where one test plays: a folder of its own, and every process started in it. Nothing of it outlives the test. */
export class Playground {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'colibri-test-')));
  readonly #url: string | undefined;
  /** A file; where the test runs on PostgreSQL, the URL of a database. */
  readonly dbPath: string;
  readonly #servers: ServerProcess[] = [];
  readonly #undo: (() => unknown)[] = [];

  /** `null`: a file, whatever the tests run on. */
  constructor(given?: string | null) {
    const url = given === undefined ? databaseForTest() : given;
    this.#url = url ?? undefined;
    if (given === undefined && url) this.#undo.push(() => dropDatabase(url));
    this.dbPath = url ?? join(this.folder, 'data', 'colibri.db');
    for (const home of ['home', 'config', 'share']) mkdirSync(join(this.folder, home));
  }

  /** Starts the built server and, unless told otherwise, shakes hands with it the old way. */
  async start(options: StartOptions = {}): Promise<ServerProcess> {
    const server = this.spawn(options);
    if (options.era !== 'none' && options.era !== 'modern') await server.initialize(options.clientName);
    return server;
  }

  /** Starts the built server and says nothing to it yet. */
  spawn(options: StartOptions = {}): ServerProcess {
    const server = new ServerProcess({
      ...options,
      folder: options.folder ?? this.folder,
      env: { ...this.environment, ...options.env },
    });
    this.#servers.push(server);
    return server;
  }

  get isOnFile(): boolean {
    return this.#url === undefined;
  }

  /** How Colibri names the database: never with the host of a server. */
  get shownPath(): string {
    return this.isOnFile ? this.dbPath : `postgres:${this.dbPath.slice(this.dbPath.lastIndexOf('/') + 1)}`;
  }

  /** Another database that is not there yet, and what a process is told to use it. */
  another(name: string): { readonly dbPath: string; readonly env: Readonly<Record<string, string>> } {
    const url = this.isOnFile ? undefined : databaseForTest();
    if (url === undefined) {
      const dbPath = this.path(name, 'colibri.db');
      return { dbPath, env: { COLIBRI_DB_PATH: dbPath } };
    }
    this.onDispose(() => dropDatabase(url));
    return { dbPath: url, env: { COLIBRI_DATABASE_URL: url } };
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  /** What lies in the database, read by the second reader. */
  readAudit(path = this.dbPath): AuditFile {
    return readAuditFile(path);
  }

  /** Runs when the test is over, last one first. */
  onDispose(undo: () => unknown): void {
    this.#undo.push(undo);
  }

  /**
   * Ends what is still running and clears up, whatever goes wrong meanwhile. Returns what no test may leave behind:
   * impure stdout, answers nobody asked for, something that could not be cleared up.
   */
  async dispose(): Promise<string[]> {
    const complaints: string[] = [];
    const steps = [
      () => Promise.all(this.#servers.map((server) => server.dispose())),
      ...this.#undo.reverse(),
      () => rmSync(this.folder, { recursive: true, force: true }),
    ];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        complaints.push(`clearing up: ${String(error)}`);
      }
    }
    return [...this.#servers.flatMap((server) => server.complaints()), ...complaints];
  }

  /** What every process of this test gets, and nothing else of the machine's. */
  get environment(): Readonly<Record<string, string>> {
    return {
      PATH: process.env.PATH ?? '',
      HOME: join(this.folder, 'home'),
      XDG_CONFIG_HOME: join(this.folder, 'config'),
      XDG_DATA_HOME: join(this.folder, 'share'),
      ...(this.#url === undefined
        ? { COLIBRI_DB_PATH: this.dbPath }
        : { COLIBRI_DATABASE_URL: this.#url, COLIBRI_STARTUP_TIMEOUT_MS: String(STARTUP_MS_MAX) }),
    };
  }
}

export type StartOptions = Partial<Omit<ServerOptions, 'env'>> & {
  /** On top of the private ones; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly era?: 'legacy' | 'modern' | 'none';
  readonly clientName?: string;
};
