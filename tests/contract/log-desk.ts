import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { formatCheckpoint } from '../../src/integrity/checkpoint.ts';
import { noteSigner, signNote } from '../../src/integrity/signed-note.ts';
import { Frontier, treeRoot } from '../../src/integrity/tree.ts';
import { PathMemory } from '../../src/trust/key-folder.ts';
import { encodeSlot } from '../../src/trust/memory.ts';
import { canonical, sha256, withDatabase } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { type Database, openDatabase, withoutTriggers } from '../driver/database.ts';
import { Playground } from '../driver/playground.ts';
import { copyOf, dropDatabase, replaceDatabase } from '../driver/postgres.ts';
import { anyRowText } from '../driver/row-text.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { proves as provesInFolder } from './proves.ts';

/** What `colibri verify --json` prints, as far as these tests look into it. */
export interface Verdict {
  readonly ok: boolean;
  readonly size: number;
  readonly intact_through: number;
  readonly replayed_through: number;
  readonly checkpointed_through: number;
  readonly anchored_through: number;
  readonly anchored_by: readonly string[];
  readonly unanchored_tail: number;
  readonly against?: { readonly verdict: string; readonly message: string };
  readonly checkpointed_by: readonly {
    readonly key: string;
    readonly through: number;
    readonly known: boolean;
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
  /** Of a database on a server: what stands for the copies that were made of it. */
  readonly #copies = new Map<string, string>();

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

  /** Where each process remembers what it signed last. */
  get memory(): string {
    return join(this.logFolder, 'signed');
  }

  /** The largest of all checkpoints that any process remembers. */
  get lastSigned(): string {
    const notes = readdirSync(this.memory).flatMap((name) => notesIn(join(this.memory, name)));
    return notes.sort((a, b) => sizeIn(b) - sizeIn(a))[0] ?? 'none';
  }

  /** The newest signed head in the database. */
  get head(): string {
    return withDatabase(this.dbPath, (db) =>
      db.prepare('SELECT checkpoint FROM log_heads ORDER BY size DESC').pluck().get(),
    ) as string;
  }

  /** Checkpoints that were kept for good, by size. */
  get kept(): string[] {
    return withDatabase(this.dbPath, (db) =>
      db.prepare('SELECT note FROM checkpoints ORDER BY size').pluck().all(),
    ) as string[];
  }

  /** A task, thoughts on it, a sealed session, and a clean stop. In an empty folder, the copy of a log made once. */
  async work(): Promise<void> {
    if (!isUntouched(this.colibri)) return await this.workAnew();
    worked ??= workedFolder();
    for (const { path, bytes, mode } of await worked) {
      if (bytes === undefined) mkdirSync(this.colibri.path(path), { recursive: true, mode });
      else writeFileSync(this.colibri.path(path), bytes, { mode });
    }
    // The user remembers where the log is.
    const configDir = this.colibri.path('config', 'colibri');
    rmSync(join(configDir, 'paths'), { recursive: true });
    new PathMemory(configDir, this.dbPath).write(this.head.split('\n')[0] ?? '');
  }

  /** The work itself. */
  async workAnew(): Promise<void> {
    const server = await this.colibri.start();
    await this.ok(server, 'task_create', { title: 'Build the thing', project: 'demo' });
    await this.ok(server, 'audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' });
    for (const content of ['first', 'second', 'third', 'fourth']) await this.think(server, content);
    await this.ok(server, 'merkle_finalize', { session_id: 'A-0001' });
    await server.closeInput();
  }

