import { formatId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import type { Finding } from '../finding.ts';
import type { SourceText } from '../source.ts';
import { HeldLines } from './files.ts';
import { members, readText, STATE, TEXTS } from './forms.ts';

/** Canonical JSON begins a line of texts with its digest: `{"digest":"…`. */
const DIGEST_START = '{"digest":"'.length;
const DIGEST_CHARS = 64;

/** Texts in the order of their digests, in memory as they lie. Hostile input enters here. */
export class HeldTexts {
  readonly #lines: HeldLines;

  constructor(bytes: Uint8Array) {
    this.#lines = new HeldLines(bytes, TEXTS);
  }

  /** A line that is misplaced hides itself or others, and a second of one digest shows by their number. */
  find(digests: readonly string[]): ReadonlyMap<string, SourceText> {
    const found = new Map<string, SourceText>();
    for (const digest of digests) {
      const text = this.#get(digest);
      if (text !== undefined) found.set(digest, text);
    }
    return found;
  }

  get length(): number {
    return this.#lines.length;
  }

  /** What stands in the place of each digest. */
  *digests(): Generator<string> {
    for (let line = 0; line < this.#lines.length; line += 1) {
      const bytes = this.#lines.bytes(line).subarray(DIGEST_START, DIGEST_START + DIGEST_CHARS);
      yield String.fromCharCode(...bytes);
    }
  }

  #get(digest: string): SourceText | undefined {
    let [low, high] = [0, this.#lines.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.#compare(middle, digest);
      if (order === 0) {
        const found = readText(this.#lines.text(middle));
        return found?.digest === digest ? { salt: found.salt, text: found.text } : undefined;
      }
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return undefined;
  }

  #compare(line: number, digest: string): number {
    const bytes = this.#lines.bytes(line);
    for (let i = 0; i < DIGEST_CHARS; i += 1) {
      const difference = (bytes[DIGEST_START + i] ?? 0) - digest.charCodeAt(i);
      if (difference !== 0) return difference;
    }
    return 0;
  }
}

/** Rows of state, in memory as they lie. Hostile input enters here. */
export class HeldState {
  /** What is wrong with the lines themselves. */
  readonly faults: Finding[] = [];
  readonly #lines: HeldLines;
  /** Of each table the line of each id. */
  readonly #places = new Map<StateTable, Map<number, number>>(
    STATE_TABLES.map((table) => [table, new Map()]),
  );
  readonly #asked: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#lines = new HeldLines(bytes, STATE);
    this.#asked = new Uint8Array(this.#lines.length);
    let last = { index: 0, id: 0, name: 'the beginning' };
    for (let line = 0; line < this.#lines.length; line += 1) {
      const found = placeOf(this.#lines.text(line));
      if (found === undefined) {
        this.#fault('malformed', STATE, STATE, `The line behind ${last.name} is no row of state.`);
        continue;
      }
      const { table, id } = found;
      const index = STATE_TABLES.indexOf(table);
      const name = formatId(table, id);
      // Rows come by table and id: whatever does not go up is there twice or misplaced.
      if (index < last.index || (index === last.index && id <= last.id)) {
        this.#fault('stray', table.name, name, `${name} is there twice or misplaced.`);
        continue;
      }
      last = { index, id, name };
      this.#places.get(table)?.set(id, line);
    }
  }

  /** The exact lines of rows, by id. */
  find(table: StateTable, ids: readonly number[]): ReadonlyMap<number, string> {
    const found = new Map<number, string>();
    for (const id of ids) {
      const line = this.#places.get(table)?.get(id);
      const text = line === undefined ? undefined : this.#lines.text(line);
      if (line === undefined || text === undefined) continue;
      this.#asked[line] = 1;
      found.set(id, text);
    }
    return found;
  }

  ids(table: StateTable): number[] {
    return [...(this.#places.get(table)?.keys() ?? [])];
  }

  /** The columns of a row. */
  row(table: StateTable, id: number): Readonly<Record<string, unknown>> | undefined {
    const line = this.#places.get(table)?.get(id);
    return line === undefined ? undefined : members(this.#lines.text(line));
  }

  /** The rows of a table that nobody asked for, by id. */
  unasked(table: StateTable): number[] {
    return this.ids(table).filter((id) => this.#asked[this.#places.get(table)?.get(id) ?? 0] === 0);
  }

  #fault(kind: Finding['kind'], table: string, record: string, message: string): void {
    this.faults.push({ kind, table, record, message });
  }
}

// In JSON without spaces a quote behind a comma begins a name, never a value: strings escape theirs, and rows nest nothing.
// Session records begin with their id.
const ID = /(?:,|^\{)"id":(\d{1,15}),/;
const TABLE = /,"table":"(\w{1,40})"/;

function placeOf(line: string | undefined): { readonly table: StateTable; readonly id: number } | undefined {
  const id = Number(ID.exec(line ?? '')?.[1]);
  const name = TABLE.exec(line ?? '')?.[1];
  const table = STATE_TABLES.find((known) => known.name === name);
  return table === undefined || !Number.isSafeInteger(id) || id < 1 ? undefined : { table, id };
}
