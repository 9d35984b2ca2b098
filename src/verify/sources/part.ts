import type { TlogProof } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { inclusionProof, type NodeReader } from '../../integrity/proofs.ts';
import { GENESIS } from '../../log/row.ts';
import {
  formatId,
  parseId,
  SESSION_RECORDS,
  SESSIONS,
  STATE_TABLES,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../../log/tables.ts';
import { logNodes } from '../../log/tree.ts';
import type { Reader, SqlValue } from '../../storage/engine.ts';
import type { NamedText } from '../../storage/text-ids.ts';
import { headIn } from '../../trust/opening.ts';
import { type Finding, type Report, rowFinding } from '../finding.ts';
import type { Source, SourceHead, SourceRow, Walked } from '../source.ts';
import { historyOf } from './carried.ts';
import { Cells, inPages, pagesOf, rowsIn } from './database-cells.ts';
import { isPosition, members } from './forms.ts';
import { isIncluded } from './proofs.ts';

/** Rows at a time: fewer than of a whole log, so that a slice stays short. */
const PAGE = 64;

export interface PartOptions {
  /** The head that the rows are proved under. */
  readonly head?: SourceHead & { readonly size: number };
  /** The task or session of which every call is among the rows. Records that say they are its own are looked for too. */
  readonly complete?: string;
  /** Lets others run meanwhile. */
  readonly pause?: () => Promise<void>;
  /** Where the hashes of proofs come from. */
  readonly nodes?: NodeReader;
}

/**
 * Some rows of a log in a database. Under a head each comes with its proof; without one, with the hashes of its neighbours.
 * Texts and state are those of the whole database.
 */
export class PartSource implements Source {
  readonly whole = false;
  readonly complete: ReadonlySet<string>;
  readonly #cells: Cells;
  readonly #positions: readonly number[];
  readonly #head: PartOptions['head'];
  readonly #nodes: NodeReader;
  readonly #pause: () => Promise<void>;
  /** Rows of state that a call says it wrote. */
  readonly #written = new Map(STATE_TABLES.map((table) => [table, new Set<number>()]));

  /** `positions` grow, as `withEnters` answers them. */
  constructor(tx: Reader, positions: readonly number[], { head, complete, pause, nodes }: PartOptions = {}) {
    this.#cells = new Cells(tx);
    this.#positions = positions;
    this.#pause = pause ?? (() => Promise.resolve());
    this.#head = head;
    this.#nodes = nodes ?? remembering(logNodes(tx));
    this.complete = new Set(complete === undefined || !/^[TA]-/.test(complete) ? [] : [complete]);
  }

  origin = async () => (this.#head === undefined ? undefined : await this.#cells.origin());
  texts = (named: readonly NamedText[]) => this.#cells.texts(named);
  heads = () => Promise.resolve(this.#head === undefined ? [] : [this.#head]);
  kept = () => Promise.resolve([]);

  async *rows(): AsyncGenerator<SourceRow[]> {
    for (let i = 0; i < this.#positions.length; i += PAGE) {
      const page = this.#positions.slice(i, i + PAGE);
      const read = await this.#read(page);
      const here = new Set([...page, this.#positions[i + PAGE]]);
      yield this.#head === undefined ? await this.#linked(read, here) : await this.#proved(read, this.#head);
    }
  }

  async states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    for (const id of ids) this.#written.get(table)?.add(id);
    return await this.#cells.states(table, ids);
  }

  /** The subject itself, and records that claim to be its own, where no call wrote them. */
  async checkRest(walked: Walked, report: Report): Promise<void> {
    const tell = (table: StateTable, record: string, position: unknown) => {
      const message = `${record} says that audit row ${position} wrote it, but that row does not say so.`;
      report({ kind: 'unexplained', table: table.name, record, columns: ['id', 'position'], message });
    };
    // A call that is not among the rows may have written it later, and must say so.
    for (const table of STATE_TABLES.filter(({ appendOnly }) => !appendOnly))
      for (const [id, text] of await this.#cells.states(table, [...(this.#written.get(table) ?? [])])) {
        const [record, { position }] = [formatId(table, id), members(text)];
        if (walked.found.has(record)) continue;
        const writer = isPosition(position) ? await this.#cells.textAt(position) : '';
        if (!String(writer).includes(`"hash":"${sha256Hex(text)}","id":"${record}"`))
          tell(table, record, position);
      }
    let seen = 0;
    // Under a head, calls that it does not cover are not among the rows.
    for (const subject of this.#head === undefined ? this.complete : []) {
      const [task, session] = [parseId(TASKS, subject), parseId(SESSIONS, subject)];
      const own = task === undefined ? OF_A_SESSION : OF_A_TASK;
      for (const [table, column] of own)
        for await (const { id, position } of rowsWith(this.#cells, table, column, task ?? session ?? 0)) {
          if (++seen % PAGE === 0) await this.#pause();
          if (!this.#written.get(table)?.has(id)) tell(table, formatId(table, id), position);
        }
    }
  }

  async #read(page: readonly number[]): Promise<SourceRow[]> {
    const rows = await this.#cells.rows(() =>
      this.#cells.among('actions', rowsIn(this.#cells.dialect), page),
    );
    const read = new Map(rows.map((row) => [row.position, row]));
    return page.map((position) => read.get(position) ?? { position, text: undefined });
  }

  /** Where rows are gone there is no proof of others, and the verifier says so. */
  async #proved(rows: readonly SourceRow[], { size }: { readonly size: number }): Promise<SourceRow[]> {
    const proved: SourceRow[] = [];
    for (const row of rows) {
      if (row.text === undefined && row.content_hash === undefined) continue;
      const proof = await inclusionProof(this.#nodes, row.position - 1, size).catch(() => undefined);
      proved.push(proof === undefined ? row : { ...row, proof });
    }
    return proved;
  }

  async #linked(rows: readonly SourceRow[], here: ReadonlySet<number | undefined>): Promise<SourceRow[]> {
    const around = new Set(rows.flatMap(({ position }) => [position - 1, position + 1]));
    const select = 'SELECT position, content_hash, chain_hash FROM audit_rows WHERE position';
    const neighbours = new Map<unknown, { content_hash: string; chain_hash: string }>();
    for (const [position, content, chain] of await this.#cells.among('actions', select, [...around]))
      neighbours.set(position, { content_hash: String(content), chain_hash: String(chain) });
    return rows.map((row) => {
      const before = row.position === 1 ? GENESIS : neighbours.get(row.position - 1)?.chain_hash;
      const next = here.has(row.position + 1) ? undefined : neighbours.get(row.position + 1);
      return {
        ...row,
        ...(before !== undefined && { previous_chain_hash: before }),
        ...(next !== undefined && { next }),
      };
    });
  }
}

/** Neighbouring rows share most of their way up: each node is read once. Bounded, so that many rows cost no more than some. */
export function remembering(nodes: NodeReader, known = new Map<string, string>()): NodeReader {
  return {
    async node(level, index) {
      const name = `${level}/${index}`;
      const hash = known.get(name) ?? (await nodes.node(level, index));
      if (known.size >= NODES_MAX) known.clear();
      known.set(name, hash);
      return hash;
    },
  };
}

const NODES_MAX = 50_000;

const OF_A_TASK: readonly (readonly [StateTable, string])[] = [
  [TASKS, 'id'],
  [THOUGHTS, 'task_id'],
  [SESSIONS, 'task_id'],
];
const OF_A_SESSION: readonly (readonly [StateTable, string])[] = [
  [SESSIONS, 'id'],
  [SESSION_RECORDS, 'session_id'],
];

/**
 * The audit rows that a record rests on, in order: both rows of every call that wrote it or its records, found by the rows
 * of state, by the index of calls and along `previous`. A row that is gone is among them: whoever reads it finds out.
 * `around` adds the calls that a session may hide: what was taken out of it is still named by the calls on its task.
 */
export async function rowsBehind(
  tx: Reader,
  table: StateTable,
  id: number,
  { around = false, pause = () => Promise.resolve() } = {},
): Promise<number[]> {
  const cells = new Cells(tx);
  const exits = new Set<number>();
  /** A forged number may be any; only such as can be one is looked for. */
  const numbers = async (queries: readonly Query[]) => {
    const found: number[] = [];
    for (const [key, rest] of queries) {
      const select = `SELECT ${key}, ${rest} AND`;
      for await (const { number } of inPages<{ number: SqlValue }>(cells.from(table.name), select, key, [id]))
        if (isPosition(number) && found.push(number) % PAGE === 0) await pause();
    }
    return found;
  };
  const follow = async (of: StateTable, number: number) => {
    const sql = `SELECT position FROM ${of.name} WHERE id = ?`;
    const row = await cells.from(of.name).get<{ position: SqlValue }>(sql, number);
    const text = (at: number) => cells.textAt(at);
    for await (const position of historyOf(of, formatId(of, number), row?.position, text)) {
      exits.add(position);
      if (exits.size % PAGE === 0) await pause();
    }
  };
  await follow(table, id);
  const behind = BEHIND[around && table === SESSIONS ? 'around' : table.name];
  const { calls = [], thoughts = [], sessions = [] } = behind ?? {};
  const written = await numbers(calls);
  for (const position of written) exits.add(position);
  const recording = new Set(await numbers(sessions));
  const recorded = { thought: await numbers(thoughts), change: thoughts.length > 0 ? written : [] };
  for (const [kind, refs] of Object.entries(recorded))
    for (const page of pagesOf(refs, PAGE)) {
      const select = `SELECT DISTINCT session_id FROM session_records WHERE kind = '${kind}' AND ref`;
      for (const [number] of await cells.among('session_records', select, page))
        if (isPosition(number)) recording.add(number);
      await pause();
    }
  for (const session of recording) await follow(SESSIONS, session);
  const rows = await withEnters(cells, exits, pause);
  const erasing = await erasingRows(cells, rows);
  return erasing.length === 0 ? rows : await withEnters(cells, [...rows, ...erasing], pause);
}

/** What is selected of a record, up to the condition on the key that it is read by. */
type Query = readonly [key: string, rest: string];

const RECORDED: Query = ['id', 'position AS number FROM session_records WHERE session_id = ?'];
const ITS_TASK = '(SELECT task_id FROM sessions WHERE id = ?)';

/** What leads from a record to the calls behind it, to its thoughts, and to sessions that may have recorded it. */
const BEHIND: Readonly<Record<string, { [to in 'calls' | 'thoughts' | 'sessions']?: readonly Query[] }>> = {
  tasks: {
    calls: [
      ['position', 'position AS number FROM task_calls WHERE task_id = ?'],
      ['chain_position', 'position AS number FROM thoughts WHERE task_id = ?'],
    ],
    thoughts: [['chain_position', 'id AS number FROM thoughts WHERE task_id = ?']],
    sessions: [['id', 'id AS number FROM sessions WHERE task_id = ?']],
  },
  sessions: { calls: [RECORDED] },
  around: {
    calls: [RECORDED, ['position', `position AS number FROM task_calls WHERE task_id = ${ITS_TASK}`]],
    // The calls on a task begin its other sessions, which must be seen to end as well.
    sessions: [['id', `id AS number FROM sessions WHERE task_id = ${ITS_TASK}`]],
  },
};

/** The exit rows that say of texts of these rows that they were erased. */
export async function erasingRows(cells: Cells, positions: readonly number[]): Promise<number[]> {
  const any = 'SELECT 1 AS found FROM erased_texts LIMIT 1';
  if ((await cells.from('erased_texts').get(any)) === undefined) return [];
  const sql = 'SELECT position FROM erased_texts WHERE digest';
  const digests = (await textsAt(cells, positions)).map(({ digest }) => digest);
  const rows = await cells.among('erased_texts', sql, digests);
  return [...new Set(rows.flatMap(([position]) => (isPosition(position) ? [position] : [])))];
}

/** What stands in the payloads of rows in the place of a text, and whatever looks like it. */
export async function textsAt(cells: Cells, positions: readonly number[]): Promise<NamedText[]> {
  const sql = 'SELECT position, body FROM action_payloads WHERE position';
  const bodies = await cells.among('action_payloads', sql, positions);
  return bodies.flatMap(([position, body]) =>
    [...String(body).matchAll(/"([0-9a-f]{64})"/g)].map(([, digest = '']) => ({
      ...{ call: Number(position), digest },
    })),
  );
}

/** Exit rows with the enter rows of their calls, in order. */
export async function withEnters(
  cells: Cells,
  exits: Iterable<number>,
  pause = () => Promise.resolve(),
): Promise<number[]> {
  const all = new Set(exits);
  for (const page of pagesOf([...all], PAGE)) {
    const select = 'SELECT sequence_no FROM audit_rows WHERE position';
    for (const [sequence_no] of await cells.among('actions', select, page))
      if (isPosition(sequence_no)) all.add(sequence_no);
    await pause();
  }
  return [...all].sort((a, b) => a - b);
}

function rowsWith(cells: Cells, { name }: StateTable, column: string, value: number) {
  // The order of the index on the column: any other would sort all rows again for each page.
  const key = name === 'thoughts' ? 'chain_position' : 'id';
  const select = `SELECT id, position, ${key} FROM ${name} WHERE ${column} = ? AND`;
  return inPages<{ id: number; position: number }>(cells.from(name), select, key, [value]);
}

/** The row that an inclusion proof was made for must still be the one at its position. */
export async function checkProvedRow(
  tx: Reader,
  { where, note, proof }: { readonly where: string; readonly note: string; readonly proof?: TlogProof },
): Promise<Finding[]> {
  const head = headIn(note);
  if (proof === undefined || head === undefined) return [];
  const position = proof.index + 1;
  const sql = 'SELECT content_hash FROM audit_rows WHERE position = ?';
  const row = await new Cells(tx).from('actions').get<{ content_hash: string }>(sql, position);
  if (row === undefined || isIncluded(proof.index, proof.proof, row.content_hash, head)) return [];
  const message = `${where} proves another record than the audit row at ${position}.`;
  return [rowFinding('altered', position, message)];
}
