import { parseId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import { isObject, type JsonObject } from '../rules/payloads.ts';
import type { Source, SourceRow } from '../source.ts';
import type { LinePage } from './files.ts';
import { type PayloadLine, readPayload } from './forms.ts';

/** Rows that are handed on together. */
const PAGE_ROWS = 1_000;

/** How many rows ahead are asked whether they count on. */
const AHEAD = 8;

/** The rows of a whole log, each with its payload and its position. `extra` is told of lines that are rows too many. */
export async function* numberedRows(
  log: AsyncIterable<LinePage>,
  payloads: PayloadCursor,
  extra: (after: number) => void,
): AsyncGenerator<readonly SourceRow[]> {
  let last = 0;
  let lines: (string | undefined)[] = [];
  const take = async (until: number): Promise<SourceRow[]> => {
    const claims = lines.map(claimedPosition);
    const rows: SourceRow[] = [];
    for (const [i, text] of lines.slice(0, until).entries()) {
      const position = positionOf(claims, i, last + 1);
      if (position === undefined) {
        extra(last);
        continue;
      }
      last = position;
      const payload = await payloads.take(position);
      rows.push({ position, text, ...(payload !== undefined && { payload }) });
    }
    lines = lines.slice(until);
    return rows;
  };
  for await (const page of log) {
    for (const line of page) lines.push(line);
    if (lines.length >= PAGE_ROWS + AHEAD) yield await take(lines.length - AHEAD);
  }
  if (lines.length > 0) yield await take(lines.length);
  await payloads.finish();
}

/**
 * The position of the row in line `i`, where `due` comes next. A file has no column for it, as a table has, so the lines
 * ahead decide: where they count on behind this one, it is in its place, whatever it says; where the one that is due is
 * among them, this one is too many (undefined); else the rows before it are missing.
 */
function positionOf(claims: readonly (number | undefined)[], i: number, due: number): number | undefined {
  const claim = claims[i];
  if (claim === due) return due;
  for (let ahead = 1; ahead <= AHEAD; ahead += 1) if (claims[i + ahead] === due + ahead) return due;
  for (let ahead = 1; ahead <= AHEAD; ahead += 1) if (claims[i + ahead] === due) return undefined;
  return claim !== undefined && claim > due ? claim : due;
}

// The names of a row stand in order, and none before this one nests a position.
const POSITION = /,"position":(\d{1,15}),/;

/** The position that the text of a row claims. */
export function claimedPosition(line: string | undefined): number | undefined {
  const digits = line === undefined ? undefined : POSITION.exec(line)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Payloads in step with the rows they lie beside, of which no more is held than that. Hostile input enters here. */
export class PayloadCursor {
  /** Payloads that belong to no row, by position. */
  readonly strays: number[] = [];
  /** Lines, counted from 1, that cannot be read or are misplaced. */
  readonly unreadable: number[] = [];
  readonly #pages: AsyncIterator<LinePage>;
  #ahead: PayloadLine[] = [];
  #next = 0;
  #line = 0;
  #last = 0;

  constructor(pages: AsyncIterable<LinePage>) {
    this.#pages = pages[Symbol.asyncIterator]();
  }

  /** The payload at a position, if there is one. Those before it belong to no row. */
  async take(position: number): Promise<{ readonly salt: string; readonly body: string } | undefined> {
    while (this.#last < position && (await this.#turn()));
    for (let payload = this.#ahead[this.#next]; payload !== undefined; payload = this.#ahead[this.#next]) {
      if (payload.position > position) return undefined;
      this.#next += 1;
      if (payload.position === position) return { salt: payload.salt, body: payload.body };
      this.strays.push(payload.position);
    }
    return undefined;
  }

  /** Whatever is left belongs to no row. */
  async finish(): Promise<void> {
    await this.take(Number.POSITIVE_INFINITY);
  }

  async #turn(): Promise<boolean> {
    const { done, value } = await this.#pages.next();
    this.#ahead = this.#ahead.slice(this.#next);
    this.#next = 0;
    if (done === true) this.#last = Number.POSITIVE_INFINITY;
    for (const line of done === true ? [] : value) {
      const payload = readPayload(line);
      this.#line += 1;
      if (payload === undefined || payload.position <= this.#last) this.unreadable.push(this.#line);
      else {
        this.#ahead.push(payload);
        this.#last = payload.position;
      }
    }
    return done !== true;
  }
}

/** The effects that a row names, as far as they are objects. */
export function effectsOf({ effects }: JsonObject): JsonObject[] {
  return Array.isArray(effects) ? effects.filter(isObject) : [];
}

/** The rows of state that effects name, as they are now. */
export async function statesNamed(source: Pick<Source, 'states'>, effects: readonly JsonObject[]) {
  const state = new Map<StateTable, ReadonlyMap<number, string>>();
  for (const table of STATE_TABLES) {
    const own = effects.filter((effect) => effect.table === table.name);
    const ids = new Set(own.flatMap(({ id }) => parseId(table, String(id)) ?? []));
    const sorted = [...ids].sort((a, b) => a - b);
    state.set(table, await source.states(table, sorted));
  }
  return state;
}
