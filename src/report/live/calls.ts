import { parseId, TASKS } from '../../log/tables.ts';
import { ERASED } from '../../log/texts.ts';
import type { Reader } from '../../storage/engine.ts';
import { type JsonObject, objectIn } from '../../verify/rules/payloads.ts';
import { Cells } from '../../verify/sources/database-cells.ts';
import { isPosition, isText, members } from '../../verify/sources/forms.ts';
import { tellCall, textFields } from '../telling.ts';

/** A call that has ended, as its exit row tells it. Anybody may have changed the file: any field may be anything. */
export type EndedCall = Awaited<ReturnType<typeof readCalls>>[number];

const WITH_PAYLOAD = `SELECT a.position, a.text, p.body FROM actions a
  LEFT JOIN action_payloads p ON p.position = a.position WHERE a.position`;

/** The audit rows from one position to another, both included, in order. */
export async function rowsBetween(tx: Reader, first: number, last: number): Promise<EndedRow[]> {
  const rows = await tx.lists(`${WITH_PAYLOAD} BETWEEN ? AND ? ORDER BY a.position`, first, last);
  return rows.flatMap(([position, text, body]) => endedRow(position, text, body));
}

/** The audit rows at these positions, in order. */
export async function rowsAt(tx: Reader, positions: readonly number[]): Promise<EndedRow[]> {
  const rows = await new Cells(tx).among('actions', WITH_PAYLOAD, positions);
  return rows
    .flatMap(([position, text, body]) => endedRow(position, text, body))
    .sort((a, b) => a.exit - b.exit);
}

interface EndedRow {
  readonly exit: number;
  readonly row: JsonObject;
  readonly result: JsonObject;
}

function endedRow(position: unknown, text: unknown, body: unknown): EndedRow[] {
  const row = members(isText(text) ? text : undefined);
  if (!isPosition(position) || row.stage === 'enter') return [];
  return [{ exit: position, row, result: objectIn(members(isText(body) ? body : undefined).result) ?? {} }];
}

/** The calls that these exit rows end, told in words. `withTexts` puts the texts back that their arguments hold. */
export async function readCalls(tx: Reader, rows: readonly EndedRow[], withTexts = false) {
  const cells = new Cells(tx);
  const enters = rows.map(({ row }) => row.sequence_no).filter(isPosition);
  const select = 'SELECT position, body FROM action_payloads WHERE position';
  const bodies = new Map(await entries(cells, 'action_payloads', select, enters));
  const read = rows.map((one) => ({ ...one, args: members(textIn(bodies.get(one.row.sequence_no))) }));
  const digests = withTexts
    ? read.flatMap(({ row, args }) => textFields(row, args).map((field) => args[field]))
    : [];
  const texts = await cells.texts(digests.filter(isText));
  const told = read.map(({ exit, row, result, args }) => {
    const said = textFields(row, args).map((field) => [
      field,
      texts.get(String(args[field]))?.text ?? ERASED,
    ]);
    const position = isPosition(row.sequence_no) ? row.sequence_no : exit;
    const call = tellCall({ row, args: { ...args, ...Object.fromEntries(said) }, result });
    return { ...call, position, exit };
  });
  const numbers = told.flatMap(({ task }) => parseId(TASKS, task) ?? []);
  const projects = new Map(
    await entries(cells, 'tasks', 'SELECT id, project FROM tasks WHERE id', [...new Set(numbers)]),
  );
  return told.map((call) => ({
    ...call,
    project: textIn(projects.get(parseId(TASKS, call.task) ?? 0)) ?? '',
  }));
}

async function entries(cells: Cells, table: string, select: string, values: readonly number[]) {
  const rows = await cells.among(table, select, values);
  return rows.map(([key, value]) => [key as unknown, value as unknown] as const);
}

function textIn(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}
