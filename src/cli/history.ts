import type { AuditRow } from '../log/row.ts';
import type { Reader } from '../storage/engine.ts';

/** One call as its two rows and what lies beside them tell it. */
export interface PastCall {
  readonly position: number;
  readonly row: AuditRow;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: Readonly<Record<string, unknown>>;
}

const PAGE = 500;

const CALLS = `SELECT a.position, a.text, p.body AS args, r.body AS result FROM actions a
  LEFT JOIN action_payloads p ON p.position = a.sequence_no
  LEFT JOIN action_payloads r ON r.position = a.position`;

interface Found {
  readonly position: number;
  readonly text: string;
  readonly args: string | null;
  readonly result: string | null;
}

/** The newest calls that `wanted` takes, oldest first. Reads backwards and stops early. */
export async function newestCalls(
  tx: Reader,
  wanted: (call: PastCall) => boolean,
  limit: number,
): Promise<PastCall[]> {
  const taken: PastCall[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  while (taken.length < limit) {
    const page = await tx.all<Found>(
      `${CALLS} WHERE a.position < ? AND a.stage = 'exit' ORDER BY a.position DESC LIMIT ?`,
      before,
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

/** Whether a call was about this task, thought or session, by what it was given, answered or wrote. */
export function concerns(call: PastCall, id: string): boolean {
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
      args: parseObject(found.args),
      result: parseObject(found.result),
    };
  } catch {
    return undefined;
  }
}

function parseObject(text: string | null): Record<string, unknown> {
  const value: unknown = text === null ? {} : JSON.parse(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
