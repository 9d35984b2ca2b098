import { formatId, parseId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import { UsageError } from './command.ts';

const EXAMPLES = new Map([
  [TASKS, 'T-0001 (task)'],
  [THOUGHTS, 'Θ-0001 or TH-0001 (thought)'],
  [SESSIONS, 'A-0001 (session)'],
]);

/** A record as a person names it: small letters and missing zeros are forgiven, and Θ is hard to type. */
export function parseRecordId(text: string, tables: readonly StateTable[] = [...EXAMPLES.keys()]) {
  for (const table of tables) {
    const id = parseId(table, normalRecordId(text));
    if (id !== undefined) return [table, id] as const;
  }
  const what = tables.length === 1 ? `a ${tables[0]?.noun} id` : 'an id';
  const allowed = tables.map((table) => EXAMPLES.get(table)).join(', ');
  throw new UsageError(`"${text}" is not ${what}. Ids look like ${allowed}.`);
}

/** The one way an id is written, for a text that can be one; else the text. */
export function normalRecordId(text: string): string {
  const [, letters = '', digits = ''] = /^(T|A|TH|Θ)-(\d{1,15})$/iu.exec(text) ?? [];
  const table = { T: TASKS, A: SESSIONS, TH: THOUGHTS, Θ: THOUGHTS }[letters.toUpperCase()];
  return table === undefined || Number(digits) === 0 ? text : formatId(table, Number(digits));
}
