import { asError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Reader, StorageProblem } from '../engine.ts';
import { namedText } from '../text-ids.ts';
import type { SqliteConnection, SqliteDriver } from './driver.ts';

/** No call brings a longer text. A forged one may be huge: it is not put into an index. */
const TEXT_BYTES_MAX = 4 * LIMITS.descriptionCharsMax;
const textOf = (column: string) => namedText(`t.${column}_call`, `t.${column}`);
const shortTextOf = (column: string) =>
  `CASE WHEN octet_length(${textOf(column)}) <= ${TEXT_BYTES_MAX} THEN ${textOf(column)} ELSE '' END`;

/** How the index takes texts apart, and what it keeps of them. No search asks how long a text is. */
export const WORD_INDEX = `fts5 (
    title, description, tokenize = 'unicode61 remove_diacritics 2', columnsize = 0
  )`;

/** The last task whose words are in the index. New tasks are entered in their order, many at once. A row of no task may be planted behind them. */
export const INDEXED_TO =
  'SELECT coalesce(max(id), 0) AS id FROM task_words_content WHERE id <= (SELECT max(id) FROM tasks)';
/** The number of a task that Colibri made can be counted. */
const IS_NEW = `t.id > (${INDEXED_TO}) AND t.id <= ${Number.MAX_SAFE_INTEGER}`;

export const INDEX_NEW_TASKS = `
  INSERT INTO task_words (rowid, title, description)
  SELECT t.id, ${shortTextOf('title')}, ${shortTextOf('description')} FROM tasks t WHERE ${IS_NEW}`;

/** A text in JSON, where U+0000 would end it: to the index, that is a space like any other. */
const inJson = (column: string) => `replace(CAST(${shortTextOf(column)} AS TEXT), char(0), ' ')`;
const NEW_TASKS = `
  SELECT json_group_array(json_array(id, title, description)) FROM (
    SELECT t.id AS id, ${inJson('title')} AS title, ${inJson('description')} AS description FROM tasks t
    WHERE ${IS_NEW} ORDER BY t.id LIMIT ${LIMITS.newTasksMax}
  )`;

/** The ids of all tasks that a search finds. Both marks stand for what is searched for. */
export const MATCHES = `
  SELECT rowid FROM task_words WHERE task_words MATCH ?
  UNION ALL SELECT value FROM json_each(found_in((${NEW_TASKS}), ?))`;

/** Searches the tasks that are not in the index yet: in another one like it, in memory. */
export class NewTasks {
  readonly #driver: SqliteDriver;
  #index: SqliteConnection | undefined;
  /** What that index holds. */
  #tasks = '';
  /** How often somebody has searched. */
  searches = 0;

  constructor(driver: SqliteDriver) {
    this.#driver = driver;
  }

  makeSearchable(db: SqliteConnection): void {
    db.function('found_in', { directOnly: true }, (tasks, words) => {
      this.searches += 1;
      return tasks === '[]' ? tasks : this.#find(tasks, words);
    });
  }

  #find(tasks: string, words: string): string {
    this.#index ??= this.#driver.open(':memory:', { readOnly: false });
    if (tasks !== this.#tasks) {
      this.#tasks = '';
      this.#index.exec(`DROP TABLE IF EXISTS words; CREATE VIRTUAL TABLE words USING ${WORD_INDEX}`);
      this.#index.prepare(`INSERT INTO words (rowid, title, description) ${LISTED}`).run(tasks);
      this.#tasks = tasks;
    }
    const found = this.#index.prepare('SELECT json_group_array(rowid) AS ids FROM words WHERE words MATCH ?');
    return (found.get(words) as { ids: string }).ids;
  }

  close(): void {
    this.#index?.close();
  }
}

const LISTED = 'SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)';

/**
 * Whether a search finds what the tasks say. SQLite's own check compares the words of the index with the texts that the
 * index keeps; here those texts are compared with the tasks', and the ways by which a search comes to a word are tried.
 * Bytes of the index that no search depends on are not checked.
 */