  /** A few more rows, without starting a server. */
  async moreWork(content = 'more'): Promise<void> {
    const thought = { task_id: 'T-0001', type: 'decision', content };
    const { code, stderr } = await runColibri(this.colibri, [
      'call',
      'thought_record',
      JSON.stringify(thought),
    ]);
    if (code !== 0) throw new Error(`thought_record: ${stderr}`);
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
    return runColibri(
      this.colibri,
      args.map((arg) => this.#copies.get(arg) ?? arg),
    );
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
  tamper(change: (db: Database) => void, path = this.dbPath): void {
    const db = openDatabase(this.#copies.get(path) ?? path);
    withoutTriggers(db, () => change(db));
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
  }

  copyTo(path: string): void {
    if (this.dbPath.startsWith('postgres:')) {
      const copy = copyOf(this.dbPath);
      this.colibri.onDispose(() => dropDatabase(copy));
      this.#copies.set(path, copy);
    } else copyFileSync(this.dbPath, path);
  }

  /** What a process is told to use a copy. */
  placed(copy: string): Record<string, string> {
    const onServer = this.#copies.get(copy);
    return onServer === undefined ? { COLIBRI_DB_PATH: copy } : { COLIBRI_DATABASE_URL: onServer };
  }

  /** Puts a copy in the place of the database, as a backup tool would. */
  restore(copy: string): void {
    const onServer = this.#copies.get(copy);
    if (onServer !== undefined) {
      replaceDatabase(this.dbPath, onServer);
      return;
    }
    for (const suffix of ['-wal', '-shm']) rmSync(`${this.dbPath}${suffix}`, { force: true });
    copyFileSync(copy, this.dbPath);
  }

  positions(where = '1'): number[] {
    return withDatabase(this.dbPath, (db) =>
      db.prepare(`SELECT position FROM audit_rows WHERE ${where} ORDER BY position`).pluck().all(),
    ) as number[];
  }
}

/** A folder or a file of a playground. */
interface Entry {
  readonly path: string;
  readonly bytes?: Buffer;
  readonly mode: number;
}

let worked: Promise<readonly Entry[]> | undefined;

/** What the work leaves behind. */
async function workedFolder(): Promise<readonly Entry[]> {
  const colibri = new Playground();
  try {
    await new LogDesk(colibri).workAnew();
    return readdirSync(colibri.folder, { recursive: true, withFileTypes: true }).map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mode } = statSync(path);
      return {
        path: relative(colibri.folder, path),
        ...(entry.isFile() && { bytes: readFileSync(path) }),
        mode,
      };
    });
  } finally {
    await colibri.dispose();
  }
}

/** Nothing has happened in it yet that the work would see: no log, no key, no repository. */
function isUntouched({ folder, isOnFile }: Playground): boolean {
  return isOnFile && readdirSync(folder, { recursive: true }).length === EMPTY_ENTRIES;
}

/** A playground begins with three folders of its user. */
const EMPTY_ENTRIES = 3;

/** The size a checkpoint speaks of. */
export function sizeIn(note: string): number {
  return Number(note.split('\n')[1]);
}

const SLOT_BYTES = 4_096;

/** A memory file has two slots, each of them a checksum, a chain hash and a note, a line for each of the first two. */
function notesIn(path: string): string[] {
  const bytes = readFileSync(path);
  return [0, SLOT_BYTES].flatMap((start) => {
    const text = bytes.toString('utf8', start, start + SLOT_BYTES).replace(/\0+$/, '');
    const body = text.slice(65);
    return text.slice(0, 64) === sha256(body) ? [body.slice(65)] : [];
  });
}

/** Changes what rows say and makes every hash after it fit again, block roots included. */
export function rewrite(db: Database, change: (row: Record<string, unknown>) => void): void {
  rewriteText(db, (text) => {
    const row = JSON.parse(text) as Record<string, unknown>;
    change(row);
    return canonical(row);
  });
}

export function rewriteText(db: Database, change: (text: string, position: number) => string): void {
  const rows = db.prepare('SELECT position, text FROM actions ORDER BY position').all() as {
    position: number;
    text: string;
  }[];
  const update = db.prepare('UPDATE actions SET text = ?, content = ?, chain = ? WHERE position = ?');
  let previous = '0'.repeat(64);
  for (const { position, text } of rows) {
    const changed = change(text, position);
    const contentHash = sha256(changed);
    previous = sha256(contentHash + previous);
    update.run(changed, Buffer.from(contentHash, 'hex'), Buffer.from(previous, 'hex'), position);
  }
}

const CUT_TABLES = [
  ...['session_records', 'thoughts', 'sessions', 'tasks'],
  ...['task_calls', 'action_payloads', 'open_calls', 'actions'],
];

/** Cuts the log after `end` and takes away everything that would tell: rows of state, payloads, texts, marks, heads. */
export function cutCleanly(db: Database, end: number): void {
  for (const table of CUT_TABLES) db.prepare(`DELETE FROM ${table} WHERE position > ?`).run(end);
  db.prepare('DELETE FROM checkpoints WHERE size > ?').run(end);
  db.prepare(
    'DELETE FROM texts WHERE NOT EXISTS (SELECT 1 FROM action_payloads WHERE instr(body, digest) > 0)',
  ).run();
  db.exec(`DELETE FROM processes;
    INSERT INTO processes SELECT process, actor, min(at) FROM audit_rows r WHERE substr(at, 1, 19) =
      (SELECT max(substr(at, 1, 19)) FROM audit_rows o WHERE o.process = r.process AND o.actor = r.actor) GROUP BY process, actor;
    DELETE FROM log_heads`);
  const kept = db.prepare('SELECT note FROM checkpoints WHERE size = ?').pluck().get(end) as
    | string
    | undefined;
  if (kept !== undefined) putHead(db, kept, keyOf(db, end));
}

