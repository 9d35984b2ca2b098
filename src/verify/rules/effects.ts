import type { AuditRow } from '../../log/row.ts';
import { formatId, SESSIONS, STATE_TABLES, type StateTable, type StateTableName } from '../../log/tables.ts';
import type { Effect } from '../../tool.ts';
import { auditRow, type Report } from '../finding.ts';
import type { LostRows } from './lost.ts';
import { ownText } from './plain-row.ts';
import { FormError } from './row-form.ts';

/** The last word of the log on a row of state. */
export interface LastWrite {
  readonly position: number;
  readonly hash: string;
}

/** An effect with its table and number read. */
export interface ReadEffect extends Effect {
  readonly of: StateTable;
  readonly number: number;
}

const TABLES: ReadonlyMap<string, StateTable> = new Map(STATE_TABLES.map((table) => [table.name, table]));

/** The form of effects was checked with their row. */
export function readEffects({ effects }: AuditRow): ReadEffect[] {
  const read: ReadEffect[] = [];
  for (const { table, id, hash, previous, seal } of effects) {
    const of = TABLES.get(table);
    const number = Number(id.slice(ID_PREFIX_CHARS));
    if (of === undefined || number === 0) throw new FormError(`${id} is not an id`);
    read.push({ table, id, hash, previous, of, number, ...(seal !== undefined && { seal }) });
  }
  return read;
}

/** `T-0001` has two characters before its number. */
const ID_PREFIX_CHARS = 2;

/**
 * Which call wrote which row of state last. Ids count from 1 without gaps; each effect names the one before it on the
 * same row; a row of an append-only table has one. Only rows that can change are remembered.
 */
export class Writes {
  readonly created = new Map<StateTableName, number>();
  readonly #last = new Map<StateTableName, Map<number, LastWrite>>(
    STATE_TABLES.map((table) => [table.name, new Map()]),
  );
  readonly #whole: boolean;
  readonly #lost: LostRows;
  readonly #report: Report;

  constructor(whole: boolean, lost: LostRows, report: Report) {
    this.#whole = whole;
    this.#lost = lost;
    this.#report = report;
  }

  /** The rows of a table that can change, each with its last write. */
  lastOf(table: StateTable): ReadonlyMap<number, LastWrite> {
    return this.#last.get(table.name) ?? new Map();
  }

  /** Takes in the effects of one call. Answers whether they can be what a call did. */
  follow(row: AuditRow, effects: readonly ReadEffect[]): boolean {
    const faults = effects.flatMap((effect, i) => this.#faultOf(row, effect, effects.slice(0, i)));
    this.take(row, effects);
    if (faults.length === 0) return true;
    const message = `Audit row ${row.position} cannot have written what it says: ${faults.join('; ')}.`;
    const record = auditRow(row.position);
    this.#report({
      kind: 'forbidden',
      table: 'actions',
      record,
      position: row.position,
      columns: ['effects'],
      message,
    });
    return false;
  }

  /** Takes in effects of which it was said already that they cannot be. */
  take(row: AuditRow, effects: readonly ReadEffect[]): void {
    for (const effect of effects) this.#take(row, effect);
  }

  #take({ position }: AuditRow, { of, number, hash }: ReadEffect): void {
    this.created.set(of.name, Math.max(this.created.get(of.name) ?? 0, number));
    if (!of.appendOnly) this.#last.get(of.name)?.set(number, { position, hash: ownText(hash) });
  }

  #faultOf(row: AuditRow, effect: ReadEffect, earlier: readonly ReadEffect[]): string[] {
    const { of, id, number, previous, seal } = effect;
    if (earlier.some((other) => other.id === id)) return [`${id} is named twice`];
    if (seal !== undefined && (of !== SESSIONS || row.tool !== 'merkle_finalize'))
      return [`${id} has a seal`];
    if (previous >= row.position) return [`${id} was written before by row ${previous}, which comes later`];
    if (of.appendOnly && previous !== 0) return [`${id} is written a second time`];
    const known = this.#last.get(of.name)?.get(number);
    if (!this.#whole) return this.#faultInPart(effect, known);
    const count =
      (this.created.get(of.name) ?? 0) +
      earlier.filter((other) => other.of === of && other.previous === 0).length;
    if (previous === 0) {
      if (number === count + 1 || (number > count && !this.#lost.isEmpty)) return [];
      return [
        number <= count
          ? `${id} was there already`
          : `the next new one is ${formatId(of, count + 1)}, not ${id}`,
      ];
    }
    if (known?.position === previous || this.#lost.has(previous)) return [];
    return [
      known === undefined
        ? `${id} was never made`
        : `${id} was written before by row ${known.position}, not ${previous}`,
    ];
  }

  /** Where rows in between are not shown, a write may follow one that is not there. New ids still only grow. */
  #faultInPart({ of, id, number, previous }: ReadEffect, known: LastWrite | undefined): string[] {
    if (previous === 0) return number <= (this.created.get(of.name) ?? 0) ? [`${id} was there already`] : [];
    if (known === undefined || previous >= known.position) return [];
    return [`${id} was written before by row ${known.position}, not ${previous}`];
  }
}