export async function findWordIndexProblems(tx: Reader): Promise<StorageProblem[]> {
  const problems: StorageProblem[] = [];
  const tell = (table: string, record: string, what: string) =>
    problems.push({
      kind: 'index',
      table,
      record,
      message: `${what}: searching would miss tasks or find them wrongly.`,
    });
  // A part that cannot be read is a problem of its own, and the others are still checked.
  const each = async (sql: string, found: (value: string | number) => void) => {
    try {
      for (const { value } of await tx.all<{ value: string | number }>(sql)) found(value);
    } catch (thrown) {
      tell('task_words', 'task_words', `A part of task_words cannot be read (${asError(thrown).message})`);
    }
  };
  await each(OTHER_SETTINGS, (name) =>
    tell('task_words_config', 'settings', `task_words_config has another ${name} than Colibri gives it`),
  );
  await each(OTHER_TEXTS, (id) => tell('task_words', named(id), `task_words disagrees with task ${id}`));
  await each(TOO_MANY_NEW, (id) =>
    tell('task_words', named(id), `task_words ends ${LIMITS.newTasksMax} tasks or more before task ${id}`),
  );
  await each(LOST_WORDS, (word) =>
    tell('task_words_idx', 'words', `A search for ${JSON.stringify(word)} does not find every task`),
  );
  return problems;
}

const named = (task: string | number) => `T-${String(task).padStart(4, '0')}`;

/** The one setting is the version of the format. */
const OTHER_SETTINGS = `
  SELECT quote(k) AS value FROM task_words_config WHERE k IS NOT 'version' OR v IS NOT 4 OR typeof(v) <> 'integer'
  UNION ALL SELECT 'version' WHERE NOT EXISTS (SELECT 1 FROM task_words_config WHERE k = 'version')`;

const OTHER_TEXTS = `
  SELECT t.id AS value FROM tasks t LEFT JOIN task_words w ON w.rowid = t.id
  WHERE NOT (${IS_NEW}) AND (w.title IS NOT ${textOf('title')} OR w.description IS NOT ${textOf('description')})
  UNION SELECT w.rowid FROM task_words w WHERE w.rowid NOT IN (SELECT id FROM tasks)`;

const TOO_MANY_NEW = `
  SELECT max(t.id) AS value FROM tasks t WHERE ${IS_NEW} HAVING count(*) >= ${LIMITS.newTasksMax}`;

/**
 * The words from which on some may be lost, if any may. Every way into the index is tried: a search begins at the last one
 * that is not behind the word, so between two of them a search comes to the same words as a reading from the start. Only
 * the last pages of a part can have lost their way without that: there the number of the page is another.
 */
const DOUBTFUL = `
  WITH ways (term) AS (SELECT '' UNION SELECT CAST(substr(term, 2) AS TEXT) FROM task_words_idx),
    ranges (first, next) AS (SELECT term, lead(term, 1, CAST(x'ff' AS TEXT)) OVER (ORDER BY term) FROM ways),
    pages (part, last) AS (
      SELECT id >> 37, max(id & 0x7fffffff) FROM task_words_data
      WHERE id >= 1 << 37 AND (id >> 31) & 63 = 0 GROUP BY 1
    )
  SELECT '' AS first WHERE (SELECT sum(doc) FROM task_terms) IS NOT
    (SELECT sum((SELECT sum(doc) FROM task_terms WHERE term >= first AND term < next)) FROM ranges)
  UNION ALL SELECT coalesce(CAST(substr(max(i.term), 2) AS TEXT), '')
    FROM pages LEFT JOIN task_words_idx i ON i.segid = part GROUP BY part HAVING last IS NOT max(i.pgno >> 1)`;

/** A doubtful word is looked up by the same search that MATCH makes, in two thirds of the time: 9 us. All would take five times as long. */
const LOST_WORDS = `
  SELECT term AS value FROM task_terms a WHERE term >= (SELECT min(first) FROM (${DOUBTFUL}))
    AND doc IS NOT (SELECT doc FROM task_terms b WHERE b.term = a.term)`;