function keyOf(db: Database, size: number): string {
  return db.prepare('SELECT key FROM checkpoints WHERE size = ?').pluck().get(size) as string;
}

/** Makes a note the head of the log, with everything that stands beside it. */
export function putHead(db: Database, note: string, key: string): void {
  const size = sizeIn(note);
  const rows = db
    .prepare('SELECT content_hash, chain_hash, at FROM audit_rows WHERE position <= ? ORDER BY position')
    .all(size) as {
    content_hash: string;
    chain_hash: string;
    at: string;
  }[];
  const tree = new Frontier();
  for (const { content_hash } of rows) tree.add(content_hash);
  const { chain_hash, at } = rows.at(-1) ?? { chain_hash: '', at: '' };
  db.prepare('DELETE FROM log_heads WHERE key = ?').run(key);
  db.prepare('INSERT INTO log_heads VALUES (?, ?, ?, ?, ?, ?)').run(
    ...[key, size, chain_hash, at, tree.state.hashes.join(''), note],
  );
}

/** What a thief does: the real key under the new head, in every place that this machine looks at. */
export function signAnew(desk: LogDesk): void {
  const [origin = ''] = desk.head.split('\n');
  const entries = desk.colibri.readAudit().entries;
  const signer = noteSigner(origin, readFileSync(join(desk.logFolder, 'key.pem'), 'utf8'));
  const noteAt = (size: number) => {
    const root = treeRoot(entries.slice(0, size).map(({ content_hash }) => content_hash));
    return signNote(formatCheckpoint({ origin, size, root }), signer);
  };
  const note = noteAt(entries.length);
  const sizes = desk.kept.map(sizeIn);
  desk.tamper((db) => {
    putHead(db, note, signer.verifierKey);
    for (const size of sizes)
      db.prepare('UPDATE checkpoints SET note = ? WHERE size = ?').run(noteAt(size), size);
  });
  for (const name of readdirSync(desk.memory)) rmSync(join(desk.memory, name));
  writeFileSync(join(desk.memory, 'initial'), encodeSlot(entries.at(-1)?.chain_hash ?? '', note));
}

/** Adds rows behind the last one as somebody does who knows the format and has no key. */
export function append(db: Database, rows: readonly Readonly<Record<string, unknown>>[]): void {
  for (const row of rows) {
    const last = db.prepare('SELECT position, chain_hash FROM audit_rows ORDER BY position DESC').get() as {
      position: number;
      chain_hash: string;
    };
    const text = anyRowText({ ...row, position: row.position ?? last.position + 1 });
    const contentHash = sha256(text);
    db.prepare('INSERT INTO actions (position, text, content, chain) VALUES (?, ?, ?, ?)').run(
      ...[
        Number(row.position ?? last.position + 1),
        text,
        Buffer.from(contentHash, 'hex'),
        Buffer.from(sha256(contentHash + last.chain_hash), 'hex'),
      ],
    );
  }
}

/**
 * Adds a `server_ping` as another process would have written it, with any change to its two rows. Needs one that was
 * made before, and no key.
 */
export function forgeCall(
  desk: LogDesk,
  change: { readonly enter?: object; readonly exit?: object } = {},
  path = desk.dbPath,
): void {
  const { rows } = desk.colibri.readAudit(path);
  const { sequence_no: before = 0, at } = rows.findLast(({ tool }) => tool === 'server_ping') ?? {};
  const next = { sequence_no: rows.length + 1, correlation_id: randomUUID(), at: rows.at(-1)?.at ?? at };
  const pair = rows
    .filter(({ sequence_no }) => sequence_no === before)
    .map(({ position: _, ...row }) => ({ ...row, ...next, ...change[row.stage] }));
  desk.tamper((db) => {
    append(db, pair);
    db.prepare(
      'INSERT INTO action_payloads SELECT ?, salt, body FROM action_payloads WHERE position = ?',
    ).run(...[rows.length + 1, before]);
  }, path);
}
