import { marks, shown } from '../domains/lookup.ts';
import { UNSAID } from '../log/row.ts';
import { formatId, parseId, SESSIONS, TASKS } from '../log/tables.ts';
import { ERASED, readTexts } from '../log/texts.ts';
import type { Dialect, Reader } from '../storage/engine.ts';
import type { NamedText } from '../storage/text-ids.ts';
import { type JsonObject, objectIn } from '../verify/rules/payloads.ts';
import { Cells } from '../verify/sources/database-cells.ts';
import { isPosition, isText, members } from '../verify/sources/forms.ts';
import { effectsOf } from '../verify/sources/rows.ts';
import { isWithin, type Period } from './glance.ts';
import { tellCall, textFields, textOf } from './telling.ts';

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
  `${contains('a.text')} OR ${contains('p.body')} OR ${contains('r.body')}`;

/** Calls that are counted beyond those that are shown: 20,000 rows take about 0.2 s. */
const COUNTED_ROWS_MAX = 20_000;

interface Wanted {
  readonly limit: number;
  /** Where all of them must mention one of these, the database passes over the others: parsing each takes three times as long. */
  readonly ids?: readonly string[] | undefined;
  /** Nothing earlier is wanted. */
  readonly since?: string;
}

/**
 * The newest calls that `wanted` takes, oldest first; how many more there are before them, and whether that is all. Reads
 * backwards and stops early.
 */
export async function newestCalls(tx: Reader, wanted: Filter, { limit, ids = [], since = '' }: Wanted) {
  const mention = ids.flatMap((id) => Array<string>(3).fill(JSON.stringify(id)));
  const mentioning = ids.map(() => mentions(tx.dialect)).join(' OR ');
  const sql = `${CALLS} AND a.position < ? ${ids.length === 0 ? '' : `AND (${mentioning})`} ORDER BY a.position DESC LIMIT ?`;
  const taken: PastCall[] = [];
  let [more, counted, before] = [0, 0, Number.MAX_SAFE_INTEGER];
  for (let isMore = true; isMore; ) {
    const page = (await tx.all<Found>(sql, before, ...mention, PAGE)).map(readCall);
    const matching = page.filter(wanted);
    const room = limit - taken.length;
    taken.push(...matching.slice(0, room));
    more += Math.max(0, matching.length - room);
    if (room <= matching.length) counted += page.length;
    before = page.at(-1)?.position ?? 0;
    // Times do not run backwards, but for a row whose clock was ahead: a whole page of earlier rows is the end.
    const isEarlier = page.every(({ row: { at } }) => isText(at) && at < since);
    isMore = page.length === PAGE && !isEarlier && counted < COUNTED_ROWS_MAX;
    if (!isMore && counted >= COUNTED_ROWS_MAX && page.length === PAGE)
      return { calls: await withTexts(tx, taken.reverse()), more, isAll: false };
  }
  return { calls: await withTexts(tx, taken.reverse()), more, isAll: true };
}

/** The calls that ended between two rows, both included, oldest first. */
export async function callsBetween(tx: Reader, first: number, last: number): Promise<PastCall[]> {
  const sql = `${CALLS} AND a.position BETWEEN ? AND ? ORDER BY a.position`;
  return (await tx.all<Found>(sql, first, last)).map(readCall);
}

/** The calls that ended at these rows, oldest first. */
export async function callsAt(tx: Reader, positions: readonly number[]): Promise<PastCall[]> {
  const sql = `${CALLS} AND a.position IN (${marks(positions)}) ORDER BY a.position`;
  return (await tx.all<Found>(sql, ...positions)).map(readCall);
}

/**
 * Every call of a period, the newest first, without its texts. A page of calls that are all earlier is the end: times do
 * not run backwards, but for a row whose clock was ahead.
 */
export async function* callsWithin(tx: Reader, period: Period): AsyncGenerator<PastCall> {
  const sql = `${CALLS} AND a.position < ? ORDER BY a.position DESC LIMIT ?`;
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = (await tx.all<Found>(sql, before, PAGE)).map(readCall);
    yield* page.filter(({ row: { at } }) => isWithin(period, at));
    before = page.at(-1)?.position ?? 0;
    if (page.length < PAGE || page.every(({ row: { at } }) => isText(at) && at < period.since)) return;
  }
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
  const [, ...sessions] = await namesOf(tx, id);
  return ({ position, args, result, row }) =>
    positions.has(position) ||
    (row.tool === 'merkle_finalize' && sessions.includes(String(args.session_id))) ||
    [args.task_id, args.session_id, args.parent_id, args.record].includes(id) ||
    [result.task_id, result.session_id, result.thought_id].includes(id) ||
    effectsOf(row).some((effect) => effect.id === id);
}

