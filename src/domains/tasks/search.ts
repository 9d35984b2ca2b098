import { LIMITS } from '../../limits.ts';
import type { SqlValue } from '../../storage/engine.ts';

/** A condition on `tasks` with its parameters. */
export interface Condition {
  readonly sql: string;
  readonly params: readonly SqlValue[];
  /** The query of the word index, where that is the whole condition and its only parameter. */
  readonly match?: string;
}

/** Scripts that write words without spaces between them, and the long vowel two of them share: an index of words knows nothing of their parts. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc\uff70\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=New_Tai_Lue}\p{Script=Tai_Tham}\p{Script=Javanese}\p{Script=Balinese}]/u;
const HAS_WORD = /[\p{L}\p{N}]/u;

/**
 * Tasks whose title or description holds every word of `text`, or begins a word with it. Any character is safe: a word
 * goes to the index inside quotes, where it has no syntax; what the index cannot know (signs, emoji, unspaced scripts) is
 * looked for as it stands.
 */
export function searchCondition(text: string): Condition | undefined {
  const words = [...new Set(text.split(/[\s\p{Cc}]+/u).filter((word) => word !== ''))].slice(
    0,
    LIMITS.searchWordsMax,
  );
  if (words.length === 0) return undefined;
  const indexed = words.filter((word) => HAS_WORD.test(word) && !UNSPACED.test(word));
  const literal = words.filter((word) => !HAS_WORD.test(word) || UNSPACED.test(word));
  const conditions: Condition[] = literal.map((word) => ({
    sql: `EXISTS (SELECT 1 FROM texts x WHERE x.digest IN (t.title, t.description) AND instr(lower(x.text), lower(?)) > 0)`,
    params: [word],
  }));
  if (indexed.length > 0) {
    const query = indexed.map((word) => `"${word.replaceAll('"', '""')}"*`).join(' AND ');
    const condition = {
      sql: 't.id IN (SELECT rowid FROM task_words WHERE task_words MATCH ?)',
      params: [query],
    };
    if (literal.length === 0) return { ...condition, match: query };
    conditions.unshift(condition);
  }
  return {
    sql: conditions.map((condition) => condition.sql).join(' AND '),
    params: conditions.flatMap((condition) => condition.params),
  };
}
