import type { SessionRecordRow, SessionRow, TaskRow, ThoughtRow } from '../domains/facts.ts';
import { thoughtHash } from '../domains/records.ts';
import type { HashedThought, Lookup, NewestThought, SeenHolder, Written } from '../domains/rule.ts';
import { isFinal, queueOf } from '../domains/tasks/workflows.ts';
import {
  formatId,
  parseId,
  rowHash,
  SESSION_RECORDS,
  SESSIONS,
  type StateTable,
  type StateTableName,
  TASKS,
  THOUGHTS,
} from '../log/tables.ts';
import { listIn } from '../untrusted.ts';
import type { LastSeen } from './last-seen.ts';
import { ownText } from './own-text.ts';
import type { LostRows } from './rules/links.ts';
import { type JsonObject, objectIn, textsIn } from './rules/payloads.ts';
import type { ReadEffect, ReadRow } from './rules/row-form.ts';
import type { Source } from './source.ts';

/** A rule asked for something that cannot be known here. The call is then judged by its form only. */
export class UnknownFact extends Error {}

/** A rule asked for something that the call must have been told from outside, and its record does not say. */
export class Untold extends Error {}

/** Rows of state by their ids, `T-0001`. */
export type RowsById = Pick<ReadonlyMap<string, JsonObject>, 'get'>;

/** A call that has ended. What it says of itself is used only where the facts are not known. */
export interface EndedCall {
  readonly exit: ReadRow;
  readonly contentHash: string;
  /** Whether the rules refused it. */
  readonly refused: boolean;
  /** Absent where no rule can be run on them. */
  readonly args?: JsonObject | undefined;
  /** The payload of the exit row, and the result in it. */
  readonly body?: JsonObject | undefined;
  readonly result?: JsonObject | undefined;
  /** Rows of state that this call wrote and that are still as it left them, by their ids. */
  readonly rows: RowsById;
  /** The text whose digest is the argument `content`. */
  readonly content?: string | undefined;
}

/** A row that can change. */
export interface Entry<R = TaskRow | SessionRow> {
  /** Undefined while nobody knows what it is. */
  row: R | undefined;
  /** The position that wrote it last, 0 where none was seen. */
  last: number;
  /** Of a row that the rules do not explain: its hash, as the log has it. */
  hash: string | undefined;
}

interface TaskEntry extends Entry<TaskRow> {
  deps: readonly number[];
  /** A list of its own once there is one. */
  children: number[];
  newest: KeptThought | undefined;
  /** Whether `newest` and `unsealed` are what they must be. */
  knowsThoughts: boolean;
  /** Not a number where a thought is not known. */
  unsealed: number;
}

/** Shared by everything that holds one thought, so that it is sealed once. */
interface KeptThought extends NewestThought {
  readonly task: number;
  sealed: boolean;
}

/** The records of an open session. */
interface OpenRecords {
  readonly leaves: {
    readonly task: number;
    readonly hash: string;
    readonly thought: KeptThought | undefined;
  }[];
  isComplete: boolean;
}

const NONE: number[] = [];

/**
 * State as the calls before the present one left it, in memory: what the rules need and nothing else. Texts are digests;
 * of thoughts the newest of each task is kept, of records those of open sessions. In a source that is not whole, or after
 * rows were lost, what is not known is taken from what the call itself says, or is refused with UnknownFact.
 */
export class Memory implements Lookup {
  readonly #tasks = new Map<number, TaskEntry>();
  readonly #sessions = new Map<number, Entry<SessionRow>>();
  readonly #openByTask = new Map<number, number>();
  readonly #records = new Map<number, OpenRecords>();
  /** The largest id of each table that was ever written. */
  readonly created = new Map<StateTableName, number>();
  readonly #sequences = new Map<string, number>();
  readonly #source: Pick<Source, 'whole' | 'complete'>;
  readonly #lost: LostRows;
  readonly #lastSeen: Pick<LastSeen, 'of'>;
  #knowsSessions: boolean;
  /** Whether every task that was made is known with its project and its parent. */
  #knowsTasks = true;
  /** The one that the present call records. */
  #thought: KeptThought | undefined;
  #call: EndedCall | undefined;
  /** Fields of the result that rest on something nobody knows. */
  readonly assumed = new Set<string>();

