import { createHash, type Hash } from 'node:crypto';
import { thoughtHash } from '../domains/trail/index.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { Frontier, treeDepth } from '../integrity/tree.ts';
import { GENESIS } from '../log/row.ts';
import { formatId, parseId, type StateTable } from '../log/state.ts';
import { SESSION_RECORDS, SESSIONS, STATE_TABLES, TASKS, THOUGHTS } from '../log/tables.ts';
import type { Finding, Report } from '../log/verify/finding.ts';
import { Digests } from './digests.ts';
import {
  asSession,
  asSessionRecord,
  asThought,
  readWritten,
  type SessionLine,
  type SessionRecordLine,
  type ThoughtLine,
  type WrittenRow,
} from './formats.ts';
import type { LoggedSeal, RowWalk } from './row-walk.ts';
import { type SealFacts, sealBegin, sealEnd, sealRecord } from './seal.ts';

/** A session with the tree over its records as they were met. */
export interface WalkedSession {
  readonly row: SessionLine;
  readonly tree: Frontier;
  /** Of the seal file these records make, up to the last of them. */
  readonly seal: Hash;
  /** The hashes under the tree; kept only where few are expected. */
  readonly hashes: string[];
}

interface Link {
  readonly hash: string;
  readonly chainPosition: number;
}

/** One column that only this table has tells whose row a line is. */
const MARKS: readonly (readonly [StateTable, string])[] = [
  [TASKS, 'workflow'],
  [THOUGHTS, 'chain_position'],
  [SESSIONS, 'auditor_id'],
  [SESSION_RECORDS, 'ref'],
];

/** Walks rows of state by a stranger, in the order of a bundle, against the audit rows that `rows` has seen. */
export class StateWalk {
  readonly sessions = new Map<number, WalkedSession>();
  readonly thoughts: Digests;
  readonly #links = new Map<number, Link>();
  readonly #rows: RowWalk;
  readonly #report: Report;
  readonly #whole: boolean;
  #table = 0;
  #id = 0;

  constructor(rows: RowWalk, report: Report, whole: boolean) {
    this.#rows = rows;
    this.#report = report;
    this.#whole = whole;
    this.thoughts = new Digests(whole);
  }

