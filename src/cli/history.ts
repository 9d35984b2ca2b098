import { UNSAID } from '../log/row.ts';
import { parseId, SESSIONS } from '../log/tables.ts';
import { ERASED, readTexts } from '../log/texts.ts';
import { textFields } from '../report/telling.ts';
import type { Dialect, Reader } from '../storage/engine.ts';
import { type JsonObject, objectIn } from '../verify/rules/payloads.ts';
import { isText, members } from '../verify/sources/forms.ts';
import { effectsOf } from '../verify/sources/rows.ts';

/** One call, as its two rows and their payloads tell it. Anybody may have changed the file: any field may be anything. */
export type PastCall = Readonly<ReturnType<typeof readCall>>;

export type Filter = (call: PastCall) => boolean;

const PAGE = 500;

/** A row that is damaged may have ended a call. The columns of one that is not JSON are NULL. */
const CALLS = `SELECT a.position, a.text, r.body, p.body AS enter_body
  FROM audit_rows a
  LEFT JOIN action_payloads p ON p.position = a.sequence_no
  LEFT JOIN action_payloads r ON r.position = a.position
  WHERE a.stage IS DISTINCT FROM 'enter'`;

type Found = Readonly<{ position: number; text: string } & Record<'body' | 'enter_body', string | null>>;

/** The row, the arguments or the result of a call that concerns a task or a thought hold its id as a JSON text. */
const mentions = ({ contains }: Dialect) =>
  `AND (${contains('a.text')} OR ${contains('p.body')} OR ${contains('r.body')})`;

/**
 * The newest calls that `wanted` takes, oldest first. Reads backwards and stops early. Where all of them must mention an
 * id, the database passes over the others: parsing each takes three times as long.
 */
export async function newestCalls(tx: Reader, wanted: Filter, limit: number, id?: string) {
  const mention = id === undefined ? [] : Array<string>(3).fill(JSON.stringify(id));
  const sql = `${CALLS} AND a.position < ? ${id === undefined ? '' : mentions(tx.dialect)} ORDER BY a.position DESC LIMIT ?`;
  const taken: PastCall[] = [];
  for (let before = Number.MAX_SAFE_INTEGER; taken.length < limit; ) {
    const page = await tx.all<Found>(sql, before, ...mention, PAGE);
    taken.push(...page.map(readCall).filter(wanted));
    before = page.at(-1)?.position ?? 0;
    if (page.length < PAGE) break;
  }
  return await withTexts(tx, taken.slice(0, limit).reverse());
}

/** The calls after `position` that `wanted` takes, oldest first, and how far was read. */
export async function callsAfter(tx: Reader, wanted: Filter, position: number) {
  const sql = `${CALLS} AND a.position > ? ORDER BY a.position LIMIT ?`;
  const page = await tx.all<Found>(sql, position, PAGE);
  const calls = await withTexts(tx, page.map(readCall).filter(wanted));
  return { calls, through: page.at(-1)?.position ?? position };
}

/** Whether a call was about this task, thought or session; for a session also whether it made one of its records. */
export async function concerning(tx: Reader, id: string): Promise<Filter> {
  const sql = 'SELECT position FROM session_records WHERE session_id = ?';
  const records = await tx.all<{ position: number }>(sql, parseId(SESSIONS, id) ?? null);
  const positions = new Set(records.map(({ position }) => position));
  return ({ position, args, result, row }) =>
    positions.has(position) ||
    [args.task_id, args.session_id, args.parent_id, args.record].includes(id) ||
    [result.task_id, result.session_id, result.thought_id].includes(id) ||
    effectsOf(row).some((effect) => effect.id === id);
}

/** Puts the texts back into the arguments. */
async function withTexts(tx: Reader, calls: readonly PastCall[]) {
  const parts = calls.map(({ row, args }) => [args, textFields(row, args)] as const);
  const restored = await restoreTexts(tx, parts);
  return calls.map((call, i) => ({ ...call, args: restored[i] ?? {} }));
}

/** Puts the text of each of these fields in the place of its digest, or says that it was erased. */
export async function restoreTexts(
  tx: Reader,
  parts: readonly (readonly [fields: JsonObject, names: readonly string[]])[],
): Promise<JsonObject[]> {
  const digests = parts.flatMap(([fields, names]) => names.map((name) => fields[name]).filter(isText));
  const texts = await readTexts(tx, digests);
  return parts.map(([fields, names]) => {
    const given = names.filter((name) => isText(fields[name]));
    const restored = given.map((name) => [name, texts.get(String(fields[name])) ?? ERASED]);
    return { ...fields, ...Object.fromEntries(restored) };
  });
}

/** `position` is that of the exit row. Texts in `args` are digests until `withTexts`. */
function readCall({ position, text, body, enter_body }: Found) {
  const row: JsonObject = { ...UNSAID, ...members(text) };
  const result = objectIn(members(body ?? undefined).result) ?? {};
  const args: JsonObject = members(enter_body ?? undefined);
  return { position, row, args, result };
}
