import { RULES } from '../domains/rules.ts';
import { type AuditRow, parseAuditText } from '../log/row.ts';
import { parseId, SESSIONS } from '../log/tables.ts';
import { ERASED, readTexts } from '../log/texts.ts';
import type { Reader } from '../storage/engine.ts';

/** One call, as its two rows and their payloads tell it. */
export interface PastCall {
  /** Of its exit row. */
  readonly position: number;
  /** Of its enter row; undefined where that row is gone. */
  readonly entered: number | undefined;
  readonly row: AuditRow;
  /** As the caller gave them: each text is back in the place of its digest. */
  readonly args: Fields;
  readonly result: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

const PAGE = 500;

const CALLS = `SELECT a.position, a.text, r.body, e.position AS entered, p.body AS enter_body
  FROM actions a
  LEFT JOIN actions e ON e.position = a.sequence_no AND e.position <> a.position
  LEFT JOIN action_payloads p ON p.position = a.sequence_no
  LEFT JOIN action_payloads r ON r.position = a.position`;

interface Found {
  readonly position: number;
  readonly text: string;
  readonly body: string | null;
  readonly entered: number | null;
  readonly enter_body: string | null;
}

/** The row, the arguments or the result of a call that concerns a task or a thought hold its id as a JSON text. */
const MENTIONS = '(instr(a.text, ?) > 0 OR instr(p.body, ?) > 0 OR instr(r.body, ?) > 0)';

/**
 * The newest calls that `wanted` takes, oldest first. Reads backwards and stops early. Where all of them must mention an
 * id, the database passes over the others: parsing each takes three times as long.
 */
export async function newestCalls(
  tx: Reader,
  wanted: Filter,
  limit: number,
  id?: string,
): Promise<PastCall[]> {
  const mention = id === undefined ? [] : Array<string>(3).fill(JSON.stringify(id));
  const where = `a.position < ? AND a.stage = 'exit' AND ${id === undefined ? '1' : MENTIONS}`;
  const taken: PastCall[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  while (taken.length < limit) {
    const page = await tx.all<Found>(
      `${CALLS} WHERE ${where} ORDER BY a.position DESC LIMIT ?`,
      before,
      ...mention,
      PAGE,
    );
    for (const found of page) {
      before = found.position;
      const call = readCall(found);
      if (call !== undefined && taken.length < limit && wanted(call)) taken.push(call);
    }
    if (page.length < PAGE) break;
  }
  return await withTexts(tx, taken.reverse());
}

/** The calls that ended after `position`, oldest first, and how far was read. */
export async function callsAfter(
  tx: Reader,
  position: number,
): Promise<{ readonly calls: PastCall[]; readonly through: number }> {
  const page = await tx.all<Found>(
    `${CALLS} WHERE a.position > ? AND a.stage = 'exit' ORDER BY a.position LIMIT ?`,
    position,
    PAGE,
  );
  return {
    calls: await withTexts(
      tx,
      page.flatMap((found) => readCall(found) ?? []),
    ),
    through: page.at(-1)?.position ?? position,
  };
}

/** The position of the last row. */
export async function newestPosition(tx: Reader): Promise<number> {
  return (
    (await tx.get<{ position: number | null }>('SELECT max(position) AS position FROM actions'))?.position ??
    0
  );
}

/** What --json prints of a call: what happened, not the rows it was read from. */
export function callData({ position, row, args, result }: PastCall): object {
  return { position, row, args, result };
}

export type Filter = (call: PastCall) => boolean;

/** Whether a call was about this task, thought or session; for a session also whether it made one of its records. */
export async function concerning(tx: Reader, id: string): Promise<Filter> {
  const session = parseId(SESSIONS, id);
  const records =
    session === undefined
      ? []
      : await tx.all<{ position: number }>(
          'SELECT position FROM session_records WHERE session_id = ?',
          session,
        );
  const positions = new Set(records.map(({ position }) => position));
  return (call) => positions.has(call.position) || names(call, id);
}

/** Whether its arguments, its result or its effects name this record. */
function names(call: PastCall, id: string): boolean {
  const named = [
    call.args.task_id,
    call.args.session_id,
    call.args.parent_id,
    call.result.task_id,
    call.result.session_id,
    call.result.thought_id,
  ];
  return named.includes(id) || call.row.effects.some((effect) => effect.id === id);
}

/** Whether a call reads only: a tool without a rule does not write. */
export function isReading({ rules, tool }: AuditRow): boolean {
  const known = RULES[rules];
  return known !== undefined && !Object.hasOwn(known, tool);
}

/** Puts the texts back into the arguments, or says that they were erased. */
async function withTexts(tx: Reader, calls: readonly PastCall[]): Promise<PastCall[]> {
  const digests = calls.flatMap((call) => textFields(call).map((field) => String(call.args[field])));
  const texts = await readTexts(tx, digests);
  return calls.map((call) => {
    const given = textFields(call).map((field) => [field, texts.get(String(call.args[field])) ?? ERASED]);
    return { ...call, args: { ...call.args, ...Object.fromEntries(given) } };
  });
}

function textFields({ row, args }: PastCall): string[] {
  const fields = RULES[row.rules]?.[row.tool]?.texts ?? [];
  return fields.filter((field) => typeof args[field] === 'string');
}

/** A row that cannot be read is left out: naming it is the verifier's task. */
function readCall({ position, text, body, entered, enter_body }: Found): PastCall | undefined {
  try {
    const { result } = objectIn(body);
    return {
      position,
      entered: entered ?? undefined,
      row: parseAuditText(text),
      args: objectIn(enter_body),
      result: isObject(result) ? result : {},
    };
  } catch {
    return undefined;
  }
}

function objectIn(text: string | null): Fields {
  const value: unknown = text === null ? {} : JSON.parse(text);
  return isObject(value) ? value : {};
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
