import { sha256Hex } from '../integrity/digest.ts';
import { Frontier } from '../integrity/tree.ts';
import { type AuditRow, chainHash, GENESIS, payloadHash } from '../log/row.ts';
import { parseId } from '../log/state.ts';
import { STATE_TABLES } from '../log/tables.ts';
import { auditRow, type Report } from '../log/verify/finding.ts';
import { Digests } from './digests.ts';
import { type PayloadLine, readAuditRow } from './formats.ts';

/** What an exit row says of a finalized session. */
export interface LoggedSeal {
  readonly position: number;
  readonly merkle_root: string;
  readonly leaf_count: number;
}

/** A row that was read, where it stands, and its digest. */
export interface WalkedRow {
  readonly row: AuditRow;
  readonly contentHash: string;
}

interface Begun {
  readonly tool: string;
  readonly actor: string;
  readonly correlation_id: string;
}

/**
 * Walks audit rows by a stranger in order: a whole log, which must have no gap, or some rows of one. Remembers what the
 * state beside them is compared with, at 32 bytes a row.
 */
export class RowWalk {
  /** Content hashes by position. */
  readonly hashes: Digests;
  /** By table, the digest each row was last written with. */
  readonly written: ReadonlyMap<string, Digests>;
  readonly seals = new Map<string, LoggedSeal>();
  readonly #begun = new Map<number, Begun>();
  readonly #tree = new Frontier();
  readonly #report: Report;
  readonly #whole: boolean;
  #chain = GENESIS;
  #last = 0;
  #time = '';
  first: string | undefined;

  constructor(report: Report, whole: boolean) {
    this.#report = report;
    this.#whole = whole;
    this.hashes = new Digests(whole);
    this.written = new Map(STATE_TABLES.map(({ name }) => [name, new Digests(whole)]));
  }

  /** Position of the last row. */
  get position(): number {
    return this.#last;
  }

  get chainHash(): string {
    return this.#chain;
  }

  get root(): string {
    return this.#tree.root();
  }

  /** Takes the next row in. Undefined for a line that is no audit row, after saying so. */
  add(line: Uint8Array | string): WalkedRow | undefined {
    const contentHash = sha256Hex(line);
    const text = typeof line === 'string' ? line : Buffer.from(line).toString('utf8');
    const row = readAuditRow(text);
    const due = this.#last + 1;
    this.#grow(contentHash);
    if (row === undefined || (this.#whole ? row.position !== due : row.position < due)) {
      if (this.#whole) this.#remember(due, contentHash);
      this.#say(due, 'malformed', `Audit row ${due} is missing or is not one that Colibri writes.`);
      return undefined;
    }
    this.#remember(row.position, contentHash);
    if (row.at < this.#time)
      this.#say(row.position, 'malformed', `Audit row ${row.position} is earlier than the one before it.`);
    this.#time = row.at;
    this.#pair(row);
    for (const effect of row.effects) this.#note(effect, row.position);
    return { row, contentHash };
  }

  /** What lies beside a row must be what the row's digest says; what must be kept must be there. */
  checkPayload({ row }: WalkedRow, payload: PayloadLine | undefined): void {
    const table = 'action_payloads';
    const [record, position] = [auditRow(row.position), row.position];
    const digest = row.stage === 'enter' ? row.args_hash : row.result_hash;
    if (payload === undefined) {
      if (!isKept(row)) return;
      const message = `What audit row ${position} was called with or answered is not there.`;
      this.#report({ kind: 'missing', table, record, position, message });
    } else if (!isKept(row)) {
      const message = `There is a payload for audit row ${position}, which keeps none.`;
      this.#report({ kind: 'stray', table, record, position, message });
    } else if (payloadHash(payload.salt, payload.body) !== digest) {
      const message = `What lies beside audit row ${position} is not what its digest says.`;
      this.#report({ kind: 'altered', table, record, position, columns: ['salt', 'body'], message });
    }
  }

  #remember(position: number, contentHash: string): void {
    if (position === 1) this.first = contentHash;
    this.hashes.set(position, contentHash);
    this.#last = position;
  }

  #grow(contentHash: string): void {
    if (!this.#whole) return;
    this.#tree.add(contentHash);
    this.#chain = chainHash(contentHash, this.#chain);
  }

  #pair(row: AuditRow): void {
    const { position, sequence_no, stage } = row;
    if (stage === 'enter') {
      if (sequence_no !== position || row.outcome !== 'running' || row.effects.length > 0)
        this.#say(position, 'malformed', `Audit row ${position} begins a call and says how it ended.`);
      this.#begun.set(position, row);
      return;
    }
    const begun = this.#begun.get(sequence_no);
    this.#begun.delete(sequence_no);
    // Among some rows of a log an exit row may stand alone.
    if (begun === undefined && !this.#whole && sequence_no < position && !this.hashes.get(sequence_no))
      return;
    if (begun === undefined || !isSameCall(begun, row) || row.outcome === 'running')
      this.#say(
        position,
        'unpaired',
        `Audit row ${position} ends call ${sequence_no}, which was not running.`,
      );
  }

  #note(effect: AuditRow['effects'][number], position: number): void {
    const table = STATE_TABLES.find(({ name }) => name === effect.table);
    const id = table === undefined ? undefined : parseId(table, effect.id);
    if (id === undefined || !this.written.get(effect.table)?.set(id, effect.hash)) {
      this.#say(position, 'malformed', `Audit row ${position} wrote ${effect.id}, which cannot be.`);
      return;
    }
    if (effect.seal === undefined) return;
    if (this.seals.has(effect.id))
      this.#say(position, 'malformed', `Audit row ${position} seals ${effect.id} a second time.`);
    this.seals.set(effect.id, { position, ...effect.seal });
  }

  #say(position: number, kind: 'malformed' | 'unpaired', message: string): void {
    this.#report({ kind, table: 'actions', record: auditRow(position), position, message });
  }
}

/** Arguments are kept unless they were refused; results are kept of calls that changed something. */
function isKept({ stage, schema_valid, outcome, effects }: AuditRow): boolean {
  return stage === 'enter' ? schema_valid : outcome === 'ok' && effects.length > 0;
}

function isSameCall(begun: Begun, row: AuditRow): boolean {
  return begun.tool === row.tool && begun.actor === row.actor && begun.correlation_id === row.correlation_id;
}
