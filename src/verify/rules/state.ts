import { sha256Hex } from '../../integrity/digest.ts';
import type { StateTable } from '../../log/tables.ts';
import type { Report } from '../finding.ts';
import { type JsonObject, parseBody } from './payloads.ts';

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
