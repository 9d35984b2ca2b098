import type { Clock } from '../clock.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { saltedDigest } from '../integrity/digest.ts';
import { LIMITS } from '../limits.ts';
import { after, type Sooner } from '../sooner.ts';
import { changeOne, notAsMany, type Reader, type Transaction } from '../storage/engine.ts';
import { type NamedText, textIdsOf } from '../storage/text-ids.ts';

/** A text with the salt it is committed to with. */
export interface SaltedText {
  readonly digest: string;
  readonly salt: string;
  readonly text: string;
}

/** Arguments as they are kept and hashed, and the texts that were taken out of them. */
export interface KeptArguments {
  readonly args: Readonly<Record<string, unknown>>;
  readonly texts: readonly SaltedText[];
}

/** Puts a salted digest in the place of each text. Lists and objects count as the text of their canonical JSON. */
export function takeTexts(
  args: Readonly<Record<string, unknown>>,
  fields: readonly string[],
  clock: Clock,
): KeptArguments {
  const kept: Record<string, unknown> = { ...args };
  const texts: SaltedText[] = [];
  for (const field of fields) {
    const value = args[field];
    if (value === undefined) continue;
    const text = typeof value === 'string' ? value : canonicalJson(value);
    const salt = clock.salt();
    const digest = saltedDigest(salt, text);
    kept[field] = digest;
    texts.push({ digest, salt, text });
  }
  return { args: kept, texts };
}

/** Removes texts and their salts. `position` is the exit row of the call that says so. */
export async function eraseTexts(
  tx: Transaction,
  texts: readonly NamedText[],
  task: number | null,
  position: number,
): Promise<void> {
  const told = 'INSERT INTO erased_texts (digest, task_id, position) VALUES (?, ?, ?)';
  for (const { digest } of texts) {
    changeOne(tx, told, digest, task, position);
    // Wherever it is: in a file that somebody forged, it may be there twice.
    const sql = 'DELETE FROM texts WHERE digest = ?';
    const { changes } = await tx.run(sql, digest);
    if (changes === 0) throw notAsMany(changes, 1, sql);
  }
}

/** What is shown in the place of a text that the owner has erased. */
export const ERASED = '[erased]';

/** What is shown of a text, in SQL: one of many megabytes, which only a stranger can have put there, is not even read. */
export const SHOWN_TEXT = `CASE WHEN octet_length(text) <= ${LIMITS.shownTextBytesMax} THEN text ELSE '[too long to show]' END`;

/** What the owner has erased is not shown, whoever put it back. */
export const NOT_ERASED = 'NOT EXISTS (SELECT 1 FROM erased_texts WHERE erased_texts.digest = texts.digest)';

/** The texts of the calls that these are named by, as they are shown, by digest. One that was erased is absent. */
export async function readTexts(
  tx: Reader,
  named: readonly NamedText[],
): Promise<ReadonlyMap<string, string>> {
  // In a file that somebody forged, a call may be anything.
  const calls = new Set(named.map(({ call }) => call).filter(Number.isSafeInteger));
  const ids = [...calls].flatMap(textIdsOf);
  const found = new Map<string, string>();
  for (let i = 0; i < ids.length; i += PAGE) {
    const page = ids.slice(i, i + PAGE);
    const marks = page.map(() => '?').join(', ');
    const rows = await tx.all<{ digest: string; text: string }>(
      `SELECT digest, ${SHOWN_TEXT} AS text FROM texts WHERE id IN (${marks}) AND ${NOT_ERASED} ORDER BY id`,
      ...page,
    );
    // The first of two is that of the call.
    for (const { digest, text } of rows) if (!found.has(digest)) found.set(digest, text);
  }
  return found;
}

const PAGE = 400;

/** What leads to the texts that a task is found by. */
export interface WordedTask {
  readonly id: number;
  readonly title: string;
  readonly title_call: number;
  readonly description: string | null;
  readonly description_call: number | null;
}

/** The columns of a `WordedTask`. */
export const WORDED = 'id, title, title_call, description, description_call';

/** The texts that a task is found by, title first; '' for one that is not there. Those that are known are not read. */
export function wordsOf(
  tx: Reader,
  task: WordedTask,
  known: ReadonlyMap<string, string> = new Map(),
): Sooner<string[]> {
  const named = [
    { call: task.title_call, digest: task.title },
    { call: task.description_call ?? 0, digest: task.description ?? '' },
  ];
  const unknown = named.filter(({ call, digest }) => call > 0 && !known.has(digest));
  const read = unknown.length === 0 ? known : readTexts(tx, unknown);
  return after(read, (texts) => named.map(({ digest }) => known.get(digest) ?? texts.get(digest) ?? ''));
}
