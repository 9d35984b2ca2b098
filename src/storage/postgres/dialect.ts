import type { Dialect, SqlValue } from '../engine.ts';
import { LEXEME_CHARS_MAX, lexemeOf, wordsIn } from './words.ts';

const hex = (bytes: string) => `encode(${bytes}, 'hex')`;

/** What PostgreSQL says in its own words. */
export const POSTGRES_DIALECT: Dialect = {
  contains: (text) => `strpos(${text}, ?) > 0`,
  // Under this collation, lower() changes A to Z and no other letter.
  containsInAnyCase: (text) => `strpos(lower(${text} COLLATE "C"), lower(CAST(? AS TEXT) COLLATE "C")) > 0`,
  hexOfTwo: (first, second) =>
    `CASE WHEN length(${first}) = 32 THEN ${hex(`${first} || ${second}`)}
     ELSE ' ' || ${hex(first)} || ' ' || ${hex(second)} END`,
  findTasks(searched) {
    const conditions = ['w.lexemes @@ CAST(? AS tsquery)'];
    const lexemes: string[] = [];
    const params: SqlValue[] = [];
    for (const words of searched.map(wordsIn)) {
      // A word has letters and digits only, so that between quotes it has no syntax.
      lexemes.push(...words.map((word, i) => `'${lexemeOf(word)}'${i === words.length - 1 ? ':*' : ''}`));
      // The index knows neither the order of words nor the end of a long one.
      if (words.length === 1 && (words[0]?.length ?? 0) <= LEXEME_CHARS_MAX) continue;
      conditions.push('strpos(w.words, ?) > 0');
      params.push(words.map((word) => ` ${word}`).join(''));
    }
    const where = conditions.join(' AND ');
    const all = [lexemes.join(' & '), ...params];
    return {
      fetched: { sql: `tasks.id IN (SELECT w.task_id FROM task_words w WHERE ${where})`, params: all },
      asked: {
        sql: `EXISTS (SELECT 1 FROM task_words w WHERE w.task_id = tasks.id AND ${where})`,
        params: all,
      },
      count: { sql: `SELECT count(*) AS value FROM task_words w WHERE ${where}`, params: all },
    };
  },
};
