import { formatId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import type { Finding } from '../finding.ts';
import type { SourceText } from '../source.ts';
import { HeldLines, SourceError } from './files.ts';
import { members, readText } from './forms.ts';
import { STATE, TEXTS } from './layout.ts';

/** Canonical JSON begins a line of texts with its digest: `{"digest":"…`. */
const DIGEST_START = '{"digest":"'.length;
const DIGEST_CHARS = 64;
const STEPS_MAX = 1_000;

/** The texts of a bundle, in memory as they lie, and where each is. Hostile input enters here. */
export class HeldTexts {
  readonly #lines: HeldLines;
  /** Open addressing over the first digits of digests: line numbers from 1, 0 where free. 8 bytes a text, no strings. */
  readonly #slots: Uint32Array;

  constructor(bytes: Uint8Array) {
    this.#lines = new HeldLines(bytes, TEXTS);
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(2 * this.#lines.length + 2)));
    for (let line = 0; line < this.#lines.length; line += 1) {
      const digest = this.#digest(line);
      const slot = this.#slot(digest);
      // Of two lines with one digest the second is never found; their number tells that it is there.
      if (this.#slots[slot] === 0) this.#slots[slot] = line + 1;
    }
  }

  find(digests: readonly string[]): ReadonlyMap<string, SourceText> {
    const found = new Map<string, SourceText>();
    for (const digest of digests) {
      const text = this.#get(digest);
      if (text !== undefined) found.set(digest, text);
    }
    return found;
  }

  #get(digest: string): SourceText | undefined {
    const line = (this.#slots[this.#slot(digest)] ?? 0) - 1;
    if (line < 0) return undefined;
    const found = readText(this.#lines.text(line));
    return found?.digest === digest ? { salt: found.salt, text: found.text } : undefined;
  }

  get length(): number {
    return this.#lines.length;
  }

  /** What stands in the place of each digest. */
  digests(): string[] {
    return Array.from({ length: this.#lines.length }, (_, line) => this.#digest(line));
  }

  #digest(line: number): string {
    const bytes = this.#lines.bytes(line).subarray(DIGEST_START, DIGEST_START + DIGEST_CHARS);
    return String.fromCharCode(...bytes);
  }

  /** Where a digest is, or where it would go. */
  #slot(digest: string): number {
    const last = this.#slots.length - 1;
    let slot = (Number.parseInt(digest.slice(0, 8), 16) | 0) & last;
    let steps = 0;
    for (let line = this.#slots[slot]; line; line = this.#slots[slot]) {
      if (this.#digest(line - 1) === digest) return slot;
      slot = (slot + 1) & last;
      steps += 1;
      // Digests scatter: among a million of them the longest way is some fifty steps.
      if (steps > STEPS_MAX) throw new SourceError(`${TEXTS} holds digests that cannot be some`);
    }
    return slot;
  }
}

interface Indexed {
  readonly ids: number[];
  readonly lines: number[];
}

/** The rows of state of a bundle, in memory as they lie. Hostile input enters here. */
export class HeldState {
  /** What is wrong with the lines themselves. */
  readonly faults: Finding[] = [];
  readonly #lines: HeldLines;
  readonly #tables = new Map<string, Indexed>();
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
      const rows = this.#rows(table);
      rows.ids.push(id);
      rows.lines.push(line);
    }
  }

  /** The exact lines of rows, by id. */
  find(table: StateTable, ids: readonly number[]): ReadonlyMap<number, string> {
    const found = new Map<number, string>();
    for (const id of ids) {
      const line = this.#line(table, id);
      const text = line === undefined ? undefined : this.#lines.text(line);
      if (line === undefined || text === undefined) continue;
      this.#asked[line] = 1;
      found.set(id, text);
    }
    return found;
  }

  ids(table: StateTable): readonly number[] {
    return this.#rows(table).ids;
  }

  /** The columns of a row. */
  row(table: StateTable, id: number): Readonly<Record<string, unknown>> | undefined {
    const line = this.#line(table, id);
    return line === undefined ? undefined : members(this.#lines.text(line));
  }

  /** The rows of a table that nobody asked for, by id. */
  unasked(table: StateTable): number[] {
    const { ids, lines } = this.#rows(table);
    return ids.filter((_, i) => this.#asked[lines[i] ?? 0] === 0);
  }

  #line(table: StateTable, id: number): number | undefined {
    const { ids, lines } = this.#rows(table);
    // Of a whole log all ids are there, so the first guess is right.
    if (ids[id - 1] === id) return lines[id - 1];
    let [low, high] = [0, ids.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ids[middle] ?? 0) < id) low = middle + 1;
      else high = middle;
    }
    return ids[low] === id ? lines[low] : undefined;
  }

  #rows({ name }: StateTable): Indexed {
    const known = this.#tables.get(name);
    if (known !== undefined) return known;
    const rows = { ids: [], lines: [] };
    this.#tables.set(name, rows);
    return rows;
  }

  #fault(kind: Finding['kind'], table: string, record: string, message: string): void {
    this.faults.push({ kind, table, record, message });
  }
}

// In JSON without spaces a quote behind a comma begins a name, never a value: strings escape theirs, and rows nest nothing.
const ID = /,"id":(\d{1,15}),/;
const TABLE = /,"table":"(\w{1,40})"/;

function placeOf(line: string | undefined): { readonly table: StateTable; readonly id: number } | undefined {
  if (line === undefined) return undefined;
  const id = Number(ID.exec(line)?.[1] ?? FIRST_ID.exec(line)?.[1]);
  const name = TABLE.exec(line)?.[1];
  const table = STATE_TABLES.find((known) => known.name === name);
  return table === undefined || !Number.isSafeInteger(id) || id < 1 ? undefined : { table, id };
}

/** Session records begin with their id. */
const FIRST_ID = /^\{"id":(\d{1,15}),/;
