import type { Dialect } from '../engine.ts';
import { MATCHES } from './word-index.ts';

const hex = (bytes: string) => `iif(typeof(${bytes}) = 'blob', lower(hex(${bytes})), '')`;

/** What SQLite says in its own words. */
export const SQLITE_DIALECT: Dialect = {
  contains: (text) => `instr(${text}, ?) > 0`,
  // Of all letters, SQLite's lower() changes A to Z.
  containsInAnyCase: (text) => `instr(lower(${text}), lower(?)) > 0`,
  hexOfTwo: (first, second) =>
    `iif(typeof(${first}) = 'blob' AND typeof(${second}) = 'blob' AND length(${first}) = 32,
       lower(hex(${first} || ${second})), ' ' || ${hex(first)} || ' ' || ${hex(second)})`,
  findTasks(words) {
    // Inside quotes, a word has no syntax.
    const query = words.map((word) => `"${word.replaceAll('"', '""')}"*`).join(' AND ');
    const params = [query, query];
    const sql = `tasks.id IN (${MATCHES})`;
    return {
      fetched: { sql, params },
      // The plus sign keeps SQLite from looking the ids up: it walks the tasks instead.
      asked: { sql: `+${sql}`, params },
      count: { sql: `SELECT count(*) AS value FROM (${MATCHES})`, params },
    };
  },
};
