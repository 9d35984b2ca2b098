import { sha256Hex } from '../../../integrity/digest.ts';
import { Frontier } from '../../../integrity/tree.ts';
import { exactText } from '../../../integrity/utf8.ts';
import { type AuditRow, chainHash, GENESIS, payloadHash } from '../../../log/row.ts';
import { parseId } from '../../../log/state.ts';
import { STATE_TABLES } from '../../../log/tables.ts';
import { auditRow, type Finding } from '../../../log/verify/finding.ts';
import { readRowText } from '../../../log/verify/row-text.ts';
import type { Tally } from './tally.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const OUTCOMES: readonly string[] = ['ok', 'error', 'rejected', 'denied', 'crashed'];

/** What the log says was last written somewhere. */
export interface Written {
  readonly hash: string;
  readonly position: number;
}

export interface LoggedSeal {
  readonly position: number;
  readonly merkle_root: string;
  readonly leaf_count: number;
}

export interface Payload {
  readonly position: number;
  readonly salt: string;
  readonly body: string;
}

/** Walks audit rows by a stranger in order: a whole log, which must have no gap, or some rows of one. */
export class RowWalk {
  /** Content hashes by position. */
  readonly hashes = new Map<number, string>();
  readonly written = new Map(STATE_TABLES.map(({ name }) => [name, new Map<number, Written>()]));
  readonly seals = new Map<string, LoggedSeal>();
  readonly tree = new Frontier();
  chain = GENESIS;
  /** Position of the last row. */
  last = 0;
  readonly #begun = new Map<number, AuditRow>();
  readonly #tally: Tally;
  readonly #whole: boolean;
  #time = '';

  constructor(tally: Tally, whole: boolean) {
    this.#tally = tally;
    this.#whole = whole;
  }

  /** Takes the next row in. Undefined for a line that is no audit row, after saying so. */
  add(line: Uint8Array): AuditRow | undefined {
    const hash = sha256Hex(line);
    const text = exactText(line);
    const row = text === undefined ? undefined : readRowText(text);
    const due = this.last + 1;
    if (this.#whole) {
      this.tree.add(hash);
      this.chain = chainHash(hash, this.chain);
    }
    const isInPlace = row !== undefined && (this.#whole ? row.position === due : row.position >= due);
    if (!isInPlace || !TIME.test(row.at)) {
      this.last = due;
      this.hashes.set(due, hash);
      this.#say(due, 'malformed', `Audit row ${due} is missing or is not one that Colibri writes.`);
      return undefined;
    }
    this.last = row.position;
    this.hashes.set(row.position, hash);
    if (row.at < this.#time)
      this.#say(row.position, 'malformed', `Audit row ${row.position} is earlier than the one before it.`);
    this.#time = row.at;
    this.#pair(row);
    for (const effect of row.effects) this.#note(effect, row.position);
    return row;
  }

  /** What lies beside a row must be what the row's digest says; what must be kept must be there. */
  checkPayload(row: AuditRow, payload: Payload | undefined): void {
    const { position, stage } = row;
    const digest = stage === 'enter' ? row.args_hash : row.result_hash;
    const isKept = stage === 'enter' ? row.schema_valid : row.outcome === 'ok' && row.effects.length > 0;
    const say = (kind: Finding['kind'], message: string) =>
      this.#tally.say('payloads', {
        kind,
        table: 'action_payloads',
        record: auditRow(position),
        position,
        message,
      });
    if (payload === undefined) {
      if (isKept) say('missing', `What audit row ${position} was called with or answered is not there.`);
    } else if (!isKept) {
      say('stray', `There is a payload for audit row ${position}, which keeps none.`);
    } else if (payloadHash(payload.salt, payload.body) !== digest) {
      say('altered', `What lies beside audit row ${position} is not what its digest says.`);
    }
  }

  #pair(row: AuditRow): void {
    const { position, sequence_no, stage, outcome } = row;
    if (stage === 'enter') {
      if (sequence_no !== position || outcome !== 'running' || row.effects.length > 0)
        this.#say(position, 'malformed', `Audit row ${position} begins a call and says how it ended.`);
      this.#begun.set(position, row);
      return;
    }
    const begun = this.#begun.get(sequence_no);
    this.#begun.delete(sequence_no);
    // Among some rows of a log an exit row may stand alone.
    if (begun === undefined && !this.#whole && sequence_no < position && !this.hashes.has(sequence_no))
      return;
    const isSameCall =
      begun?.tool === row.tool && begun.actor === row.actor && begun.correlation_id === row.correlation_id;
    if (!isSameCall || !OUTCOMES.includes(outcome))
      this.#say(
        position,
        'unpaired',
        `Audit row ${position} ends call ${sequence_no}, which was not running.`,
      );
  }

  #note(effect: AuditRow['effects'][number], position: number): void {
    const table = STATE_TABLES.find(({ name }) => name === effect.table);
    const id = table === undefined ? undefined : parseId(table, effect.id);
    const written = this.written.get(effect.table);
    const isNext = id !== undefined && (!this.#whole || id <= (written?.size ?? 0) + 1);
    if (written === undefined || !isNext) {
      this.#say(position, 'malformed', `Audit row ${position} wrote ${effect.id}, which cannot be.`);
      return;
    }
    written.set(id, { hash: effect.hash, position });
    if (effect.seal === undefined) return;
    if (this.seals.has(effect.id))
      this.#say(position, 'malformed', `Audit row ${position} seals ${effect.id} a second time.`);
    this.seals.set(effect.id, { position, ...effect.seal });
  }

  #say(position: number, kind: 'malformed' | 'unpaired', message: string): void {
    this.#tally.say('rows', { kind, table: 'actions', record: auditRow(position), position, message });
  }
}
