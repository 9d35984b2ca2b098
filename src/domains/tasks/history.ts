import { LIMITS } from '../../limits.ts';
import type { AuditRow } from '../../log/row.ts';
import { formatId, TASKS } from '../../log/tables.ts';
import { ERASED, readTexts } from '../../log/texts.ts';
import type { Reader } from '../../storage/engine.ts';
import type { TaskRow } from '../facts.ts';
import { idsFrom, marks, numberFrom } from '../lookup.ts';
import { given } from '../records.ts';
import { RULES } from '../rules.ts';
import type { PastCall } from './schema.ts';

/**
 * The newest calls that wrote a task or were about it, refused ones included, newest first; and how many there are. What
 * wrote the task is found along the log itself, from each call to the one before it; the rest through an index.
 */
export async function readHistory(tx: Reader, task: Pick<TaskRow, 'id' | 'position'>) {
  const filed = await idsFrom(
    tx,
    `SELECT position AS id FROM (${FILED}) AS filed ORDER BY position DESC LIMIT ?`,
    ...[task.id, task.id, LIMITS.historyCallsMax],
  );
  const rows = await writesOf(tx, task);
  const positions = [...new Set([...filed, ...rows.keys()])]
    .sort((a, b) => b - a)
    .slice(0, LIMITS.historyCallsMax);
  for (const { position, text } of await rowsAt(tx, without(positions, rows)))
    rows.set(position, rowIn(text));
  const found = positions.flatMap((position) => rows.get(position) ?? []);
  const bodies = await bodiesAt(tx, [...positions, ...found.map(({ sequence_no }) => sequence_no)]);
  const count = await numberFrom(tx, `SELECT count(*) AS value FROM (${FILED}) AS filed`, task.id, task.id);
  const calls = found.map((row) => ({ row, args: bodies.get(row.sequence_no) ?? {} }));
  const texts = await readTexts(
    tx,
    calls.flatMap((call) =>
      textFields(call).map((field) => ({ call: call.row.sequence_no, digest: String(call.args[field]) })),
    ),
  );
  return {
    history: calls.map((call) => viewCall(call, bodies.get(call.row.position) ?? {}, texts)),
    history_total: Math.max(count, found.length),
  };
}

/** A seal need not name the task, only its session. */
const FILED = `SELECT position FROM task_calls WHERE task_id = ?
  UNION SELECT position FROM sessions WHERE task_id = ? AND status = 'finalized'`;

type Row = Pick<AuditRow, 'position' | 'sequence_no' | 'tool' | 'actor' | 'at' | 'rules' | 'outcome'> &
  Partial<Pick<AuditRow, 'error_code' | 'effects'>>;
type Body = Readonly<Record<string, unknown>>;
interface Told {
  readonly row: Row;
  readonly args: Body;
}

/** The exit rows of the calls that wrote a task, from the newest on. */
async function writesOf(tx: Reader, task: Pick<TaskRow, 'id' | 'position'>): Promise<Map<number, Row>> {
  const rows = new Map<number, Row>();
  const id = formatId(TASKS, task.id);
  for (let position = task.position; position > 0 && rows.size < LIMITS.historyCallsMax; ) {
    const [found] = await rowsAt(tx, [position]);
    if (found === undefined || rows.has(position)) break;
    const row = rowIn(found.text);
    rows.set(position, row);
    position = row.effects?.find((effect) => effect.table === TASKS.name && effect.id === id)?.previous ?? 0;
  }
  return rows;
}

function without(positions: readonly number[], known: ReadonlyMap<number, unknown>): readonly number[] {
  return positions.filter((position) => !known.has(position));
}

async function rowsAt(tx: Reader, positions: readonly number[]) {
  const sql = `SELECT position, text FROM actions WHERE position IN (${marks(positions)})`;
  return await tx.all<{ position: number; text: string }>(sql, ...positions);
}

function rowIn(text: string): Row {
  return JSON.parse(text) as Row;
}

async function bodiesAt(tx: Reader, positions: readonly number[]): Promise<ReadonlyMap<number, Body>> {
  const sql = `SELECT position, body FROM action_payloads WHERE position IN (${marks(positions)})`;
  const rows = await tx.all<{ position: number; body: string }>(sql, ...positions);
  return new Map(rows.map(({ position, body }) => [position, JSON.parse(body) as Body]));
}

/** The arguments that are kept as digests of texts. */
function textFields({ row, args }: Told): readonly string[] {
  return (RULES[row.rules]?.[row.tool]?.texts ?? []).filter((field) => typeof args[field] === 'string');
}

/** Texts are cut: the whole of them is in the task and in its trail. */
function viewCall(call: Told, { result, error }: Body, texts: ReadonlyMap<string, string>): PastCall {
  const { position, at, actor, tool, outcome } = call.row;
  const { task_id: _, ...args } = call.args;
  const shown = textFields(call).map((field) => [field, cut(texts.get(String(args[field])) ?? ERASED)]);
  const message = Reflect.get(Object(error), 'message');
  return {
    ...{ position, at, actor, tool, outcome },
    ...given(call.row, 'error_code'),
    ...(typeof message === 'string' && { message: cut(message) }),
    args: { ...args, ...Object.fromEntries(shown) },
    ...given(
      Object(result) as Pick<PastCall, 'previous_status' | 'taken_over_from'>,
      'previous_status',
      'taken_over_from',
    ),
  };
}

function cut(text: string): string {
  const max = LIMITS.historyTextCharsMax;
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()}…`;
}
