import type { Clock } from '../../clock.ts';
import { parseId, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import { isText, members } from '../../verify/sources/forms.ts';
import {
  CALLS_PAGE,
  type CallQuery,
  idIn,
  isFound,
  isInPeriod,
  isWanted,
  searchedCall,
  wordsOf,
} from '../filter.ts';
import { callsAt, callsBetween, type ToldCall, tellCalls, withTexts } from '../past-calls.ts';

const WINDOW_ROWS = 1_000;
/** A question reads on for so long and then says where it stopped. */
const READ_MS_MAX = 400;

/** A page of the trail: the exit rows of calls, and where to go on. */
interface TrailPage {
  readonly exits: readonly number[];
  readonly next?: number;
}

/**
 * The calls that a reader wants, a page of them. Where few match, it reads some of the log and says how far it came: a
 * question never takes as long as the log is.
 */
export async function readTrail(tx: Reader, query: CallQuery, rows: number, clock: Pick<Clock, 'monotonic'>) {
  const id = idIn(query);
  if (id !== undefined) return await readSubject(tx, query, id);
  const words = wordsOf(query);
  const began = clock.monotonic();
  const exits: number[] = [];
  const { newestFirst } = query;
  let at = await beginning(tx, query, rows);
  while (at >= 1 && at <= rows) {
    const [first, last] = newestFirst
      ? [Math.max(1, at - WINDOW_ROWS + 1), at]
      : [at, Math.min(rows, at + WINDOW_ROWS - 1)];
    const past = await callsBetween(tx, first, last);
    const found = await tellCalls(tx, words.length > 0 ? await withTexts(tx, past) : past);
    if (newestFirst) found.reverse();
    for (const call of found) {
      if (isBehind(call, query)) return { exits };
      if (isWanted(call, query) && (words.length === 0 || isFound(searchedCall(call), words)))
        exits.push(call.exit);
      if (exits.length === CALLS_PAGE) return page(exits, call.exit, query, rows);
    }
    at = newestFirst ? first - 1 : last + 1;
    if (clock.monotonic() - began > READ_MS_MAX) return page(exits, newestFirst ? first : last, query, rows);
  }
  return { exits };
}

function page(exits: readonly number[], last: number, { newestFirst }: CallQuery, rows: number): TrailPage {
  const isEnd = newestFirst ? last <= 1 : last >= rows;
  return isEnd ? { exits } : { exits, next: last };
}

/** Whether the period has ended, as one goes through the log. */
function isBehind({ at }: ToldCall, { since, until, newestFirst }: CallQuery): boolean {
  const isOutside = newestFirst
    ? !isInPeriod(at, { since, until: '' })
    : !isInPeriod(at, { since: '', until });
  return at !== '' && isOutside;
}

/** The first row to look at: behind the last page, or where the period begins. Times go up with the rows. */
async function beginning(tx: Reader, query: CallQuery, rows: number): Promise<number> {
  const { after, newestFirst, since, until } = query;
  if (after > 0) return newestFirst ? after - 1 : after + 1;
  const day = newestFirst ? until : since;
  if (day === '') return newestFirst ? rows : 1;
  // The last row that is before the day, or on it.
  let [low, high] = [0, rows];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const row = await tx.get<{ text: string }>('SELECT text FROM actions WHERE position = ?', middle);
    const { at } = members(row?.text);
    const isBefore = isText(at) && (newestFirst ? at.slice(0, 10) <= day : at.slice(0, 10) < day);
    if (isBefore) low = middle;
    else high = middle - 1;
  }
  return newestFirst ? low : low + 1;
}

/** The calls about one record, found by its rows of state. */
async function readSubject(tx: Reader, query: CallQuery, id: string): Promise<TrailPage> {
  const { after, newestFirst } = query;
  const [task, thought, session] = [parseId(TASKS, id), parseId(THOUGHTS, id), parseId(SESSIONS, id)];
  const [from, number] =
    task !== undefined
      ? ['SELECT position FROM task_calls WHERE task_id = ?', task]
      : thought !== undefined
        ? ['SELECT position FROM thoughts WHERE id = ?', thought]
        : session !== undefined
          ? [
              'SELECT position FROM session_records WHERE session_id = ? UNION SELECT position FROM sessions WHERE id = ?',
              session,
            ]
          : ['SELECT position FROM actions WHERE position = ?', Number(id.slice(1))];
  const [order, compare, start] = newestFirst ? ['DESC', '<', Number.MAX_SAFE_INTEGER] : ['ASC', '>', 0];
  const found = await tx.all<{ position: number }>(
    `SELECT position FROM (${from}) AS own WHERE position ${compare} ? ORDER BY position ${order} LIMIT ?`,
    ...(session === undefined ? [number] : [number, number]),
    after === 0 ? start : after,
    CALLS_PAGE,
  );
  const positions = found.map(({ position }) => position);
  const calls = await tellCalls(tx, await callsAt(tx, positions));
  const wanted = new Set(calls.filter((call) => isWanted(call, query)).map(({ exit }) => exit));
  const last = positions.at(-1);
  const exits = positions.filter((position) => wanted.has(position));
  return positions.length < CALLS_PAGE || last === undefined ? { exits } : { exits, next: last };
}
