import { treeRoot } from '../../integrity/tree.ts';
import {
  formatId,
  SESSION_RECORDS,
  SESSIONS,
  STATE_TABLES,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../../log/tables.ts';
import type { Finding } from '../finding.ts';
import type { SourceText, Walked } from '../source.ts';
import type { LinePage } from './files.ts';
import { isCount, isText, members, readText, STATE, TEXTS } from './forms.ts';
import { fileFinding, lineFinding } from './notes.ts';

/** Reads texts, which lie in the order of their ids. Hostile input enters here. */
export async function readTexts(
  pages: AsyncIterable<LinePage>,
  faults: Finding[],
): Promise<ReadonlyMap<number, SourceText>> {
  const texts = new Map<number, SourceText>();
  let last = 0;
  let count = 0;
  for await (const page of pages)
    for (const line of page) {
      const found = readText(line);
      count += 1;
      if (found !== undefined && found.id > last) {
        texts.set(found.id, { digest: found.digest, salt: found.salt, text: found.text });
        last = found.id;
      } else faults.push(lineFinding(TEXTS, count, 'a text'));
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
          faults.push(fileFinding('malformed', STATE, `The line after ${last.name} is not a row of state.`));
          continue;
        }
        const { table, id, text } = found;
        const [index, name] = [STATE_TABLES.indexOf(table), formatId(table, id)];
        if (index > last.index || (index === last.index && id > last.id)) {
          last = { index, id, name };
          this.#rows.get(table)?.set(id, text);
        } else {
          const message = `${name} appears twice or is misplaced.`;
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

/** The audit rows that seals are made of, and those that made them. */
export function sealedPositions(state: HeldState): ReadonlySet<unknown> {
  const refs = state.ids(SESSION_RECORDS).map((id) => state.row(SESSION_RECORDS, id)?.ref);
  return new Set([...refs, ...state.ids(SESSIONS).map((id) => state.row(SESSIONS, id)?.position)]);
}

/** The sealed sessions of a source. A row that is not as the log left it is for the rules to name; here it is passed over. */
export function* shownSeals(state: HeldState, walked: Walked) {
  const bySession = new Map<unknown, { readonly task: unknown; readonly hash: unknown }[]>();
  for (const id of state.ids(SESSION_RECORDS)) {
    const { session_id, kind, ref, task_id } = state.row(SESSION_RECORDS, id) ?? {};
    const number = isCount(ref) ? ref : 0;
    const hash = kind === 'thought' ? state.row(THOUGHTS, number)?.hash : walked.contentHashAt(number);
    const records = bySession.get(session_id) ?? [];
    records.push({ task: task_id, hash });
    bySession.set(session_id, records);
  }
  for (const id of state.ids(SESSIONS)) {
    const row = state.row(SESSIONS, id) ?? {};
    const { status, merkle_root: root, leaf_count: leaves, position, sealed_task_id: only, task_id } = row;
    if (status !== 'finalized' || !isText(root) || !isCount(leaves) || !isCount(position)) continue;
    const session = formatId(SESSIONS, id);
    const isShallow = row.scope === 'shallow' && isCount(task_id);
    const records = (bySession.get(id) ?? []).filter(({ task }) => only === null || task === only);
    const hashes = records.map(({ hash }) => hash).filter(isText);
    yield {
      ...{ session, position, root, leaves, hashes },
      // Where one of these is complete, so are the records.
      coveredBy: [session, ...(isShallow ? [formatId(TASKS, task_id)] : [])],
      // One of the records cannot be read, which is said elsewhere: nobody can tell what the seal must be.
      isTorn: hashes.length < records.length || walked.found.has(session),
    };
  }
}

export type ShownSeal = ReturnType<typeof shownSeals> extends Generator<infer Seal> ? Seal : never;

/**
 * Whether these hashes can be the leaves under a seal. Of a whole log they are those of its records. Else they give its
 * root, and those that are shown are among them in their order; of what is complete the rules compare the root themselves.
 */
export function isSealOver(
  { hashes, leaves, root, coveredBy }: ShownSeal,
  listed: readonly string[],
  complete: ReadonlySet<string> | undefined,
): boolean {
  let found = 0;
  for (const hash of listed) if (hash === hashes[found]) found += 1;
  if (found !== hashes.length) return false;
  if (complete === undefined) return listed.length === found;
  return listed.length === leaves && (coveredBy.some((id) => complete.has(id)) || treeRoot(listed) === root);
}
