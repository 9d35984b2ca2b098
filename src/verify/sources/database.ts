import { parseId, type StateTable, TASKS } from '../../log/tables.ts';
import type { Reader, SqlValue, StorageEngine } from '../../storage/engine.ts';
import type { NamedText } from '../../storage/text-ids.ts';
import { keyId } from '../../trust/opening.ts';
import type { Report } from '../finding.ts';
import {
  DamagedSource,
  guarded,
  type Source,
  type SourceHead,
  type SourceNote,
  type SourceRow,
  type Walked,
} from '../source.ts';
import { Cells, PAGE, type Rest, rowsIn, textOf } from './database-cells.ts';
import { DERIVED } from './database-derived.ts';
import { STRAYS } from './database-strays.ts';
import { ShortReads } from './short-reads.ts';

/**
 * A log in a database, read on the snapshot `tx`: `storage.read((tx) => verify(new DatabaseSource(storage, tx), …))`.
 * A part of the file that cannot be read is damage, not a failure.
 */
export class DatabaseSource implements Source {
  readonly whole = true;
  readonly isShared: boolean | undefined;
  readonly #storage: StorageEngine;
  readonly #cells: Cells;
  #lastRow = 0;
  readonly #short: ShortReads | undefined;
  /** How many rows there were when the heads were read first. */
  #through = Number.MAX_SAFE_INTEGER;

  constructor(storage: StorageEngine, tx: Reader) {
    this.#storage = storage;
    this.#short = tx instanceof ShortReads ? tx : undefined;
    this.isShared = storage.isShared;
    this.#cells = new Cells(tx);
  }

  origin = () => this.#cells.origin();

  /** Undefined where everything is read from one snapshot from the start. */
  get catchUp(): (() => Promise<void>) | undefined {
    const short = this.#short;
    return short && (() => short.catchUp());
  }

  states = (table: StateTable, ids: readonly number[]) => this.#cells.states(table, ids);

  texts = (named: readonly NamedText[]) => this.#cells.texts(named);

  async heads(): Promise<SourceHead[]> {
    if (this.#short?.isCaughtUp === false) {
      const sql = 'SELECT max(position) AS last FROM actions';
      this.#through = (await this.#cells.from('actions').get<{ last: number | null }>(sql))?.last ?? 0;
    }
    const rows = await this.#cells
      .from('log_heads')
      .all('SELECT key, size, chain_hash, at, frontier, checkpoint FROM log_heads ORDER BY key');
    return rows.map(({ key, size, chain_hash, at, frontier, checkpoint }) => ({
      key: String(key),
      size: numberOf(size),
      chain_hash: textOf(chain_hash),
      at: textOf(at),
      frontier: textOf(frontier),
      note: textOf(checkpoint),
      where: `the head of key ${keyId(String(key))}`,
    }));
  }

  async kept(): Promise<SourceNote[]> {
    const rows = await this.#cells
      .from('checkpoints')
      .all('SELECT size, key, note, CAST(size AS TEXT) AS shown FROM checkpoints ORDER BY size, key');
    return rows.map(({ size, key, note, shown }) => ({
      size: numberOf(size),
      key: textOf(key),
      note: textOf(note),
      where: `the kept checkpoint ${shown} of key ${keyId(String(key))}`,
    }));
  }

  async *rows(): AsyncGenerator<SourceRow[]> {
    // Rows that are added before time stops are for later: nobody knows yet at which of them a root is due.
    const through = this.#short?.isCaughtUp === false ? this.#through : Number.MAX_SAFE_INTEGER;
    for (let last = this.#lastRow; ; ) {
      const sql = `${rowsIn(this.#cells.dialect)} > ? AND a.position <= ? ORDER BY a.position LIMIT ${PAGE}`;
      const rows = await this.#cells.rows((actions) => actions.lists(sql, last, through));
      const end = rows.at(-1)?.position;
      if (end === undefined) return;
      // In a damaged file a search may come upon any row. Going on from there might never end.
      if (!(end > last)) throw new DamagedSource('actions', `row ${last} is followed by row ${end}`);
      yield rows;
      last = end;
      this.#lastRow = end;
    }
  }

  async checkRest(walked: Walked, report: Report): Promise<void> {
    const from = (table: string) => this.#cells.from(table);
    // A row that nobody wrote is said to be that, before the indexes that lead to it are.
    for (const parts of [STRAYS, { file: (rest: Rest) => this.#checkFile(rest) }, DERIVED])
      for (const check of Object.values(parts))
        await guarded(report, undefined, () => check({ from, walked, report }));
  }

  async #checkFile({ from, walked, report }: Rest): Promise<void> {
    for (const problem of await this.#storage.selfCheck(from('schema')))
      if (problem.table !== 'task_words' || !(await this.#isExplained(problem.record, walked)))
        report(problem);
  }

  /** The word index repeats the texts of a task: where these were changed, that was said. */
  async #isExplained(record: string, { found, badTexts }: Walked): Promise<boolean> {
    if (found.has(record)) return true;
    const sql = 'SELECT title, description FROM tasks WHERE id = ?';
    const id = parseId(TASKS, record) ?? 0;
    const row = await this.#cells.from('tasks').get<{ title: string; description: string }>(sql, id);
    return row !== undefined && (badTexts.has(row.title) || badTexts.has(row.description));
  }
}

function numberOf(value: SqlValue | undefined): number {
  return typeof value === 'number' ? value : Number.NaN;
}
