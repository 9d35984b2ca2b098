import { sha256Hex } from '../../integrity/digest.ts';
import type { AuditRow } from '../../log/row.ts';
import { formatId, SESSIONS, STATE_TABLES, type StateTable, type StateTableName } from '../../log/tables.ts';
import { type Report, rowFinding } from '../finding.ts';
import { ownText } from '../own-text.ts';
import type { LostRows } from './links.ts';
import { type JsonObject, parseBody } from './payloads.ts';
import type { ReadEffect } from './row-form.ts';

/**
 * Which call wrote which row of state last. Ids count from 1 without gaps; each effect names the one before it on the
 * same row; a row of an append-only table has one. Only rows that can change are remembered.
 */
export class Writes {
  readonly created = new Map<StateTableName, number>();
  /** The position that wrote each row last. */
  readonly #last = new Map<StateTableName, Map<number, number>>(
    STATE_TABLES.map((table) => [table.name, new Map()]),
  );
  /** By id, the hashes of rows that the rules do not explain. Of the others the row itself is known. */
  readonly #hashes = new Map<string, string>();
  readonly #whole: boolean;
  readonly #lost: LostRows;
  readonly #report: Report;

  constructor(whole: boolean, lost: LostRows, report: Report) {
    this.#whole = whole;
    this.#lost = lost;
    this.#report = report;
  }

  /** The rows of a table that can change, each with the position of its last write. */
  lastOf(table: StateTable): ReadonlyMap<number, number> {
    return this.#last.get(table.name) ?? new Map();
  }

  hashOf(id: string): string | undefined {
    return this.#hashes.get(id);
  }

  /** Answers whether these effects can be what a call did. */
  check({ position, tool, effects }: CallEffects): boolean {
    const faults: string[] = [];
    const earlier = effects.length > 1 ? { ids: new Set<string>(), made: new Map() } : NONE;
    for (const effect of effects) {
      const fault = this.#faultOf(position, tool, effect, earlier);
      if (fault !== undefined) faults.push(fault);
      if (earlier === NONE) continue;
      earlier.ids.add(effect.id);
      if (effect.previous === 0) earlier.made.set(effect.of, (earlier.made.get(effect.of) ?? 0) + 1);
    }
    if (faults.length === 0) return true;
    const message = `Audit row ${position} cannot have written what it says: ${faults.join('; ')}.`;
    this.#report(rowFinding('forbidden', position, message, { columns: ['effects'] }));
    return false;
  }

  /** Takes in the effects of one call. */
  take({ position, effects }: CallEffects, areExplained: boolean): void {
    for (const { of, id, number, hash } of effects) {
      if (number > (this.created.get(of.name) ?? 0)) this.created.set(of.name, number);
      if (of.appendOnly) continue;
      this.#last.get(of.name)?.set(number, position);
      if (!areExplained) this.#hashes.set(ownText(id), ownText(hash));
      else if (this.#hashes.size > 0) this.#hashes.delete(id);
    }
  }

  #faultOf(
    position: number,
    tool: string,
    { of, id, number, previous, seal }: ReadEffect,
    earlier: Earlier,
  ): string | undefined {
    if (earlier.ids.has(id)) return `${id} is named twice`;
    if (seal !== undefined && (of !== SESSIONS || tool !== 'merkle_finalize')) return `${id} has a seal`;
    if (previous >= position) return `${id} was written before by row ${previous}, which comes later`;
    if (of.appendOnly && previous !== 0) return `${id} is written a second time`;
    const made = this.created.get(of.name) ?? 0;
    if (previous === 0) {
      const count = made + (earlier.made.get(of) ?? 0);
      if (number <= count) return `${id} was there already`;
      // Where rows in between are not shown, or are lost, others may have been made.
      if (number === count + 1 || !this.#whole || !this.#lost.isEmpty) return undefined;
      return `the next new one is ${formatId(of, count + 1)}, not ${id}`;
    }
    const known = this.#last.get(of.name)?.get(number);
    if (known === previous) return undefined;
    if (this.#whole ? this.#lost.has(previous) : known === undefined || previous > known) return undefined;
    return known === undefined
      ? `${id} was never made`
      : `${id} was written before by row ${known}, not ${previous}`;
  }
}

/** The effects of the same call that were looked at: their ids, and how many rows of each table they made. */
type Earlier = { readonly ids: Set<string>; readonly made: Map<StateTable, number> };

/** Of a call with one effect, as most are. Stays empty. */
const NONE: Earlier = { ids: new Set(), made: new Map() };

type CallEffects = Pick<AuditRow, 'position' | 'tool'> & { readonly effects: readonly ReadEffect[] };

/** A row of state is as the last call that wrote it left it. `expected` is the row the rules gave, to name the columns. */
export function checkStateRow(
  { of, id, hash }: { readonly of: StateTable; readonly id: string; readonly hash: string },
  position: number,
  text: string | undefined,
  expected: object | undefined,
  report: Report,
): void {
  const base = { table: of.name, record: id, position };
  if (text === undefined) {
    const message = `${id} was written by audit row ${position} and is missing from ${of.name}.`;
    report({ ...base, kind: 'missing', message });
    return;
  }
  const actual = sha256Hex(text);
  if (actual === hash) return;
  const row = parseBody(text);
  const columns =
    row === undefined || expected === undefined ? [] : differingColumns(of, { ...expected }, row);
  const isOlder = typeof row?.position === 'number' && row.position < position;
  const what = columns.length === 0 ? 'one of its columns' : columns.join(', ');
  const message = `${id} is not as audit row ${position} left it: ${what} was changed.`;
  report({ ...base, kind: isOlder ? 'stale' : 'altered', columns, message, expected: hash, actual });
}

/** The facts in which two rows differ, by name. */
export function differingColumns({ facts }: StateTable, expected: JsonObject, actual: JsonObject): string[] {
  return facts.filter((column) => (expected[column] ?? null) !== (actual[column] ?? null));
}
