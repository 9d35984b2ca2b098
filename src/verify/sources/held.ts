import { formatId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import type { Finding } from '../finding.ts';
import type { SourceText } from '../source.ts';
import type { LinePage } from './files.ts';
import { members, readText, STATE, TEXTS } from './forms.ts';

/** Reads texts, which lie in the order of their digests. Hostile input enters here. */
export async function readTexts(
  pages: AsyncIterable<LinePage>,
  faults: Finding[],
): Promise<ReadonlyMap<string, SourceText>> {
  const texts = new Map<string, SourceText>();
  let last = '';
  let count = 0;
  for await (const page of pages)
    for (const line of page) {
      const found = readText(line);
      count += 1;
      if (found !== undefined && found.digest > last) {
        texts.set(found.digest, { salt: found.salt, text: found.text });
        last = found.digest;
        continue;
      }
      const message = `Line ${count} of ${TEXTS} is not a text, or is out of order.`;
      faults.push({ kind: 'malformed', table: TEXTS, record: TEXTS, message });
    }
  return texts;
}

/** Rows of state in memory. Hostile input enters here. */
export class HeldState {
  readonly #rows = new Map<StateTable, Map<number, string>>(STATE_TABLES.map((table) => [table, new Map()]));
  readonly #asked = new Map<StateTable, Set<number>>(STATE_TABLES.map((table) => [table, new Set()]));

  /** Rows come by table and id: whatever does not go up is there twice or misplaced. */
  async read(pages: AsyncIterable<LinePage>, faults: Finding[]): Promise<void> {
    let last = { index: 0, id: 0, name: 'the beginning' };
    for await (const page of pages)
      for (const line of page) {
        const found = placeOf(line);
        if (found === undefined) {
          const message = `The line after ${last.name} is not a row of state.`;
          faults.push({ kind: 'malformed', table: STATE, record: STATE, message });
          continue;
        }
        const { table, id, text } = found;
        const [index, name] = [STATE_TABLES.indexOf(table), formatId(table, id)];
        if (index > last.index || (index === last.index && id > last.id)) {
          last = { index, id, name };
          this.#rows.get(table)?.set(id, text);
        } else {
          const message = `${name} is there twice or misplaced.`;
          faults.push({ kind: 'stray', table: table.name, record: name, message });
        }
      }
  }

  /** The exact lines of rows, by id. */
  find(table: StateTable, ids: readonly number[]): ReadonlyMap<number, string> {
    const found = new Map<number, string>();
    for (const id of ids) {
      const text = this.#rows.get(table)?.get(id);
      if (text === undefined) continue;
      this.#asked.get(table)?.add(id);
      found.set(id, text);
    }
    return found;
  }

  ids(table: StateTable): number[] {
    return [...(this.#rows.get(table)?.keys() ?? [])];
  }

  /** The columns of a row. */
  row(table: StateTable, id: number): Readonly<Record<string, unknown>> | undefined {
    const text = this.#rows.get(table)?.get(id);
    return text === undefined ? undefined : members(text);
  }

  /** The rows of a table that nobody asked for, by id. */
  unasked(table: StateTable): number[] {
    return this.ids(table).filter((id) => this.#asked.get(table)?.has(id) !== true);
  }
}

// In JSON without spaces a quote behind a comma begins a name, never a value: strings escape theirs, and rows nest nothing.
// Session records begin with their id.
const ID = /(?:,|^\{)"id":(\d{1,15}),/;
const TABLE = /,"table":"(\w{1,40})"/;

function placeOf(text = '') {
  const id = Number(ID.exec(text)?.[1]);
  const name = TABLE.exec(text)?.[1];
  const table = STATE_TABLES.find((known) => known.name === name);
  return table === undefined || !Number.isSafeInteger(id) || id < 1 ? undefined : { table, id, text };
}
