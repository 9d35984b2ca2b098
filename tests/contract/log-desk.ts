import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { canonical, sha256, withDatabase } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import type { Playground } from '../driver/playground.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { proves as provesInFolder } from './proves.ts';

/** What `colibri verify --json` prints, as far as these tests look into it. */
export interface Verdict {
  readonly ok: boolean;
  readonly size: number;
  readonly intact_through: number;
  readonly checkpointed_through: number;
  readonly anchored_through: number;
  readonly anchored_by: readonly string[];
  readonly unanchored_tail: number;
  readonly against?: { readonly verdict: string; readonly message: string };
  readonly checkpoints: readonly {
    readonly source: string;
    readonly size: number;
    readonly status: string;
  }[];
  readonly remarks: readonly string[];
  readonly findings: readonly {
    readonly kind: string;
    readonly table: string;
    readonly record: string;
    readonly message: string;
    readonly columns?: readonly string[];
  }[];
}

export interface Health {
  readonly status: string;
  readonly log: { readonly origin: string; readonly signed_through: number; readonly refused?: string };
}

/** A proof with the words this section needs. */
export function proves(
  ids: Parameters<typeof provesInFolder>[0],
  sentence: string,
  prove: (desk: LogDesk) => Promise<void>,
): void {
  provesInFolder(ids, sentence, ({ colibri }) => prove(new LogDesk(colibri)));
}

export class LogDesk {
  readonly colibri: Playground;

  constructor(colibri: Playground) {
    this.colibri = colibri;
  }

  get dbPath(): string {
    return this.colibri.dbPath;
  }

  /** The per-user folder of the only log there is. */
  get logFolder(): string {
    const logs = join(this.colibri.folder, 'config', 'colibri', 'logs');
    const [name] = readdirSync(logs).filter((entry) => !entry.includes('.'));
    return join(logs, name ?? 'none');
  }

  get lastSigned(): string {
    return readFileSync(join(this.logFolder, 'last-signed'), 'utf8');
  }

  /** A task, thoughts on it, a sealed session, and a clean stop: everything signed. */
  async work(): Promise<void> {
    const server = await this.colibri.start();
    await this.ok(server, 'task_create', { title: 'Build the thing', project: 'demo' });
    await this.ok(server, 'audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' });
    for (const content of ['first', 'second', 'third', 'fourth']) await this.think(server, content);
    await this.ok(server, 'merkle_finalize', { session_id: 'A-0001' });
    await server.closeInput();
  }

  /** A few more rows, signed at the stop. */
  async moreWork(content = 'more'): Promise<void> {
    const server = await this.colibri.start();
    await this.think(server, content);
    await server.closeInput();
  }

  async think(server: ServerProcess, content: string, more: object = {}): Promise<void> {
    await this.ok(server, 'thought_record', { task_id: 'T-0001', type: 'decision', content, ...more });
  }

  async ok(server: ServerProcess, tool: string, args: object): Promise<void> {
    const answer = await server.call(tool, args);
    if (answer.error !== undefined) throw new Error(`${tool}: ${answer.error.message}`);
  }

  async health(server: ServerProcess): Promise<Health> {
    return (await server.call('server_health', {})).envelope?.data as unknown as Health;
  }

  /** Starts a server; the first look at its health must tell that it refuses the log. */
  async refusalAtStart(env: Record<string, string> = {}): Promise<{ health: Health; stderr: string }> {
    const server = await this.colibri.start({ env });
    const health = await this.health(server);
    await server.closeInput();
    if (health.status !== 'degraded') throw new Error(`the server did not refuse: ${server.stderr}`);
    return { health, stderr: server.stderr };
  }

  run(...args: string[]) {
    return runColibri(this.colibri, args);
  }

  async verify(...args: string[]): Promise<Verdict & { code: number }> {
    const { code, stdout, stderr } = await this.run('verify', '--json', ...args);
    if (stdout === '') throw new Error(`verify printed nothing: ${stderr}`);
    return { ...(JSON.parse(stdout) as Verdict), code: code ?? -1 };
  }

  /** The kinds of what `verify` finds, each once. */
  async findings(...args: string[]): Promise<string[]> {
    const { findings } = await this.verify(...args);
    return [...new Set(findings.map(({ kind }) => kind))].sort();
  }

  /** Changes the file as somebody with an editor would: no trigger in the way, nothing left in a write-ahead log. */
  tamper(change: (db: Sqlite.Database) => void, path = this.dbPath): void {
    const db = new Sqlite(path);
    const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
      name: string;
      sql: string;
    }[];
    db.pragma('foreign_keys = OFF');
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    change(db);
    for (const { sql } of triggers) db.exec(sql);
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
  }

  copyTo(path: string): void {
    copyFileSync(this.dbPath, path);
  }

  /** Puts a copy in the place of the database, as a backup tool would. */
  restore(copy: string): void {
    for (const suffix of ['-wal', '-shm']) rmSync(`${this.dbPath}${suffix}`, { force: true });
    copyFileSync(copy, this.dbPath);
  }

  positions(where = '1'): number[] {
    return withDatabase(this.dbPath, (db) =>
      db.prepare(`SELECT position FROM actions WHERE ${where} ORDER BY position`).pluck().all(),
    ) as number[];
  }
}

/** Changes what rows say and makes every hash after it fit again, block roots included. */
export function rewrite(db: Sqlite.Database, change: (row: Record<string, unknown>) => void): void {
  rewriteText(db, (text) => {
    const row = JSON.parse(text) as Record<string, unknown>;
    change(row);
    return canonical(row);
  });
}

export function rewriteText(db: Sqlite.Database, change: (text: string, position: number) => string): void {
  const rows = db.prepare('SELECT position, text FROM actions ORDER BY position').all() as {
    position: number;
    text: string;
  }[];
  const update = db.prepare(
    'UPDATE actions SET text = ?, content_hash = ?, chain_hash = ? WHERE position = ?',
  );
  let previous = '0'.repeat(64);
  for (const { position, text } of rows) {
    const changed = change(text, position);
    const contentHash = sha256(changed);
    previous = sha256(contentHash + previous);
    update.run(changed, contentHash, previous, position);
  }
}

/** Cuts the log after `end` and takes away everything that would tell: rows of state, payloads, marks. */
export function cutCleanly(db: Sqlite.Database, end: number): void {
  for (const table of ['session_records', 'thoughts', 'sessions', 'tasks'])
    db.prepare(`DELETE FROM ${table} WHERE position > ?`).run(end);
  for (const table of ['action_payloads', 'open_calls', 'actions'])
    db.prepare(`DELETE FROM ${table} WHERE position > ?`).run(end);
}
