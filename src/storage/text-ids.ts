// A text is stored under a number that follows from the call that carried it, so that texts lie in the order of the calls
// and need no index on their digests, which are random. Every engine stores these numbers: they can never change.

/** How many numbers each call has for its texts. */
const ROOM = 8;

/** A text by the position of the enter row of the call that carried it, and by its digest. */
export interface NamedText {
  readonly call: number;
  readonly digest: string;
}

/** The id of a text. `number` counts the texts of its call from 0. */
export function textId(call: number, number: number): number {
  return ROOM * call + number;
}

/** The call that carried the text with this id. */
export function callOfText(id: number): number {
  return Math.floor(id / ROOM);
}

/** Every id that a text of this call can have, in order. */
export function textIdsOf(call: number): number[] {
  return Array.from({ length: ROOM }, (_, number) => textId(call, number));
}

/** No call is at a position as high as this: its ids would not be exact numbers. */
const CALLS_MAX = 2 ** 50;

/** A call fills its numbers from the first on: behind its own texts, only somebody else can have put one with the same digest. */
export const OF_TWO = 'ORDER BY texts.id LIMIT 1';

/** Whether a row of `texts` is the text that two columns name, in SQL. Hostile input enters here: a forged call must not overflow. */
export function isNamed(call: string, digest: string): string {
  const first = `${ROOM} * (${call} % ${CALLS_MAX})`;
  return `texts.id BETWEEN ${first} AND ${first} + ${ROOM - 1} AND texts.digest = ${digest}`;
}

/** The text that two columns name, in SQL; '' where there is none. For a join, SQLite would make an index of all texts. */
export function namedText(call: string, digest: string): string {
  return `coalesce((SELECT texts.text FROM texts WHERE ${isNamed(call, digest)} ${OF_TWO}), '')`;
}
