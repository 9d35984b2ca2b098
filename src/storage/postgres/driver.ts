import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { asError, ColibriError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Address, Host } from '../address.ts';
import { NoEngineError, type SqlList, type SqlValue } from '../engine.ts';
import { type Column, Outbox, type Prepared } from './wire.ts';

/** What a statement is answered with. */
export interface Answer {
  readonly rows: readonly unknown[];
  /** The command as the server names it, with the number of rows that it changed or found behind it. */
  readonly command: string;
}

/** How many rows a statement changed, or found. */
export function countOf({ command }: Answer): number {
  return Number(command.slice(command.lastIndexOf(' ') + 1)) || 0;
}

/** The part of the library that is used. */
interface Client {
  query(query: { readonly text: string } | RoundOfStatements): unknown;
  connect(): Promise<unknown>;
  end(): Promise<void>;
  on(event: 'error' | 'end', listener: (error?: Error) => void): void;
  on(event: 'notice', listener: (notice: { readonly detail?: string }) => void): void;
  readonly connection: Connection;
}

interface Connection {
  readonly stream: Pick<Writable, 'writable' | 'write' | 'cork' | 'uncork' | 'destroy'>;
}

/** What the library tells a query of its own kind. The last is called once it is over, and by the library's time limit. */
interface RoundOfStatements {
  submit(connection: Connection): null;
  handleRowDescription(message: { readonly fields: readonly Described[] }): void;
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void;
  handleCommandComplete(message: { readonly text: string }): void;
  handleReadyForQuery(): void;
  handleError(error: unknown): void;
  callback: (error: unknown) => void;
}

interface Described {
  readonly name: string;
  readonly dataTypeID: number;
}

interface Library {
  readonly Client: new (options: object) => Client;
  readonly Query: { readonly prototype: object };
}

interface Loaded {
  readonly Client: Library['Client'];
  readonly makeRound: (statements: readonly Asked[], bytes: Buffer) => RoundOfStatements;
}

let loaded: Promise<Loaded> | undefined;

/** Loaded only where a URL is set: it takes longer than everything else at start. */
async function loadLibrary(): Promise<Loaded> {
  try {
    loaded ??= import('pg').then((module) => {
      const { Client, Query } = (module.default ?? module) as unknown as Library;
      return { Client, makeRound: roundsOf(Query) };
    });
    return await loaded;
  } catch (error) {
    throw new NoEngineError(
      `The PostgreSQL client cannot be loaded (${asError(error).message.split('\n')[0]}). Reinstall Colibri, or unset COLIBRI_DATABASE_URL.`,
    );
  }
}

/** The state of an SQL error, or what Node calls an error of a connection. */
export function codeOf(error: unknown): string {
  const code: unknown = Reflect.get(Object(error), 'code');
  return typeof code === 'string' ? code : '';
}

/** Whether the connection is gone, or this server no longer the one that takes writes. */
export function isLost(error: unknown): boolean {
  if (error instanceof LostConnection) return true;
  const code = codeOf(error);
  return /^(08|57P0[1-5]|25006$)/.test(code) || /^E[A-Z]+$/.test(code);
}

/** The connection ended before the answer came. */
export class LostConnection extends Error {}

/** What each session is set to. Texts come and go as UTF-8, bytes as hex, numbers whole. */
function settingsOf({ longReads }: { readonly longReads: boolean }): string {
  const limit = LIMITS.lockWaitMsMax;
  return [
    'search_path = colibri, pg_temp',
    "client_encoding = 'UTF8'",
    "default_transaction_isolation = 'read committed'",
    "bytea_output = 'hex'",
    'extra_float_digits = 1',
    'standard_conforming_strings = on',
    'jit = off',
    'row_security = off',
    // A laptop that falls asleep with the lock must not stop the others.
    `lock_timeout = ${limit}`,
    `statement_timeout = ${longReads ? 0 : limit}`,
    `idle_in_transaction_session_timeout = ${longReads ? 0 : limit}`,
    `tcp_user_timeout = ${limit}`,
    // Nor may a network that is cut in the middle of a statement: the server waits for the rest, and counts no time.
    `tcp_keepalives_idle = ${limit / 2_000}`,
    'tcp_keepalives_interval = 1',
  ]
    .map((setting) => `SET ${setting}`)
    .join('; ');
}

/** How long a host is given to answer at all. */
const CONNECT_MS_MAX = 5_000;

