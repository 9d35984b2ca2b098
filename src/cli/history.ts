import type { AuditRow } from '../log/row.ts';
import { parseId } from '../log/state.ts';
import { SESSIONS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';

/** One call as its two rows and what lies beside them tell it. */
export interface PastCall {
  readonly position: number;
  readonly row: AuditRow;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: Readonly<Record<string, unknown>>;
  /** Undefined where the row is gone or cannot be read. */
  readonly enter: PastRow | undefined;
  readonly exit: PastRow;
}

/** A row as it is stored, for whoever wants to check it. */
export interface PastRow {
  readonly position: number;
  readonly text: string;
  readonly contentHash: string;
  /** What lies beside it, and the digest that the row has of it. */
  readonly payload: { readonly salt: string; readonly body: string } | undefined;
  readonly digest: string | null;
}

const PAGE = 500;

const CALLS = `SELECT a.position, a.text, a.content_hash, r.salt, r.body,
    e.position AS enter_position, e.text AS enter_text, e.content_hash AS enter_hash, p.salt AS enter_salt, p.body AS enter_body
  FROM actions a
  LEFT JOIN actions e ON e.position = a.sequence_no AND e.position <> a.position
  LEFT JOIN action_payloads p ON p.position = a.sequence_no
  LEFT JOIN action_payloads r ON r.position = a.position`;

interface Found {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly salt: string | null;
  readonly body: string | null;
  readonly enter_position: number | null;
  readonly enter_text: string | null;
  readonly enter_hash: string | null;
  readonly enter_salt: string | null;
  readonly enter_body: string | null;
}

/** A call that concerns a task or a thought has its id as a text of its own in its row, in what it was given or answered. */
const MENTIONS = '(instr(a.text, ?) > 0 OR instr(p.body, ?) > 0 OR instr(r.body, ?) > 0)';

/**
 * The newest calls that `wanted` takes, oldest first. Reads backwards and stops early. Where all of them must mention an
 * id, the database passes over the others: taking each apart takes three times as long.
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
  return taken.reverse();
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
    calls: page.flatMap((found) => readCall(found) ?? []),
    through: page.at(-1)?.position ?? position,
  };
}

/** How far the log goes now. */
export async function newestPosition(tx: Reader): Promise<number> {
  return (
    (await tx.get<{ position: number | null }>('SELECT max(position) AS position FROM actions'))?.position ??
    0
  );
}

/** What --json prints of a call: the story, not the rows it was read from. */
export function toldOf({ position, row, args, result }: PastCall): object {
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

/** By what it was given, answered or wrote. */
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

/** A row that cannot be read is the verifier's business, not the story's. */
function readCall(found: Found): PastCall | undefined {
  try {
    const row = JSON.parse(found.text) as AuditRow;
    return {
      position: found.position,
      row,
      args: parseObject(found.enter_body),
      result: parseObject(found.body),
      enter: readEnter(found),
      exit: {
        position: found.position,
        text: found.text,
        contentHash: found.content_hash,
        payload: payloadOf(found.salt, found.body),
        digest: row.result_hash,
      },
    };
  } catch {
    return undefined;
  }
}

function readEnter(found: Found): PastRow | undefined {
  const { enter_position, enter_text, enter_hash, enter_salt, enter_body } = found;
  if (enter_position === null || enter_text === null) return undefined;
  return {
    position: enter_position,
    text: enter_text,
    contentHash: enter_hash ?? '',
    payload: payloadOf(enter_salt, enter_body),
    digest: (JSON.parse(enter_text) as AuditRow).args_hash,
  };
}

function payloadOf(salt: string | null, body: string | null): PastRow['payload'] {
  return body === null ? undefined : { salt: salt ?? '', body };
}

function parseObject(text: string | null): Record<string, unknown> {
  const value: unknown = text === null ? {} : JSON.parse(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
