import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { thoughtHash } from '../../src/domains/records.ts';
import { RULES } from '../../src/domains/rules.ts';
import { isFinal, queueOf, type Status, type Workflow } from '../../src/domains/tasks/workflows.ts';
import { canonicalJson } from '../../src/integrity/canonical-json.ts';
import { formatCheckpoint } from '../../src/integrity/checkpoint.ts';
import { isSalt, saltedDigest, sha256Hex } from '../../src/integrity/digest.ts';
import { type NoteSigner, noteSigner, signNote } from '../../src/integrity/signed-note.ts';
import { Frontier, treeDepth, treeRoot } from '../../src/integrity/tree.ts';
import {
  type AuditRow,
  chainHash,
  filesCheckpoint,
  GENESIS,
  type StoredRow,
  UNSAID,
} from '../../src/log/row.ts';
import {
  type Fact,
  formatId,
  parseId,
  rowHash,
  SESSIONS,
  STATE_TABLES,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../../src/log/tables.ts';
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from '../../src/storage/sqlite/schema.ts';
import { namedText, textId } from '../../src/storage/text-ids.ts';
import { encodeSlot } from '../../src/trust/memory.ts';
import { keptName } from '../../src/trust/opening.ts';
import { LastSeen } from '../../src/verify/last-seen.ts';
import { type Database, openDatabase, withoutTriggers } from '../driver/database.ts';
import { anyRowText } from '../driver/row-text.ts';

// A log in the hands of somebody who knows how it is made. It is taken apart into calls, changed, and put together again
// with every digest, link, seal, counter and (with the key) signature computed anew.

export type Cells = Record<string, Fact>;
export type JsonObject = Record<string, unknown>;
type Fields = { -readonly [K in keyof AuditRow]: AuditRow[K] };

/** A row of state as one call left it. */
export interface Write {
  readonly table: StateTable;
  readonly row: Cells;
  /** Hashes, links and seals in it are not computed anew. */
  isFixed?: boolean;
}

export interface ForgedRow {
  readonly fields: Fields;
  payload?: { salt: string; body: string | JsonObject };
  /** What its payload held before it was forged: derived tables are still made from that. */
  readonly said?: JsonObject;
  writes: Write[];
  /** The last word on the row, after its digests and effects are computed. */
  patch?: (fields: JsonObject) => void;
  /** The last word on its text. */
  spell?: (text: string) => string;
}

export interface HeadRow {
  key: string;
  size: number;
  chain_hash: string;
  at: string;
  frontier: string;
  checkpoint: string;
}

export interface KeptNote {
  size: number;
  key: string;
  note: string;
}

/** `owner`: everything is signed anew. `fields`: a head that says what is there over the old signature. `none`: heads stay. */
export type Signing = 'owner' | 'fields' | 'none';

/** What one call left in state, by the position of its exit row. */
export type Versions = ReadonlyMap<number, readonly { readonly table: StateTable; readonly row: Cells }[]>;

export interface CallSpec {
  readonly tool: string;
  readonly actor?: string;
  readonly source?: 'mcp' | 'cli';
  readonly process?: string;
  readonly args: JsonObject;
  /** Free texts among the arguments; they are salted. */
  readonly texts?: Readonly<Record<string, unknown>>;
  readonly outside?: JsonObject;
  readonly result?: JsonObject;
  readonly error?: { readonly code: string; readonly message: string };
  readonly outcome?: AuditRow['outcome'];
  readonly writes?: (call: NewCall) => Write[];
}

export interface NewCall {
  readonly at: string;
  readonly actor: string;
  readonly enter: number;
  readonly position: number;
  readonly args: JsonObject;
}

/** Columns that say by which call a text came. */
const CALLS = ['call', 'title_call', 'description_call', 'blocked_reason_call'];

export class ForgedLog {
  readonly rows: ForgedRow[] = [];
  readonly texts = new Map<string, { salt: string; text: string }>();
  /** Texts that are gone; the hashes of thoughts are still made of them. */
  readonly gone = new Map<string, { salt: string; text: string }>();
  readonly signer: NoteSigner;
  origin: string;
  heads: HeadRow[];
  kept: KeptNote[];
  sign: Signing = 'owner';
  /** Whether the memory of what was signed last is made to agree; only who signs can. */
  remembers = true;
  readonly #edits: ((db: Database) => void)[] = [];
  readonly #headEdits: ((heads: HeadRow[], kept: KeptNote[]) => void)[] = [];
  readonly #configDir: string;

  constructor(dbPath: string, configDir: string, versions: Versions) {
    this.#configDir = configDir;
    const db = openDatabase(dbPath, { readOnly: true });
    try {
      this.origin = String(db.prepare('SELECT origin FROM log').pluck().get());
      this.heads = db.prepare('SELECT * FROM log_heads').all() as HeadRow[];
      this.kept = db.prepare('SELECT * FROM checkpoints').all() as KeptNote[];
      const texts = db.prepare('SELECT * FROM texts').all() as Record<'digest' | 'salt' | 'text', string>[];
      for (const { digest, salt, text } of texts) this.texts.set(digest, { salt, text });
      const payloads = db.prepare('SELECT * FROM action_payloads').all() as {
        position: number;
        salt: string;
        body: string;
      }[];
      const bodies = new Map(payloads.map((payload) => [payload.position, payload]));
      const actions = db.prepare('SELECT text FROM actions ORDER BY position').all() as { text: string }[];
      for (const { text } of actions) {
        const fields = { ...UNSAID, ...JSON.parse(text) } as Fields;
        const payload = bodies.get(fields.position);
        const body = payload === undefined ? undefined : (JSON.parse(payload.body) as JsonObject);
        this.rows.push({
          fields,
          ...(payload !== undefined &&
            body !== undefined && { payload: { salt: payload.salt, body }, said: body }),
          writes: (versions.get(fields.position) ?? []).map(({ table, row }) => ({ table, row: { ...row } })),
        });
      }
    } finally {
      db.close();
    }
    const pem = readFileSync(join(keyFolder(configDir, this.origin), 'key.pem'), 'utf8');
    this.signer = noteSigner(this.origin, pem);
  }

  // Finding one's way.

  get last(): ForgedRow {
    return must(this.rows.at(-1), 'a last row');
  }

  at(position: number): ForgedRow {
    return must(
      this.rows.find(({ fields }) => fields.position === position),
      `row ${position}`,
    );
  }

  enterOf(exit: ForgedRow): ForgedRow {
    return this.at(exit.fields.sequence_no);
  }

  exitOf(enter: ForgedRow): ForgedRow {
    return must(
      this.rows.find(({ fields }) => fields.stage === 'exit' && fields.sequence_no === enter.fields.position),
      `the exit of row ${enter.fields.position}`,
    );
  }

  /** The exit rows of a tool with this outcome (or code), whose arguments hold all of these. */
  exits(tool: string, outcome = 'ok', holding: JsonObject = {}): ForgedRow[] {
    return this.rows.filter(({ fields }) => {
      if (fields.stage !== 'exit' || fields.tool !== tool) return false;
      if (fields.outcome !== outcome && fields.error_code !== outcome) return false;
      const args = this.argsOf(this.at(fields.sequence_no));
      return Object.entries(holding).every(
        ([name, value]) => canonicalJson(args[name] ?? null) === canonicalJson(value),
      );
    });
  }

  exit(tool: string, outcome = 'ok', holding: JsonObject = {}): ForgedRow {
    return must(
      this.exits(tool, outcome, holding)[0],
      `an exit of ${tool} ${outcome} ${canonicalJson(holding)}`,
    );
  }

  argsOf(row: ForgedRow): JsonObject {
    const enter = row.fields.stage === 'enter' ? row : this.enterOf(row);
    return bodyOf(enter) ?? {};
  }

  resultOf(exit: ForgedRow): JsonObject {
    return object(must(bodyOf(exit), 'a body').result);
  }

  outsideOf(exit: ForgedRow): JsonObject {
    return object(must(bodyOf(exit), 'a body').outside);
  }

  /** The only write of this call to this table. */
  written(exit: ForgedRow, table: StateTable): Write {
    return must(
      exit.writes.find((write) => write.table === table),
      `a write of row ${exit.fields.position} to ${table.name}`,
    );
  }

  /** Every version of a row of state, oldest first. */
  versions(table: StateTable, id: number): Cells[] {
    return this.rows.flatMap(({ writes }) =>
      writes.filter((write) => write.table === table && write.row.id === id).map(({ row }) => row),
    );
  }

  state(table: StateTable, id: number): Cells {
    return must(this.versions(table, id).at(-1), `${table.name} ${id}`);
  }

  nextId(table: StateTable): number {
    return (
      1 +
      Math.max(
        0,
        ...this.rows.flatMap(({ writes }) =>
          writes.flatMap((w) => (w.table === table ? Number(w.row.id) : [])),
        ),
      )
    );
  }

  // Changing it.

  /** Changes a row of state from one call on, as an honest server would have carried the change along. */
  change(exit: ForgedRow, table: StateTable, id: number, cells: Cells): void {
    for (const row of this.versions(table, id))
      if (Number(row.position) >= exit.fields.position) Object.assign(row, cells);
  }

  addText(value: unknown): string {
    const text = typeof value === 'string' ? value : canonicalJson(value);
    const salt = randomBytes(16).toString('hex');
    const digest = saltedDigest(salt, text);
    this.texts.set(digest, { salt, text });
    return digest;
  }

  /** Where each text belongs: with the first call that names it, or behind all calls. */
  textIds(): ReadonlyMap<string, number> {
    const ids = new Map<string, number>();
    for (const row of this.rows) {
      const { stage, tool, position } = row.fields;
      if (stage !== 'enter') continue;
      const args = bodyOf(row) ?? row.said ?? {};
      const fields = (RULES[1]?.[tool]?.texts ?? []).filter((field) => args[field] !== undefined);
      for (const [number, field] of fields.entries())
        if (!ids.has(String(args[field]))) ids.set(String(args[field]), textId(position, number));
    }
    let next = this.last.fields.position;
    for (const digest of this.texts.keys()) if (!ids.has(digest)) ids.set(digest, textId(++next, 0));
    return ids;
  }

  /** Puts another text or salt under a digest, and the new digest wherever the old one stood. */
  replaceText(
    digest: string,
    text: string,
    where: { args: boolean; rows: boolean } = { args: true, rows: true },
  ): string {
    const fresh = this.addText(text);
    this.texts.delete(digest);
    for (const row of this.rows) {
      if (where.args && typeof row.payload?.body === 'object') swap(row.payload.body, digest, fresh);
      if (where.rows) for (const write of row.writes) swap(write.row, digest, fresh);
    }
    return fresh;
  }

  /** Takes texts away, as an erasure does. */
  takeAway(...digests: readonly string[]): void {
    for (const digest of digests) {
      this.gone.set(digest, must(this.texts.get(digest), `the text ${digest}`));
      this.texts.delete(digest);
    }
  }

  /** Both rows of a new call, at the end. */
  append(spec: CallSpec): ForgedRow {
    const { fields: before } = this.last;
    const enter = this.begin(spec);
    const { position, at, actor, source, tool, correlation_id, process } = enter.fields;
    const outcome = spec.outcome ?? (spec.error === undefined ? 'ok' : 'error');
    const args = this.argsOf(enter);
    const exit: ForgedRow = {
      fields: {
        ...{
          position: position + 1,
          sequence_no: position,
          stage: 'exit',
          tool,
          actor,
          source,
          correlation_id,
        },
        ...{
          at,
          rules: before.rules,
          schema_valid: true,
          args_hash: null,
          outcome,
          error_code: spec.error?.code ?? null,
        },
        ...{
          duration_ms: outcome === 'crashed' ? null : 1,
          result_hash: null,
          effects: [],
          process,
          repaired: [],
        },
      },
      writes: spec.writes?.({ at, actor, enter: position, position: position + 1, args }) ?? [],
    };
    const outside = spec.outside ?? {};
    if (spec.error !== undefined)
      exit.payload = { salt: newSalt(), body: { outside, error: { ...spec.error } } };
    else if (spec.result !== undefined)
      exit.payload = { salt: newSalt(), body: { outside, result: spec.result } };
    else if (!tool.startsWith('task_create') && outcome === 'ok')
      exit.fields.result_hash = sha256Hex(newSalt());
    this.rows.push(exit);
    return exit;
  }

  /** The enter row of a new call. */
  begin({ tool, actor, source, process, args, texts = {} }: CallSpec): ForgedRow {
    const { fields: before } = this.last;
    const kept: JsonObject = { ...args };
    for (const [name, value] of Object.entries(texts)) kept[name] = this.addText(value);
    const position = before.position + 1;
    const enter: ForgedRow = {
      fields: {
        ...{ position, sequence_no: position, stage: 'enter', tool, actor: actor ?? before.actor },
        ...{
          source: source ?? before.source,
          correlation_id: randomUUID(),
          at: before.at,
          rules: before.rules,
        },
        ...{ schema_valid: true, args_hash: null, outcome: 'running', error_code: null, duration_ms: null },
        ...{ result_hash: null, effects: [], process: process ?? before.process, repaired: [] },
      },
      payload: { salt: newSalt(), body: kept },
      writes: [],
    };
    this.rows.push(enter);
    return enter;
  }

  /** Takes rows out and closes the gap, as if they had never been. */
  remove(...rows: readonly ForgedRow[]): void {
    const moved = new Map<number, number>();
    const kept = this.rows.filter((row) => !rows.includes(row));
    kept.forEach(({ fields }, i) => void moved.set(fields.position, i + 1));
    this.rows.splice(0, this.rows.length, ...kept);
    this.#renumber(moved);
  }

  /** Puts rows in another order and numbers them by it. */
  reorder(order: (rows: readonly ForgedRow[]) => ForgedRow[]): void {
    const rows = order(this.rows);
    const moved = new Map(rows.map(({ fields }, i) => [fields.position, i + 1]));
    this.rows.splice(0, this.rows.length, ...rows);
    this.#renumber(moved);
  }

  #renumber(moved: ReadonlyMap<number, number>): void {
    const to = (position: number) => moved.get(position) ?? position;
    for (const { fields, writes } of this.rows) {
      fields.position = to(fields.position);
      fields.sequence_no = to(fields.sequence_no);
      for (const { row } of writes) {
        row.position = to(Number(row.position));
        for (const name of CALLS) if (typeof row[name] === 'number') row[name] = to(row[name]);
        if (row.kind === 'change') row.ref = to(Number(row.ref));
      }
    }
    this.kept = this.kept.flatMap((note) => (moved.has(note.size) ? [{ ...note, size: to(note.size) }] : []));
  }

  /** Changes the finished database, with every trigger out of the way. */
  edit(change: (db: Database) => void): void {
    this.#edits.push(change);
  }

  /** Changes heads and kept checkpoints after they were computed. */
  editHeads(change: (heads: HeadRow[], kept: KeptNote[]) => void): void {
    this.#headEdits.push(change);
  }

  /** A checkpoint over the first rows, by the owner or whoever else has a key. */
  note(size: number, root: string, signer: NoteSigner = this.signer): string {
    return signNote(formatCheckpoint({ origin: this.origin, size, root }), signer);
  }

  /** Everything computed anew and written: the database and a folder with the key. */
  write(dbPath: string, configDir: string): void {
    const made = this.#compute();
    mkdirSync(dirname(dbPath), { recursive: true });
    for (const suffix of ['', '-wal', '-shm']) rmSync(dbPath + suffix, { force: true });
    const db = openDatabase(dbPath);
    try {
      db.pragma('synchronous = OFF');
      db.pragma('foreign_keys = OFF');
      db.exec(SCHEMA);
      db.pragma(`application_id = ${APPLICATION_ID}`);
      db.pragma(`user_version = ${SCHEMA_VERSION}`);
      db.transaction(() => this.#fill(db, made))();
      db.transaction(() =>
        withoutTriggers(db, () => {
          for (const change of this.#edits) change(db);
        }),
      )();
      db.pragma('journal_mode = WAL');
    } finally {
      db.close();
    }
    this.#writeMemory(configDir, made);
  }

  /** The rows as they will be written. */
  stored(): readonly StoredRow[] {
    return this.#compute().stored;
  }

  contentHashes(): string[] {
    return this.stored().map(({ content_hash }) => content_hash);
  }

  /** What will lie beside a row. */
  payloadAt(position: number): { position: number; salt: string; body: string } | undefined {
    const { payload } = this.at(position);
    if (payload === undefined) return undefined;
    const { salt, body } = payload;
    return { position, salt, body: typeof body === 'string' ? body : canonicalJson(body) };
  }

  #compute(): Made {
    const stored: StoredRow[] = [];
    const run: Run = {
      contents: new Map(),
      lastWrites: new Map(),
      chains: new Map(),
      records: [],
      thoughts: new Map(),
    };
    let previous = GENESIS;
    for (const row of this.rows) {
      const text = this.#finish(row, run);
      const content_hash = sha256Hex(text);
      const chain_hash = chainHash(content_hash, previous);
      run.contents.set(row.fields.position, content_hash);
      stored.push({ position: row.fields.position, text, content_hash, chain_hash });
      previous = chain_hash;
    }
    const heads = this.#heads(stored);
    return { stored, ...heads };
  }

  /** The text of a row, after everything that follows from its call is computed. */
  #finish(row: ForgedRow, run: Run): string {
    const { fields } = row;
    for (const write of row.writes) {
      if (write.isFixed !== true) this.#settle(row, write, run);
      remember(write, run);
    }
    const effects = row.writes.map((write) => effectOf(write, fields.position, run));
    if (row.writes.length > 0 || fields.effects.length > 0) fields.effects = effects;
    if (row.payload !== undefined) {
      const { salt, body } = row.payload;
      const digest = isSalt(salt)
        ? saltedDigest(salt, typeof body === 'string' ? body : canonicalJson(body))
        : null;
      if (fields.stage === 'enter') fields.args_hash = digest;
      else fields.result_hash = digest;
    }
    const last: JsonObject = { ...fields };
    row.patch?.(last);
    const text = anyRowText(last);
    return row.spell?.(text) ?? text;
  }

  /** The hashes that a row of state holds itself. */
  #settle(exit: ForgedRow, { table, row }: Write, run: Run): void {
    const result = exit.payload === undefined ? undefined : bodyOf(exit)?.result;
    const shown = isObject(result) ? result : {};
    if (table === THOUGHTS) {
      const task = Number(row.task_id);
      const digest = String(row.content);
      const content = (this.texts.get(digest) ?? this.gone.get(digest))?.text ?? '';
      row.previous_hash = run.chains.get(task) ?? null;
      row.hash = thoughtHash({ ...row, content } as unknown as Parameters<typeof thoughtHash>[0]);
      if ('hash' in shown) Object.assign(shown, { hash: row.hash, previous_hash: row.previous_hash });
    }
    if (table === SESSIONS && row.status === 'finalized') {
      const records = run.records.filter(
        (record) =>
          record.session_id === row.id &&
          (row.sealed_task_id === null || record.task_id === row.sealed_task_id),
      );
      const leaves = records.map(({ kind, ref }) =>
        kind === 'thought' ? run.thoughts.get(Number(ref)) : run.contents.get(Number(ref)),
      );
      const known = leaves.filter((leaf) => leaf !== undefined);
      const seal = {
        merkle_root: treeRoot(known),
        leaf_count: known.length,
        tree_depth: treeDepth(Math.max(1, known.length)),
      };
      Object.assign(row, seal);
      if ('merkle_root' in shown) Object.assign(shown, seal);
    }
  }

  #heads(stored: readonly { position: number; content_hash: string; chain_hash: string }[]) {
    let heads = this.heads.map((head) => ({ ...head }));
    let kept = this.kept.map((note) => ({ ...note }));
    if (this.sign !== 'none') {
      const tree = new Frontier();
      const roots = new Map<number, string>();
      for (const { content_hash } of stored) {
        tree.add(content_hash);
        roots.set(tree.size, tree.root());
      }
      const last = this.last.fields;
      const head: HeadRow = {
        key: this.signer.verifierKey,
        size: tree.size,
        chain_hash: stored.at(-1)?.chain_hash ?? GENESIS,
        at: last.at,
        frontier: tree.state.hashes.join(''),
        checkpoint: this.heads[0]?.checkpoint ?? '',
      };
      if (this.sign === 'owner') {
        head.checkpoint = this.note(tree.size, tree.root());
        const key = this.signer.verifierKey;
        const filing = this.rows.filter(({ fields }) => filesCheckpoint(fields));
        const sizes = new Set([
          ...kept.map(({ size }) => size),
          ...filing.map(({ fields }) => fields.position),
        ]);
        kept = [...sizes].flatMap((size) => {
          const root = roots.get(size);
          return root === undefined ? [] : [{ size, key, note: this.note(size, root) }];
        });
        kept.sort((a, b) => a.size - b.size);
      }
      heads = [head];
    }
    const filed = kept.map(({ size, key }) => keptName(size, key));
    for (const change of this.#headEdits) change(heads, kept);
    return { heads, kept, filed };
  }

  #fill(db: Database, { stored, heads, kept }: Made): void {
    const insert = (table: string, row: Readonly<Record<string, unknown>>) => {
      const names = Object.keys(row);
      db.prepare(
        `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
      ).run(...Object.values(row));
    };
    insert('log', { id: 1, origin: this.origin });
    for (const { position, text, content_hash, chain_hash } of stored)
      insert('actions', {
        position,
        text,
        content: Buffer.from(content_hash, 'hex'),
        chain: Buffer.from(chain_hash, 'hex'),
      });
    for (const { fields, payload } of this.rows)
      if (payload !== undefined)
        insert('action_payloads', {
          position: fields.position,
          salt: payload.salt,
          body: typeof payload.body === 'string' ? payload.body : canonicalJson(payload.body),
        });
    const ids = this.textIds();
    for (const [digest, { salt, text }] of this.texts)
      insert('texts', { id: ids.get(digest), digest, salt, text });
    for (const head of heads) insert('log_heads', { ...head });
    for (const note of kept) insert('checkpoints', { ...note });
    this.#fillState(insert);
    const words = (column: string) => namedText(`tasks.${column}_call`, `tasks.${column}`);
    db.exec(
      `INSERT INTO task_words (rowid, title, description) SELECT id, ${words('title')}, ${words('description')} FROM tasks`,
    );
    this.#fillDerived(
      insert,
      stored.map(({ content_hash }) => content_hash),
    );
  }

  #fillState(insert: Insert): void {
    const latest = new Map<string, Write>();
    for (const write of this.rows.flatMap(({ writes }) => writes))
      latest.set(`${write.table.name} ${write.row.id}`, write);
    const tasks = [...latest.values()].filter(({ table }) => table === TASKS).map(({ row }) => row);
    const finals = new Map(
      tasks.map((row) => [Number(row.id), isFinal(row.workflow as Workflow, row.status as Status)]),
    );
    for (const table of STATE_TABLES) {
      const rows = [...latest.values()].filter((write) => write.table === table).map(({ row }) => row);
      for (const row of rows.sort((a, b) => Number(a.id) - Number(b.id))) {
        const facts = Object.fromEntries(table.facts.map((name) => [name, row[name] ?? null]));
        insert(table.name, table === TASKS ? { ...facts, ...derivedOf(row, tasks, finals) } : facts);
      }
    }
  }

  #fillDerived(insert: Insert, contents: readonly string[]): void {
    // An exit row in front of its enter row ends nothing.
    const ended = new Set(
      this.rows.flatMap(({ fields: { stage, sequence_no, position } }) =>
        stage === 'exit' && sequence_no < position ? sequence_no : [],
      ),
    );
    const lastSeen = new LastSeen();
    const calls = new Set<string>();
    const erased = new Set<unknown>();
    for (const row of this.rows) {
      const { fields } = row;
      lastSeen.note(fields.process, fields.actor, fields.at);
      const isOpen = fields.stage === 'enter' && !ended.has(fields.position);
      if (isOpen) insert('open_calls', { position: fields.position, process: fields.process });
      const task = this.#taskOf(row);
      for (const digest of erasedIn(row)) {
        if (!erased.has(digest))
          insert('erased_texts', { digest, task_id: task ?? null, position: fields.position });
        erased.add(digest);
      }
      if (task === undefined || calls.has(`${task} ${fields.position}`)) continue;
      calls.add(`${task} ${fields.position}`);
      insert('task_calls', { task_id: task, position: fields.position });
    }
    for (const [process, actor, last_seen] of lastSeen) insert('processes', { process, actor, last_seen });
    for (let block = 0; (block + 1) * 256 <= contents.length; block += 1)
      insert('log_blocks', { block, hash: treeRoot(contents.slice(block * 256, (block + 1) * 256)) });
  }

  /** The task under which an exit row is filed. */
  #taskOf({ fields, payload }: ForgedRow): number | undefined {
    if (fields.stage !== 'exit' || !isWriting(fields.tool) || !fields.schema_valid) return undefined;
    const enter = this.rows.find((row) => row.fields.position === fields.sequence_no);
    const made =
      fields.tool === 'task_create' && typeof payload?.body === 'object' ? payload.body.result : undefined;
    const naming = isObject(made) ? made : enter === undefined ? undefined : (bodyOf(enter) ?? enter.said);
    const id = naming?.task_id;
    return typeof id === 'string' ? parseId(TASKS, id) : undefined;
  }

  #writeMemory(configDir: string, { heads, filed }: Made): void {
    rmSync(configDir, { recursive: true, force: true });
    cpSync(this.#configDir, configDir, { recursive: true });
    if (this.sign !== 'owner' || !this.remembers) return;
    const signed = join(keyFolder(configDir, this.origin), 'signed');
    writeFileSync(join(signed, '..', 'kept'), filed.map((name) => `\n${name}`).join(''), { mode: 0o600 });
    for (const name of readdirSync(signed)) rmSync(join(signed, name));
    const head = heads.find(({ key }) => key === this.signer.verifierKey);
    if (head !== undefined)
      writeFileSync(join(signed, 'initial'), encodeSlot(head.chain_hash, head.checkpoint), { mode: 0o600 });
  }
}

/** The texts that an owner_erase says it erased, each once. */
function erasedIn(row: ForgedRow): Set<unknown> {
  const { tool, stage, outcome } = row.fields;
  const result = tool === 'owner_erase' && stage === 'exit' && outcome === 'ok' ? bodyOf(row)?.result : {};
  return new Set(isObject(result) && Array.isArray(result.digests) ? result.digests : []);
}

/** Everything that is written and not a row of state. */
interface Made {
  readonly stored: readonly StoredRow[];
  readonly heads: readonly HeadRow[];
  readonly kept: readonly KeptNote[];
  /** The names of the kept checkpoints before any of them was touched. */
  readonly filed: readonly string[];
}

type Insert = (table: string, row: Readonly<Record<string, unknown>>) => void;

interface Run {
  readonly contents: Map<number, string>;
  readonly lastWrites: Map<string, number>;
  readonly chains: Map<number, string>;
  readonly thoughts: Map<number, string>;
  readonly records: Cells[];
}

function remember({ table, row }: Write, run: Run): void {
  if (table === THOUGHTS) {
    run.chains.set(Number(row.task_id), String(row.hash));
    run.thoughts.set(Number(row.id), String(row.hash));
  }
  if (table.name === 'session_records') run.records.push(row);
}

function effectOf({ table, row }: Write, position: number, run: Run) {
  const id = formatId(table, Number(row.id));
  const previous = run.lastWrites.get(`${table.name} ${id}`) ?? 0;
  run.lastWrites.set(`${table.name} ${id}`, position);
  const isSeal = table === SESSIONS && row.merkle_root !== null;
  return {
    ...{ table: table.name, id, hash: rowHash(table, row), previous },
    ...(isSeal && { seal: { leaf_count: Number(row.leaf_count), merkle_root: String(row.merkle_root) } }),
  };
}

function derivedOf(row: Cells, tasks: readonly Cells[], finals: ReadonlyMap<number, boolean>): Cells {
  const awaited = new Set(JSON.parse(String(row.depends_on)) as number[]);
  for (const other of tasks) if (other.parent_id === row.id) awaited.add(Number(other.id));
  return {
    unmet: [...awaited].filter((id) => finals.get(id) === false).length,
    is_final: finals.get(Number(row.id)) ? 1 : 0,
    queue: queueOf(row.status as Status),
  };
}

const WRITING = [
  'task_create',
  'task_update',
  'thought_record',
  'audit_session_start',
  'merkle_finalize',
  'key_join',
];

export function isWriting(tool: string): boolean {
  return WRITING.includes(tool) || tool.startsWith('owner_');
}

function keyFolder(configDir: string, origin: string): string {
  return join(configDir, 'logs', basename(origin));
}

export function newSalt(): string {
  return randomBytes(16).toString('hex');
}

export function bodyOf(row: ForgedRow): JsonObject | undefined {
  return typeof row.payload?.body === 'object' ? row.payload.body : undefined;
}

export function must<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the log has not ${what}`);
  return value;
}

export function object(value: unknown): JsonObject {
  if (!isObject(value)) throw new Error('not an object');
  return value;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function swap(holder: Record<string, unknown>, from: string, to: string): void {
  for (const [name, value] of Object.entries(holder)) {
    if (value === from) holder[name] = to;
    else if (isObject(value)) swap(value, from, to);
  }
}
