import {
  describeRecord,
  type SealedRecord,
  type SealFacts,
  sealBegin,
  sealEnd,
} from '../../../export/seal.ts';
import { canonicalJson } from '../../../integrity/canonical-json.ts';
import { isHash, sha256Hex } from '../../../integrity/digest.ts';
import { treeDepth, treeRoot } from '../../../integrity/tree.ts';
import { GENESIS } from '../../../log/row.ts';
import { formatId, type StateTable } from '../../../log/state.ts';
import { SESSION_RECORDS, SESSIONS, STATE_TABLES, TASKS, THOUGHTS } from '../../../log/tables.ts';
import type { Finding } from '../../../log/verify/finding.ts';
import type { CheckName } from '../protocol.ts';
import { type Fields, isPosition, readCanonical, textOf } from './fields.ts';
import type { RowWalk } from './rows.ts';
import type { Tally } from './tally.ts';

/** A row of state with its place, whether or not the log vouches for it. */
export interface StateRow {
  readonly table: StateTable;
  readonly id: number;
  readonly fields: Fields;
  readonly isVouched: boolean;
}

export interface WalkedSession {
  readonly fields: Fields;
  readonly records: SealedRecord[];
  sealHolds: boolean | undefined;
}

/** One column that only this table has tells whose row a line is. */
const MARKS: readonly (readonly [StateTable, string])[] = [
  [TASKS, 'workflow'],
  [THOUGHTS, 'chain_position'],
  [SESSIONS, 'auditor_id'],
  [SESSION_RECORDS, 'ref'],
];

/** Walks rows of state by a stranger against the audit rows that `rows` has seen: each as written, none missing, none extra. */
export class StateWalk {
  readonly rows: StateRow[] = [];
  readonly sessions = new Map<number, WalkedSession>();
  /** The hash of each thought that the log vouches for. */
  readonly thoughts = new Map<number, string>();
  thoughtCount = 0;
  readonly #links = new Map<unknown, { hash: string; place: number }>();
  readonly #seen = new Set<string>();
  readonly #log: RowWalk;
  readonly #tally: Tally;
  readonly #whole: boolean;
  #last = { table: 0, id: 0 };

  constructor(log: RowWalk, tally: Tally, whole: boolean) {
    this.#log = log;
    this.#tally = tally;
    this.#whole = whole;
  }

  add(line: Uint8Array): void {
    const fields = readCanonical(line);
    const table = MARKS.find(([, column]) => fields !== undefined && Object.hasOwn(fields, column))?.[0];
    const id = fields?.id;
    if (fields === undefined || table === undefined || !isPosition(id)) {
      const after = this.rows.length === 0 ? 'at the beginning' : `behind ${this.#nameOfLast()}`;
      this.#say('state', 'malformed', 'state', 'state.jsonl', `The line ${after} is no row of state.`);
      return;
    }
    const isVouched = this.#isInOrder(table, id) && this.#isAsWritten(table, id, fields, sha256Hex(line));
    this.rows.push({ table, id, fields, isVouched });
    if (isVouched) this.#remember(table, id, fields);
  }

