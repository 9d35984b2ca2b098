import { sha256Hex } from '../../integrity/digest.ts';
import { formatId, SESSIONS, type StateTable } from '../../log/tables.ts';
import { type Report, rowFinding } from '../finding.ts';
import type { Memory } from '../memory.ts';
import { type JsonObject, parseBody } from './payloads.ts';
import type { ReadEffect, ReadRow } from './row-form.ts';

/**
 * Whether these effects can be what a call did, after what earlier ones wrote: ids count from 1 without gaps; each effect
 * names the one before it on the same row; a row of an append-only table has one.
 */
export function checkEffects(exit: CallEffects, memory: Memory, report: Report): boolean {
  const { position, effects } = exit;
  const faults: string[] = [];
  const earlier = effects.length > 1 ? { ids: new Set<string>(), made: new Map() } : NONE;
  for (const effect of effects) {
    const fault = faultOf(exit, effect, earlier, memory);
    if (fault !== undefined) faults.push(fault);
    if (earlier === NONE) continue;
    earlier.ids.add(effect.id);
    if (effect.previous === 0) earlier.made.set(effect.of, (earlier.made.get(effect.of) ?? 0) + 1);
  }
  if (faults.length === 0) return true;
  const message = `Audit row ${position} cannot have written what it says: ${faults.join('; ')}.`;
  report(rowFinding('forbidden', position, message, { columns: ['effects'] }));
  return false;
}

type CallEffects = Pick<ReadRow, 'position' | 'tool' | 'effects'>;

/** The effects of the same call that were looked at: their ids, and how many rows of each table they made. */
type Earlier = { readonly ids: Set<string>; readonly made: Map<StateTable, number> };

/** Of a call with one effect, as most are. Stays empty. */
const NONE: Earlier = { ids: new Set(), made: new Map() };

function faultOf(
  { position, tool }: CallEffects,
  { of, id, number, previous, seal }: ReadEffect,
  earlier: Earlier,
  memory: Memory,
): string | undefined {
  if (earlier.ids.has(id)) return `${id} is named twice`;
  if (seal !== undefined && (of !== SESSIONS || tool !== 'merkle_finalize')) return `${id} has a seal`;
  if (previous >= position) return `${id} was written before by row ${previous}, which comes later`;
  if (of.appendOnly && previous !== 0) return `${id} is written a second time`;
  if (previous === 0) {
    const count = (memory.created.get(of.name) ?? 0) + (earlier.made.get(of) ?? 0);
    if (number <= count) return `${id} was there already`;
    // Where rows in between are not shown, or are lost, others may have been made.
    if (number === count + 1 || !memory.isStrict) return undefined;
    return `the next new one is ${formatId(of, count + 1)}, not ${id}`;
  }
  const last = memory.entriesOf(of)?.get(number)?.last ?? 0;
  if (last === previous || memory.mayHaveMissed(previous, last)) return undefined;
  return last === 0 ? `${id} was never made` : `${id} was written before by row ${last}, not ${previous}`;
}

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