const TYPES: Readonly<Record<number, (text: string) => SqlValue>> = {
  16: (text) => (text === 't' ? 1 : 0),
  17: (text) => Buffer.from(text.slice(2), 'hex'),
  20: Number,
  21: Number,
  23: Number,
  26: Number,
  700: Number,
  701: Number,
  1700: Number,
};

const asText = (text: string) => text;

/** Statements that a server keeps prepared for a connection. */
const PREPARED_MAX = 500;
const PREPARED_CHARS_MAX = 2_000;

/** SQL with `$1` for each `?`, and the name that it is prepared under, '' for one use. */
const translated = new Map<string, Pick<Prepared, 'text' | 'name'>>();

function translate(sql: string) {
  const known = translated.get(sql);
  if (known !== undefined) return known;
  let count = 0;
  const text = sql.replace(/'(?:[^']|'')*'|\?/g, (part) => (part === '?' ? `$${++count}` : part));
  // What is long has many rows, and hardly ever as many again.
  const isKept = translated.size < PREPARED_MAX && sql.length < PREPARED_CHARS_MAX;
  const made = { text, name: isKept ? `c${translated.size}` : '' };
  if (isKept) translated.set(sql, made);
  return made;
}

/** A statement that was sent, and who waits for its answer. */
interface Asked {
  readonly prepared: Prepared;
  /** Whether it was sent to be prepared, and not only to be run. */
  readonly isNew: boolean;
  readonly asLists: boolean;
  readonly rows: unknown[];
  command: string;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/**
 * Statements that leave as one piece and are answered as a whole: the server answers them in one packet, and runs none
 * behind one that failed. The library must take them for a query of its own, or it would let nothing else wait behind them.
 */
function roundsOf(Query: Library['Query']): Loaded['makeRound'] {
  class Round implements RoundOfStatements {
    readonly #statements: readonly Asked[];
    readonly #bytes: Buffer;
    #at = 0;
    callback: (error: unknown) => void = (error) => {
      if (error !== null) this.#fail(error);
    };

    constructor(statements: readonly Asked[], bytes: Buffer) {
      this.#statements = statements;
      this.#bytes = bytes;
    }

    submit({ stream }: Connection): null {
      // Where nothing can be written any more, the library is about to tell everybody.
      if (stream.writable) stream.write(this.#bytes);
      return null;
    }

    handleRowDescription({ fields }: { readonly fields: readonly Described[] }): void {
      const columns = fields.map(
        ({ name, dataTypeID }): Column => ({ name, parse: TYPES[dataTypeID] ?? asText }),
      );
      const asked = this.#statements[this.#at];
      if (asked !== undefined) asked.prepared.columns = columns;
    }

    handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
      const asked = this.#statements[this.#at];
      if (asked === undefined) return;
      const { columns = [] } = asked.prepared;
      asked.rows.push(asked.asLists ? listOf(columns, fields) : objectOf(columns, fields));
    }

    handleCommandComplete({ text }: { readonly text: string }): void {
      const asked = this.#statements[this.#at];
      if (asked === undefined) return;
      asked.command = text;
      // It has none.
      asked.prepared.columns ??= [];
      this.#at += 1;
    }

    handleReadyForQuery(): void {
      this.callback(null);
      for (const asked of this.#statements) asked.resolve(asked);
    }

    handleError(error: unknown): void {
      this.callback(error);
    }

    #fail(error: unknown): void {
      const failed = this.#statements.slice(this.#at);
      for (const asked of this.#statements.slice(0, this.#at)) asked.resolve(asked);
      this.#at = this.#statements.length;
      for (const { prepared, isNew, reject } of failed) {
        if (isNew) prepared.state = 'unsure';
        reject(error);
      }
    }
  }
  // One by its kind, and nothing of what one is made of: that is half the cost of a round.
  Object.setPrototypeOf(Round.prototype, Query.prototype);
  return (statements, bytes) => new Round(statements, bytes);
}

function objectOf(columns: readonly Column[], fields: readonly (string | null)[]): object {
  const row: Record<string, SqlValue> = {};
  for (let i = 0; i < columns.length; i += 1) {
    const [column, text] = [columns[i], fields[i]];
    if (column !== undefined)
      row[column.name] = text === null || text === undefined ? null : column.parse(text);
  }
  return row;
}

function listOf(columns: readonly Column[], fields: readonly (string | null)[]): SqlList {
  return fields.map((text, i) => (text === null ? null : (columns[i]?.parse(text) ?? text)));
}

/** Notices that are kept for whoever asks for them. */
const TOLD_MAX = 20;

/** A statement that ends a transaction: it is answered by itself, whatever is sent behind it. */
const ENDS = /^(?:COMMIT|ROLLBACK$)/;

/** One session on a server. Statements are sent at once and answered in order. */
export class Session {
  readonly #client: Client;
  readonly #makeRound: Loaded['makeRound'];
  #lost: LostConnection | undefined;
  /** Statements that were not sent yet, and those before them that are answered by themselves. */
  #waiting: Asked[] = [];
  #rounds: RoundOfStatements[] = [];
  #isFlushing = false;
  readonly #outbox = new Outbox();
  readonly #prepared = new Map<string, Prepared>();
  /** Details of what the server said beside its answers. */
  #told: string[] = [];

  private constructor(client: Client, { makeRound }: Loaded) {
    this.#client = client;
    this.#makeRound = makeRound;
    client.on('error', () => this.#lose());
    client.on('end', () => this.#lose());
    client.on('notice', ({ detail }) => {
      if (detail !== undefined && this.#told.length < TOLD_MAX) this.#told.push(detail);
    });
  }

  /** Opens a session on the first host that takes writes, or on the first at all where reading is enough. */
  static async open(address: Address, { reads = false, longReads = false } = {}): Promise<Session> {
    const library = await loadLibrary();
    let failure: unknown;
    for (const host of address.hosts) {
      let session: Session | undefined;
      try {
        session = await Session.#connect(library, address, host, longReads);
        if (reads || (await session.takesWrites())) return session;
        failure ??= new Error('the server accepts no writes: it is a standby or read-only');
      } catch (error) {
        failure ??= error;
      }
      await session?.close();
    }
    throw unreachable(address, failure);
  }

  static async #connect(library: Loaded, address: Address, host: Host, longReads: boolean): Promise<Session> {
    const attempt = async (ssl: object | false) => {
      const client = new library.Client({
        ...host,
        database: address.database,
        user: address.user,
        // Without one, the library looks where libpq does: in PGPASSWORD, PGPASSFILE and ~/.pgpass.
        password: address.password,
        ssl,
        pipeline: true,
        connectionTimeoutMillis: CONNECT_MS_MAX,
        // Longer than the server's own limits: only a network that is gone takes this long.
        query_timeout: longReads ? 0 : LIMITS.lockWaitMsMax + CONNECT_MS_MAX,
        keepAlive: true,
        application_name: 'colibri',
      });
      const session = new Session(client, library);
      try {
        await client.connect();
        await withinMs(CONNECT_MS_MAX, session.script(settingsOf({ longReads })));
        return session;
      } catch (error) {
        // A server that keeps its side open would keep this process alive.
        client.connection.stream.destroy();
        throw error;
      }
    };
    const { ssl } = address;
    const isSocket = host.host.startsWith('/');
    if (ssl === 'disable' || isSocket) return await attempt(false);
    const checked = { rejectUnauthorized: true, servername: host.host };
    if (ssl === 'verify-full') return await attempt(checked);
    if (ssl === 'verify-ca') return await attempt({ ...checked, checkServerIdentity: () => undefined });
    const unchecked = { rejectUnauthorized: false };
    if (ssl === 'require') return await attempt(unchecked);
    return await attempt(unchecked).catch((error: unknown) => {
      if (!asError(error).message.includes('does not support SSL')) throw error;
      return attempt(false);
    });
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /** Sends a statement. It leaves with those sent before, at `flush` at the latest. */
  send(sql: string, params: SqlList = [], rowMode?: 'array'): Promise<Answer> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => {
      const prepared = this.#prepare(sql);
      const isNew = prepared.state !== 'sent';
      this.#outbox.add(prepared, params);
      this.#waiting.push({
        ...{ prepared, isNew, asLists: rowMode === 'array', rows: [], command: '', resolve },
        reject: (error) => reject(this.#lost ?? cleaned(error)),
      });
      if (!ENDS.test(sql)) return;
      this.#endRound();
      this.flush();
    });
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const made: Prepared = { ...translate(sql), state: 'new', columns: undefined };
    if (made.name !== '') this.#prepared.set(sql, made);
    return made;
  }

  /** Lets everything leave that was sent, together with what is sent before anything else happens. */
  flush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    process.nextTick(() => this.#sendWaiting());
  }

  #endRound(): void {
    if (this.#waiting.length === 0) return;
    this.#rounds.push(this.#makeRound(this.#waiting, this.#outbox.take()));
    this.#waiting = [];
  }

  #sendWaiting(): void {
    this.#isFlushing = false;
    this.#endRound();
    const rounds = this.#rounds;
    if (rounds.length === 0) return;
    this.#rounds = [];
    const { stream } = this.#client.connection;
    if (rounds.length > 1) stream.cork();
    for (const round of rounds) this.#client.query(round);
    if (rounds.length > 1) stream.uncork();
  }

  async ask<T>(sql: string, ...params: SqlValue[]): Promise<T[]> {
    const answer = this.send(sql, params);
    this.flush();
    return (await answer).rows as T[];
  }

  /** Several statements without parameters, in one go. */
  async script(sql: string): Promise<void> {
    this.#sendWaiting();
    try {
      await this.#client.query({ text: sql });
    } catch (error) {
      throw this.#lost ?? cleaned(error);
    }
  }

  /** Runs a statement and answers the details of what the server said beside it. */
  async told(sql: string): Promise<readonly string[]> {
    this.#told = [];
    await this.script(sql);
    return this.#told;
  }

  async takesWrites(): Promise<boolean> {
    const sql =
      "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS reads";
    return (await this.ask<{ reads: number }>(sql))[0]?.reads === 0;
  }

  async close(): Promise<void> {
    this.#sendWaiting();
    const isLost = this.isLost;
    this.#lost ??= new LostConnection('the connection was closed');
    if (!isLost) await withinMs(END_MS_MAX, this.#client.end()).catch(() => undefined);
    // A server that keeps its side open would keep this process alive.
    this.#client.connection.stream.destroy();
  }

  #lose(): void {
    this.#lost ??= new LostConnection('the connection to the database was lost');
  }
}

/** How long a server may take to say goodbye. */
const END_MS_MAX = 1_000;

/** Rejects where something takes longer. It goes on, and nobody waits for it. */
async function withinMs<T>(ms: number, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const tooLong = sleep(ms, undefined, { signal: done.signal }).then(() => {
    throw Object.assign(new Error('the server does not answer'), { code: 'ETIMEDOUT' });
  });
  try {
    return await Promise.race([work, tooLong]);
  } finally {
    done.abort();
    for (const one of [work, tooLong]) one.catch(() => undefined);
  }
}

/** The library's message may name the host, the user or the password. What the server said of a statement may not. */
function cleaned(error: unknown): unknown {
  const code = codeOf(error);
  if (/^[0-9A-Z]{5}$/.test(code) && !code.startsWith('28')) {
    const { message } = asError(error);
    const said = new Error(TABLES_GONE.has(code) ? `${message}. ${GONE}` : message);
    return Object.assign(said, { code });
  }
  if (error instanceof LostConnection) return error;
  return new LostConnection('the connection to the database was lost');
}

/** No such table, no such schema. */
const TABLES_GONE: ReadonlySet<string> = new Set(['42P01', '3F000']);
const GONE =
  'The database no longer has Colibri’s tables: it was emptied, or dropped and created again. Restore it, or restart the server to see what is there.';

/** Why no server could be used: by its code only, because messages name hosts and users. */
function unreachable({ shown }: Address, failure: unknown): ColibriError {
  const code = codeOf(failure);
  const message = code === '' && failure instanceof Error ? failure.message : '';
  const why = REASONS[code] ?? (ASKED.test(message) ? NO_PASSWORD : OWN.test(message) ? message : undefined);
  const reason = why ?? (code === '' ? 'no server answered' : `error ${code}`);
  const sentence = `${shown} cannot be reached: ${reason}. Check COLIBRI_DATABASE_URL, and that the server is running and accepts this user.`;
  return new ColibriError('ERR_STORAGE_BUSY', sentence, { reason });
}

const OWN = /^the server /;
/** What the library says where a password is due and it has none. */
const ASKED = /client password must be/;
const NO_PASSWORD = 'the server asks for a password, and none was given';

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing is listening there',
  ENOENT: 'there is no such socket',
  ENOTFOUND: 'the server’s name is unknown',
  EAI_AGAIN: 'the server’s name cannot be looked up at the moment',
  ETIMEDOUT: 'the server does not answer',
  EHOSTUNREACH: 'there is no route to the server',
  '28P01': 'the server refused the user or the password',
  '28000': 'the server refused the user',
  '3D000': 'there is no such database on the server',
  '53300': 'the server has too many connections',
  '57P03': 'the server is starting or stopping',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate of the server is not trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate of the server is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate of the server is not trusted',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the server is for another name',
};