  /** After the last line: what the log wrote and the bundle does not hold, and whether the seals fit. */
  finish(): void {
    if (this.#whole)
      for (const table of STATE_TABLES)
        for (const [id, { position }] of this.#log.written.get(table.name) ?? []) {
          const record = formatId(table, id);
          if (this.#seen.has(record)) continue;
          const message = `${record} was written by audit row ${position} and is not there.`;
          this.#say('state', 'missing', table.name, record, message, position);
        }
    for (const [id, session] of this.sessions) this.#checkSeal(formatId(SESSIONS, id), session);
    if (!this.#whole) return;
    for (const [record, { position }] of this.#log.seals)
      if (!this.#seen.has(record))
        this.#say('seals', 'missing', 'sessions', record, `${record} was sealed and is not there.`, position);
  }

  /** Rows come by table and id: whatever does not go up is there twice or misplaced. */
  #isInOrder(table: StateTable, id: number): boolean {
    const place = { table: STATE_TABLES.indexOf(table), id };
    const record = formatId(table, id);
    const { table: lastTable, id: lastId } = this.#last;
    if (place.table < lastTable || (place.table === lastTable && id <= lastId)) {
      const message = `${record} is there twice, or misplaced.`;
      this.#say('state', 'stray', table.name, record, message);
      return false;
    }
    this.#last = place;
    this.#seen.add(record);
    return true;
  }

  #isAsWritten(table: StateTable, id: number, fields: Fields, actual: string): boolean {
    const written = this.#log.written.get(table.name)?.get(id);
    if (written?.hash === actual) return true;
    const record = formatId(table, id);
    if (written === undefined) {
      const message = `${record} is there, but no audit row wrote it.`;
      const position = isPosition(fields.position) ? fields.position : undefined;
      this.#say('state', 'unexplained', table.name, record, message, position);
    } else {
      const message = `${record} is not as audit row ${written.position} left it.`;
      this.#say('state', 'altered', table.name, record, message, written.position);
    }
    return false;
  }

  #remember(table: StateTable, id: number, fields: Fields): void {
    const isRead =
      table === THOUGHTS
        ? this.#link(id, fields)
        : table === SESSIONS
          ? this.#begin(id, fields)
          : table === SESSION_RECORDS
            ? this.#record(fields)
            : true;
    const record = formatId(table, id);
    if (!isRead)
      this.#say('state', 'malformed', table.name, record, `${record} is not a row that Colibri writes.`);
  }

  /** A thought's own hash, and that it continues the thought before it. */
  #link(id: number, thought: Fields): boolean {
    const { task_id, hash, chain_position: place, previous_hash } = thought;
    if (!isPosition(task_id) || typeof hash !== 'string' || !isHash(hash) || !isPosition(place)) return false;
    const record = formatId(THOUGHTS, id);
    const position = isPosition(thought.position) ? thought.position : undefined;
    this.thoughtCount += 1;
    if (thoughtHash(task_id, thought) !== hash) {
      const message = `The hash of ${record} is not that of its fields.`;
      this.#say('thoughts', 'altered', 'thoughts', record, message, position);
    }
    const last = this.#links.get(task_id);
    const follows = place === (last?.place ?? 0) + 1;
    const previous = place === 1 ? null : last?.hash;
    if ((this.#whole || follows) && (!follows || previous_hash !== previous)) {
      const message = `${record} does not continue the thought before it.`;
      this.#say('thoughts', 'unlinked', 'thoughts', record, message, position);
    }
    this.#links.set(task_id, { hash, place });
    this.thoughts.set(id, hash);
    return true;
  }

  #begin(id: number, fields: Fields): boolean {
    const { task_id, status, sealed_task_id } = fields;
    this.sessions.set(id, { fields, records: [], sealHolds: undefined });
    return (
      isPosition(task_id) &&
      (status === 'open' || status === 'finalized') &&
      (sealed_task_id === null || isPosition(sealed_task_id))
    );
  }

  #record({ session_id, task_id, kind, ref }: Fields): boolean {
    const session = typeof session_id === 'number' ? this.sessions.get(session_id) : undefined;
    if (session === undefined || !isPosition(task_id) || !isPosition(ref)) return false;
    if (kind !== 'thought' && kind !== 'change') return false;
    const { sealed_task_id } = session.fields;
    if (sealed_task_id !== null && sealed_task_id !== task_id) return true;
    const hash = (kind === 'thought' ? this.thoughts : this.#log.hashes).get(ref);
    if (hash === undefined) return false;
    session.records.push({ kind, ref, task_id, hash });
    return true;
  }

  /** The same root and count in the session's row, in the log, and in the tree over its records. */
  #checkSeal(record: string, session: WalkedSession): void {
    const { fields, records } = session;
    const logged = this.#log.seals.get(record);
    if ((logged !== undefined) !== (fields.status === 'finalized')) {
      session.sealHolds = false;
      const message = `${record} and the log disagree on whether it is sealed.`;
      this.#say('seals', 'altered', 'sessions', record, message, logged?.position);
    }
    if (logged === undefined) return;
    session.sealHolds =
      session.sealHolds !== false &&
      logged.position === fields.position &&
      logged.merkle_root === fields.merkle_root &&
      logged.leaf_count === fields.leaf_count &&
      records.length === logged.leaf_count &&
      treeDepth(records.length) === fields.tree_depth &&
      treeRoot(records.map(({ hash }) => hash)) === logged.merkle_root;
    if (session.sealHolds) return;
    const message = `The seal of ${record} does not fit its records.`;
    this.#say('seals', 'altered', 'sessions', record, message, logged.position);
  }

  #nameOfLast(): string {
    const last = this.rows.at(-1);
    return last === undefined ? '' : formatId(last.table, last.id);
  }

  #say(
    check: CheckName,
    kind: Finding['kind'],
    table: string,
    record: string,
    message: string,
    position?: number,
  ): void {
    const isOfTheLog = position !== undefined && position <= this.#log.last;
    this.#tally.say(check, { kind, table, record, message, ...(isOfTheLog && { position }) });
  }
}

/** The published formula: six fields in this order, as JSON without spaces. */
function thoughtHash(taskId: number, thought: Fields): string {
  const { type, content, previous_hash, recorded_at, recorded_by } = thought;
  const task_id = formatId(TASKS, taskId);
  return sha256Hex(JSON.stringify({ task_id, type, content, previous_hash, recorded_at, recorded_by }));
}

/** The text that the seal file of a session must have. */
export function sealText(id: number, { fields, records }: WalkedSession): string {
  const facts: SealFacts = {
    session_id: formatId(SESSIONS, id),
    merkle_root: textOf(fields.merkle_root) || GENESIS,
    leaf_count: Number(fields.leaf_count ?? 0),
    tree_depth: Number(fields.tree_depth ?? 0),
    position: Number(fields.position),
    sealed_task_id: isPosition(fields.sealed_task_id) ? formatId(TASKS, fields.sealed_task_id) : null,
  };
  const listed = records.map((record) => canonicalJson(describeRecord(record)));
  return `${sealBegin(facts)}${listed.join(',')}${sealEnd(facts)}\n`;
}