/** What a call about a record names: the record; of a task also its sessions, because a seal need not name more. */
export async function namesOf(tx: Reader, id: string): Promise<string[]> {
  const sql = 'SELECT id FROM sessions WHERE task_id = ? ORDER BY id DESC LIMIT ?';
  const sessions = await tx.all<{ id: number }>(sql, parseId(TASKS, id) ?? null, SESSIONS_MAX);
  return [id, ...sessions.map((session) => formatId(SESSIONS, session.id))];
}

/** Each makes the search longer, and hardly a task has more than one. */
const SESSIONS_MAX = 50;

/** The task of each session. */
export async function tasksOfSessions(tx: Reader): Promise<ReadonlyMap<string, string>> {
  const sql = 'SELECT id, task_id AS task FROM sessions';
  const rows = await tx.all<{ id: number; task: number }>(sql);
  return new Map(rows.map(({ id, task }) => [formatId(SESSIONS, id), formatId(TASKS, task)]));
}

export type ToldCall = Awaited<ReturnType<typeof tellCalls>>[number];

/**
 * The calls in words. The task is also that of the session which a call is about, and the project that of the task, or else
 * the one that the arguments name.
 */
export async function tellCalls(tx: Reader, calls: readonly PastCall[]) {
  const told = calls.map(tellCall);
  const alone = told.some(({ task, session }) => task === '' && session !== '');
  const sessions = alone ? await tasksOfSessions(tx) : new Map<string, string>();
  const subjects = told.map(({ task, session }) => task || (sessions.get(session) ?? ''));
  const tasks = await tasksAmong(tx, subjects);
  return calls.map(({ position: exit, row: { sequence_no }, args }, i) => {
    const [one, task = ''] = [told[i] as ReturnType<typeof tellCall>, subjects[i]];
    const { title, project = textOf(args.project) } = tasks.get(task) ?? {};
    return { ...one, position: isPosition(sequence_no) ? sequence_no : exit, exit, task, title, project };
  });
}

/** These tasks by id, as far as they are there: what each is called and which project it belongs to. */
async function tasksAmong(tx: Reader, ids: readonly string[]) {
  const numbers = [...new Set(ids.flatMap((id) => parseId(TASKS, id) ?? []))];
  const sql = `SELECT id, ${shown(TASKS, 'title')}, project FROM tasks WHERE id`;
  const rows = await new Cells(tx).among('tasks', sql, numbers);
  return new Map(
    rows.map(([id, title, project]) => [
      formatId(TASKS, Number(id)),
      { title: textOf(title), project: textOf(project) },
    ]),
  );
}

/** Puts the texts back into the arguments. */
export async function withTexts(tx: Reader, calls: readonly PastCall[]) {
  const restored = await restoreTexts(
    tx,
    calls.map(({ row, args }) => [args, textFields(row, args), () => row.sequence_no]),
  );
  return calls.map((call, i) => ({ ...call, args: restored[i] ?? {} }));
}

/** Puts the text of each of these fields in the place of its digest, or says that it was erased. */
export async function restoreTexts(
  tx: Reader,
  parts: readonly (readonly [
    fields: JsonObject,
    names: readonly string[],
    callOf: (name: string) => unknown,
  ])[],
): Promise<JsonObject[]> {
  const named = parts.flatMap(([fields, names, callOf]) =>
    names.map((name) => ({ call: callOf(name), digest: fields[name] })).filter(isNamed),
  );
  const texts = await readTexts(tx, named);
  return parts.map(([fields, names]) => {
    const given = names.filter((name) => isText(fields[name]));
    const restored = given.map((name) => [name, texts.get(String(fields[name])) ?? ERASED]);
    return { ...fields, ...Object.fromEntries(restored) };
  });
}

function isNamed(text: { readonly [K in keyof NamedText]: unknown }): text is NamedText {
  return isPosition(text.call) && isText(text.digest);
}

/** `position` is that of the exit row. Texts in `args` are digests until `withTexts`. */
function readCall({ position, text, body, enter_body }: Found) {
  const row: JsonObject = { ...UNSAID, ...members(text) };
  const end = members(body ?? undefined);
  const [result = {}, error, outside] = [end.result, end.error, end.outside].map(objectIn);
  const args: JsonObject = members(enter_body ?? undefined);
  return { position, row, args, result, error, outside };
}