  /** Takes the next row in; answers it only where the log vouches for it. */
  add(line: Uint8Array | string): { readonly table: StateTable; readonly row: WrittenRow } | undefined {
    const row = readWritten(typeof line === 'string' ? line : Buffer.from(line).toString('utf8'));
    const table = MARKS.find(([, column]) => row !== undefined && Object.hasOwn(row, column))?.[0];
    if (row === undefined || table === undefined) {
      const after = this.#id === 0 ? 'the beginning' : formatId(this.#current(), this.#id);
      this.#say('malformed', 'state', after, `The line behind ${after} is no row of state.`);
      return undefined;
    }
    if (!this.#advance(table, row.id) || !this.#isVouchedFor(table, row, sha256Hex(line))) return undefined;
    this.#remember(table, row);
    return { table, row };
  }

  /** After the last line of a whole log: what the log wrote and the bundle does not hold. */
  finish(): void {
    if (!this.#whole) return;
    for (; this.#table < STATE_TABLES.length; this.#nextTable())
      this.#missingUpTo(this.#current(), this.#rows.written.get(this.#current().name)?.size ?? 0);
  }

  /** Each sealed session: the same root and count in its row, in the log, and in the tree over its records. */
  checkSeals(): void {
    for (const [id, { row, tree }] of this.sessions) {
      const record = formatId(SESSIONS, id);
      const logged = this.#rows.seals.get(record);
      if ((logged !== undefined) !== (row.status === 'finalized')) {
        this.#say('altered', 'sessions', record, `${record} and the log disagree on whether it is sealed.`);
      } else if (logged !== undefined && !isSealOf(row, logged, tree)) {
        const message = `The seal of ${record} does not fit its records.`;
        this.#say('altered', 'sessions', record, message, row.position);
      }
    }
    if (!this.#whole) return;
    for (const record of this.#rows.seals.keys())
      if (!this.sessions.has(parseId(SESSIONS, record) ?? 0))
        this.#say('missing', 'sessions', record, `${record} was sealed and is not there.`);
  }

  #current(): StateTable {
    return STATE_TABLES[this.#table] ?? TASKS;
  }

  #nextTable(): void {
    this.#table += 1;
    this.#id = 0;
  }

  /** Rows come by table and id: whatever does not go up is there twice or misplaced. */
  #advance(table: StateTable, id: number): boolean {
    const written = this.#rows.written.get(table.name)?.size ?? 0;
    const index = STATE_TABLES.indexOf(table);
    if (index < this.#table || (index === this.#table && id <= this.#id) || (this.#whole && id > written)) {
      const record = formatId(table, id);
      this.#say('stray', table.name, record, `${record} is there twice, misplaced, or unknown to the log.`);
      return false;
    }
    for (; this.#table < index; this.#nextTable())
      this.#missingUpTo(this.#current(), this.#rows.written.get(this.#current().name)?.size ?? 0);
    this.#missingUpTo(table, id - 1);
    this.#id = id;
    return true;
  }

  #missingUpTo(table: StateTable, last: number): void {
    if (!this.#whole) return;
    for (let id = this.#id + 1; id <= last; id += 1) {
      const record = formatId(table, id);
      this.#say('missing', table.name, record, `${record} was written by the log and is not there.`);
    }
  }

  #isVouchedFor(table: StateTable, row: WrittenRow, actual: string): boolean {
    const expected = this.#rows.written.get(table.name)?.get(row.id);
    if (expected === actual) return true;
    const record = formatId(table, row.id);
    const message =
      expected === undefined
        ? `${record} is there, but no audit row wrote it.`
        : `${record} is not as the log last left it.`;
    this.#report({
      kind: expected === undefined ? 'unexplained' : 'altered',
      table: table.name,
      record,
      message,
      actual,
      ...(expected !== undefined && { expected }),
      ...(row.position <= this.#rows.position && { position: row.position }),
    });
    return false;
  }

  #remember(table: StateTable, row: WrittenRow): void {
    const read =
      table === THOUGHTS
        ? this.#link(asThought(row))
        : table === SESSIONS
          ? this.#begin(asSession(row))
          : table === SESSION_RECORDS
            ? this.#record(asSessionRecord(row))
            : true;
    const record = formatId(table, row.id);
    if (!read) this.#say('malformed', table.name, record, `${record} is not a row that Colibri writes.`);
  }

  /** A thought's own hash, and that it continues the thought before it. */
  #link(thought: ThoughtLine | undefined): boolean {
    if (thought === undefined) return false;
    const record = formatId(THOUGHTS, thought.id);
    const last = this.#links.get(thought.task_id);
    if (thoughtHash(thought) !== thought.hash)
      this.#say('altered', 'thoughts', record, `The hash of ${record} is not that of its fields.`);
    const follows = last === undefined ? thought.chain_position === 1 : isNext(last, thought);
    const previous = thought.chain_position === 1 ? null : last?.hash;
    if ((this.#whole || follows) && (!follows || thought.previous_hash !== previous))
      this.#say('unlinked', 'thoughts', record, `${record} does not continue the thought before it.`);
    this.#links.set(thought.task_id, { hash: thought.hash, chainPosition: thought.chain_position });
    this.thoughts.set(thought.id, thought.hash);
    return true;
  }

  #begin(row: SessionLine | undefined): boolean {
    if (row === undefined) return false;
    const seal = createHash('sha256').update(sealBegin(factsOf(row)));
    this.sessions.set(row.id, { row, tree: new Frontier(), seal, hashes: [] });
    return true;
  }

  #record(record: SessionRecordLine | undefined): boolean {
    const session = record === undefined ? undefined : this.sessions.get(record.session_id);
    if (record === undefined || session === undefined) return false;
    const { sealed_task_id } = session.row;
    if (sealed_task_id !== null && sealed_task_id !== record.task_id) return true;
    const hash = (record.kind === 'thought' ? this.thoughts : this.#rows.hashes).get(record.ref);
    if (hash === undefined) return false;
    session.seal.update(sealRecord({ ...record, hash }, session.tree.size === 0));
    session.tree.add(hash);
    if (!this.#whole) session.hashes.push(hash);
    return true;
  }

  #say(kind: Finding['kind'], table: string, record: string, message: string, position?: number): void {
    this.#report({ kind, table, record, message, ...(position !== undefined && { position }) });
  }
}

function isNext(last: Link, thought: ThoughtLine): boolean {
  return thought.chain_position === last.chainPosition + 1;
}

/** Whether a session's row, the log and a tree over its records agree. */
export function isSealOf(row: SessionLine, logged: LoggedSeal, tree: Frontier): boolean {
  return (
    logged.position === row.position &&
    logged.merkle_root === row.merkle_root &&
    logged.leaf_count === row.leaf_count &&
    tree.root() === row.merkle_root &&
    tree.size === row.leaf_count &&
    treeDepth(tree.size) === row.tree_depth
  );
}

/** What the seal file of a session says beside its records. */
function factsOf(row: SessionLine): SealFacts {
  return {
    session_id: formatId(SESSIONS, row.id),
    merkle_root: row.merkle_root ?? GENESIS,
    leaf_count: row.leaf_count ?? 0,
    tree_depth: row.tree_depth ?? 0,
    position: row.position,
    sealed_task_id: row.sealed_task_id === null ? null : formatId(TASKS, row.sealed_task_id),
  };
}

/** The SHA-256 that a session's seal file must have. */
export function sealDigest({ row, seal }: WalkedSession): string {
  return seal
    .copy()
    .update(`${sealEnd(factsOf(row))}\n`)
    .digest('hex');
}