  constructor(source: Pick<Source, 'whole' | 'complete'>, lost: LostRows, lastSeen: Pick<LastSeen, 'of'>) {
    this.#source = source;
    this.#lost = lost;
    this.#lastSeen = lastSeen;
    this.#knowsSessions = source.whole;
  }

  /** Before a call is run again. */
  begin(call: EndedCall): void {
    this.#call = call;
    if (this.assumed.size > 0) this.assumed.clear();
    this.#thought = undefined;
    for (const { of, number, previous } of call.exit.effects) {
      const entry = previous === 0 ? undefined : this.entriesOf(of)?.get(number);
      // Somebody wrote it since, and that call is not here.
      if (entry?.row !== undefined && entry.row.position !== previous) entry.row = undefined;
    }
  }

  task(id: number): TaskRow | undefined {
    const entry = this.#tasks.get(id);
    if (entry?.row !== undefined) return this.#current(entry.row);
    if (entry === undefined && this.isStrict) return undefined;
    return this.#taskAsClaimed(id);
  }

  existing(ids: readonly number[]): readonly number[] {
    if (this.isStrict || ids.every((id) => this.#tasks.has(id)))
      return ids.filter((id) => this.#tasks.has(id));
    this.#refuseUnknown();
    return ids;
  }

  awaitedBy(ids: readonly number[]): ReadonlyMap<number, readonly number[]> {
    return new Map(ids.map((id) => [id, this.#awaited(id)]));
  }

  unmet({ id, depends_on }: TaskRow): number {
    const count = this.#countUnmet(id, numbersIn(depends_on));
    if (count === undefined) this.assumed.add('warnings');
    return count ?? 0;
  }

  /** When it was last seen, the rows say; whether it was there, only the call itself. */
  holder(actor: string, process: string | null): SeenHolder {
    if (process === null) return { present: true };
    const last_seen = this.#lastSeen.of(process, actor);
    // Rows that are not here may be later ones of it.
    if (!this.isStrict) this.assumed.add('taken_over_from');
    if (process === this.#call?.exit.process) return { present: true, last_seen };
    const { present } = objectIn(objectIn(this.#call?.body?.outside)?.holder) ?? {};
    if (typeof present !== 'boolean') throw new Untold('whether the holder was there');
    return { present, last_seen };
  }

  session(id: number): SessionRow | undefined {
    const row = this.#sessions.get(id)?.row;
    if (row !== undefined) return this.#current(row);
    if (id === 0 || (this.isStrict && this.#knowsSessions && !this.#sessions.has(id))) return undefined;
    this.#refuseUnknown();
    if (this.#call?.exit.tool !== 'thought_record') throw new UnknownFact('session');
    return stubSession(id, 0);
  }

  openSession(task: number): SessionRow | undefined {
    const id = this.#openByTask.get(task);
    const row = id === undefined ? undefined : this.#sessions.get(id)?.row;
    if (id !== undefined && (row === undefined || row.position < this.#lost.last))
      throw new UnknownFact('open session');
    const knowsSessions = this.#knowsSessions || !this.#source.whole;
    if (row === undefined && !(knowsSessions && this.#seesAllOf(TASKS, task))) this.#refuseUnknown();
    return row;
  }

  coveringSessions(task: number): readonly SessionRow[] {
    if (task === 0) return [];
    if (this.isStrict && this.#knowsSessions) {
      const covering = this.#openByTask.size === 0 ? [] : this.#covering(task);
      if (covering !== undefined) return covering;
    }
    return this.#coveringAsClaimed(task);
  }

  newestThought(task: number): NewestThought | undefined {
    const known = this.#tasks.get(task)?.newest;
    const mayBeSealed =
      known?.sealed === false &&
      !this.#knowsSessions &&
      this.#source.whole &&
      this.#call?.exit.tool === 'task_update';
    if (this.#knowsThoughtsOf(task) && !mayBeSealed) return known;
    this.#refuseUnknown();
    if (this.#call?.exit.tool === 'thought_record') return this.#newestAsClaimed(known);
    if (known?.sealed === true) return known;
    throw new UnknownFact('newest thought');
  }

  unsealedThoughts(task: number): number {
    if (task === 0) return 0;
    const count = this.#tasks.get(task)?.unsealed ?? 0;
    const isKnown =
      this.#knowsThoughtsOf(task) && !Number.isNaN(count) && (!this.#source.whole || this.#knowsSessions);
    if (!isKnown) this.assumed.add('warnings');
    return isKnown ? count : 0;
  }

  leaves(session: number, onlyTask: number | null): readonly string[] {
    const records = this.#records.get(session);
    if (records?.isComplete !== true || !this.#knowsRecordsOf(session)) throw new UnknownFact('records');
    const { leaves } = records;
    return (onlyTask === null ? leaves : leaves.filter(({ task }) => task === onlyTask)).map(
      ({ hash }) => hash,
    );
  }

  /** Of a text that was erased or altered nothing but the hash is left; whether it fits the chain is still seen. */
  thoughtHash(thought: HashedThought): string {
    const content = this.#call?.content;
    if (content !== undefined && thought.content === this.#call?.args?.content)
      return thoughtHash({ ...thought, content });
    const claimed = this.#call?.result?.hash;
    if (typeof claimed === 'string') return claimed;
    throw new UnknownFact('text of a thought');
  }

  /** Which texts were erased only the call can say. That they were this record's is for the texts to judge. */
  textsOf(): readonly string[] {
    return textsIn(this.#call?.result?.digests);
  }

  nextId(table: StateTableName): number {
    const next = (this.created.get(table) ?? 0) + 1;
    if (this.isStrict) return next;
    const claimed = this.#call?.exit.effects.find(({ of, previous }) => of.name === table && previous === 0);
    return claimed?.number ?? next;
  }

  nextSequence(project: string): number {
    const last = this.#sequences.get(project);
    const isKnown = this.isStrict && this.#knowsTasks;
    const claimed = this.#call?.result?.sequence;
    return !isKnown && typeof claimed === 'number' && claimed > (last ?? 0) ? claimed : (last ?? 0) + 1;
  }

  /** Takes in what a call wrote. `contentHash` is that of its exit row, by which changes of tasks are sealed. */
  apply(rows: readonly Written[], contentHash: string): void {
    for (const written of rows) {
      this.#count(written.table, written.row.id);
      if (written.table === 'tasks') this.#setTask(written.row);
      else if (written.table === 'thoughts') this.#addThought(written.row);
      else if (written.table === 'sessions') this.#setSession(written.row);
      else this.#addRecord(written.row, contentHash);
    }
  }

  /** Takes in what a call says it wrote where no rule could say it: rows that are still there, and that the others are unknown. */
  learn({ exit, contentHash, rows, args = {}, result }: EndedCall, isWrong: boolean): void {
    const { position, effects } = exit;
    for (const { of, id, number, hash } of effects) {
      this.#count(of.name, number);
      const row = rows.get(id);
      // A row that is wrong and can change would make every later call on it look wrong.
      const isKept = row !== undefined && !(isWrong && !of.appendOnly);
      const written = isKept ? asWritten(of.name, number, row) : undefined;
      if (written !== undefined) this.apply([written], contentHash);
      const task =
        row?.task_id ?? (typeof args.task_id === 'string' ? parseId(TASKS, args.task_id) : undefined);
      if (written === undefined || isWrong) this.#forget(of.name, number, task, written !== undefined);
      Object.assign(this.entriesOf(of)?.get(number) ?? {}, { last: position, hash: ownText(hash) });
    }
    const made = effects.find(({ table, previous }) => table === 'tasks' && previous === 0);
    if (made === undefined || rows.get(made.id) !== undefined) return;
    this.#knowsTasks = false;
    if (typeof args.project === 'string' && typeof result?.sequence === 'number')
      this.#sequences.set(args.project, result.sequence);
  }

  /** The rows of a table that can change; undefined of one that only grows. */
  entriesOf(table: StateTable): ReadonlyMap<number, Entry> | undefined {
    return table === TASKS ? this.#tasks : table === SESSIONS ? this.#sessions : undefined;
  }

  derivedOf(task: number): { unmet: number; is_final: number; queue: number } | undefined {
    const row = this.#tasks.get(task)?.row;
    const unmet = this.#countUnmet(task);
    if (row === undefined || unmet === undefined) return undefined;
    return {
      unmet,
      is_final: isFinal(row.workflow, row.status) ? 1 : 0,
      queue: queueOf(row.status),
    };
  }

  /** Whether everything before the present call was seen. */
  get isStrict(): boolean {
    return this.#source.whole && this.#lost.isEmpty;
  }

  /** Whether row `previous`, which is not here, may have written a record that row `last` was seen to write. */
  mayHaveMissed(previous: number, last: number): boolean {
    return this.#source.whole ? this.#lost.has(previous) : previous > last;
  }

  /** Whether every call on this record before the present one was seen. */
  #seesAllOf(table: StateTable, id: number): boolean {
    const { whole, complete } = this.#source;
    return this.#lost.isEmpty && (whole || complete?.has(formatId(table, id)) === true);
  }

  #knowsThoughtsOf(task: number): boolean {
    return this.#tasks.get(task)?.knowsThoughts !== false && this.#seesAllOf(TASKS, task);
  }

  #knowsRecordsOf(session: number): boolean {
    if (this.#seesAllOf(SESSIONS, session)) return true;
    const row = this.#sessions.get(session)?.row;
    if (this.#source.whole) return row !== undefined && row.position > this.#lost.last;
    return row?.scope === 'shallow' && this.#seesAllOf(TASKS, row.task_id);
  }

  /** A refusal rests on facts: where they are not known, it cannot be judged. */
  #refuseUnknown(): void {
    if (this.#call?.refused !== false) throw new UnknownFact('a fact');
  }

  /** A row that a lost call may have changed says nothing against a refusal. */
  #current<R extends { readonly position: number }>(row: R): R {
    if (row.position < this.#lost.last) this.#refuseUnknown();
    return row;
  }

  /** A thought needs of its task only whether it must be in a session; which one it is in says that. */
  #taskAsClaimed(id: number): TaskRow {
    this.#refuseUnknown();
    if (this.#call?.exit.tool !== 'thought_record') throw new UnknownFact('task');
    const { result, args } = this.#call;
    const isBound = result?.session_id !== undefined && args?.session_id === undefined;
    return { id, proof_grade: isBound ? 1 : 0, position: 0 } as unknown as TaskRow;
  }

  #newestAsClaimed(known: NewestThought | undefined): NewestThought | undefined {
    const { chain_position: place, previous_hash: hash } = this.#call?.result ?? {};
    if (typeof place !== 'number') throw new UnknownFact('newest thought');
    if (known !== undefined && place <= known.chain_position + 1) return known;
    if (place === 1) return undefined;
    return { id: 0, hash: typeof hash === 'string' ? hash : '', chain_position: place - 1, sealed: false };
  }

  #awaited(id: number): readonly number[] {
    const entry = this.#tasks.get(id);
    if (entry?.row === undefined || !this.isStrict) {
      if (entry?.row === undefined || this.#call?.refused === true) this.#refuseUnknown();
      if (entry === undefined) return NONE;
    }
    if (entry.children.length === 0) return entry.deps;
    return [...new Set([...entry.deps, ...entry.children])].sort((a, b) => a - b);
  }

  /** Undefined where that is not known. */
  #countUnmet(task: number, dependsOn?: readonly number[]): number | undefined {
    const entry = this.isStrict && this.#knowsTasks ? this.#tasks.get(task) : undefined;
    if (entry?.row === undefined) return undefined;
    const deps = dependsOn ?? entry.deps;
    const awaited = entry.children.length === 0 ? deps : new Set([...deps, ...entry.children]);
    let count = 0;
    for (const id of awaited) {
      const row = this.#tasks.get(id)?.row;
      if (row === undefined) return undefined;
      if (!isFinal(row.workflow, row.status)) count += 1;
    }
    return count;
  }

  /** Undefined where a task above is not known. */
  #covering(task: number): SessionRow[] | undefined {
    const found: SessionRow[] = [];
    for (let [id, distance]: [number | null, number] = [task, 0]; id !== null; distance += 1) {
      const open = this.#openByTask.get(id);
      const session = open === undefined ? undefined : this.#sessions.get(open)?.row;
      if (session !== undefined && (distance === 0 || session.scope === 'deep')) found.push(session);
      const entry = this.#tasks.get(id);
      if (entry === undefined) break;
      // Nobody is its own ancestor; in a forged log anybody may be.
      if (entry.row === undefined || distance > this.#tasks.size) return undefined;
      id = entry.row.parent_id;
    }
    return found.sort((a, b) => a.id - b.id);
  }

  /** The sessions that the call says it left records in, and the task's own open one, which it cannot leave out. */
  #coveringAsClaimed(task: number): SessionRow[] {
    this.#refuseUnknown();
    const { exit, rows, result, args } = this.#call ?? {};
    const found = new Map<number, SessionRow>();
    const own = this.#openByTask.get(task);
    const ownRow = own === undefined || !this.#lost.isEmpty ? undefined : this.#sessions.get(own)?.row;
    if (ownRow !== undefined) found.set(ownRow.id, ownRow);
    for (const effect of exit?.effects ?? []) {
      const { table, id } = effect;
      if (table !== 'session_records') continue;
      const session = rows?.get(id)?.session_id ?? this.#sessionByHash(effect, task);
      if (typeof session !== 'number') throw new UnknownFact('covering sessions');
      const isOwn =
        result?.session_id === formatId(SESSIONS, session) &&
        args?.session_id === undefined &&
        own === undefined;
      found.set(session, this.#sessions.get(session)?.row ?? stubSession(session, isOwn ? task : 0));
    }
    return [...found.values()].sort((a, b) => a.id - b.id);
  }

  /** The session of a record that is gone or altered: all else about it is known, so its hash tells which one it was. */
  #sessionByHash({ number: id, hash }: ReadEffect, task_id: number): number | undefined {
    const thought = this.#call?.exit.effects.find(({ of }) => of === THOUGHTS)?.number;
    const position = this.#call?.exit.position ?? 0;
    const ref = thought ?? position;
    const kind = thought === undefined ? 'change' : 'thought';
    const fits = (session_id: number) =>
      rowHash(SESSION_RECORDS, { id, kind, position, ref, session_id, task_id }) === hash;
    return [...this.#openByTask.values()].find(fits);
  }

  #count(table: StateTableName, id: number): void {
    if (id > (this.created.get(table) ?? 0)) this.created.set(table, id);
  }

  #entryOf(id: number): TaskEntry {
    const known = this.#tasks.get(id);
    if (known !== undefined) return known;
    const entry: TaskEntry = {
      row: undefined,
      last: 0,
      hash: undefined,
      deps: NONE,
      children: NONE,
      newest: undefined,
      knowsThoughts: true,
      unsealed: 0,
    };
    this.#tasks.set(id, entry);
    return entry;
  }

  #setTask(row: TaskRow): void {
    const isNew = !this.#tasks.has(row.id);
    const entry = this.#entryOf(row.id);
    if (entry.row?.depends_on !== row.depends_on) entry.deps = numbersIn(row.depends_on);
    entry.row = row;
    entry.last = row.position;
    entry.hash = undefined;
    if (!isNew) return;
    const last = this.#sequences.get(row.project) ?? 0;
    if (row.sequence > last) this.#sequences.set(row.project, row.sequence);
    if (row.parent_id === null || !(this.#source.whole || this.#tasks.has(row.parent_id))) return;
    const above = this.#entryOf(row.parent_id);
    if (above.children.length === 0) above.children = [];
    above.children.push(row.id);
  }

  #addThought({ id, task_id: task, hash, chain_position }: ThoughtRow): void {
    this.#thought = { id, task, hash, chain_position, sealed: false };
    // In part of a log, the thoughts of other tasks are a chain of which not every link is there.
    const entry = this.#entryOf(task);
    entry.newest = this.#thought;
    entry.knowsThoughts = true;
    entry.unsealed += 1;
  }

  #setSession(row: SessionRow): void {
    this.#sessions.set(row.id, { row, last: row.position, hash: undefined });
    if (row.status === 'open') {
      this.#openByTask.set(row.task_id, row.id);
      if (!this.#records.has(row.id)) this.#records.set(row.id, { leaves: [], isComplete: true });
      return;
    }
    for (const { task, thought } of this.#records.get(row.id)?.leaves ?? []) {
      if (thought === undefined || thought.sealed || (row.sealed_task_id ?? task) !== task) continue;
      thought.sealed = true;
      this.#entryOf(thought.task).unsealed -= 1;
    }
    this.#records.delete(row.id);
    if (this.#openByTask.get(row.task_id) === row.id) this.#openByTask.delete(row.task_id);
  }

  #addRecord({ session_id, task_id: task, kind, ref }: SessionRecordRow, contentHash: string): void {
    // A session whose beginning is not here still seals what is.
    const records = this.#records.get(session_id) ?? { leaves: [], isComplete: false };
    this.#records.set(session_id, records);
    const thought = kind === 'thought' && this.#thought?.id === ref ? this.#thought : undefined;
    records.leaves.push({ task, hash: thought?.hash ?? contentHash, thought });
  }

  /** What rests on a row that nobody knows, or that is wrong, would be found wrong as well: the chain of its task, the seal of its session. */
  #forget(table: StateTableName, id: number, task: unknown, wasApplied: boolean): void {
    if (table === 'tasks') this.#entryOf(id).row = undefined;
    else if (table === 'sessions') {
      this.#sessions.set(id, { row: undefined, last: 0, hash: undefined });
      this.#knowsSessions = false;
    } else if (table === 'session_records')
      for (const records of this.#records.values()) records.isComplete = false;
    else if (typeof task === 'number') {
      const entry = this.#entryOf(task);
      Object.assign(entry, { knowsThoughts: false, unsealed: Number.NaN });
      if (wasApplied) entry.newest = undefined;
    }
  }
}

/** Only a list that a rule has written is one; what a forged row holds may be anything. */
function numbersIn(text: string): readonly number[] {
  if (text === '[]') return NONE;
  return listIn(text)
    .filter((id) => typeof id === 'number')
    .sort((a, b) => a - b);
}

/** A row of state as it was read back. Its hash is the one the log names, so a call did write it. */
function asWritten(table: StateTableName, id: number, row: JsonObject): Written | undefined {
  if (row.id !== id || typeof row.position !== 'number') return undefined;
  return { table, row, previous: 0 } as unknown as Written;
}

function stubSession(id: number, task_id: number): SessionRow {
  return { id, task_id, scope: 'deep', status: 'open', position: 0 } as unknown as SessionRow;
}
