import { resolve } from 'node:path';
import { parseTlogProof, type TlogProof } from '../integrity/checkpoint.ts';
import { parseVerifierKey } from '../integrity/signed-note.ts';
import { formatId, parseId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import { readWhole, target } from '../private-files.ts';
import type { Evidence } from '../verify/rules/heads.ts';
import { orUsage, UsageError } from './command.ts';

/** A checkpoint that somebody kept and brings back to compare. */
export interface Against extends Evidence {
  /** Where it came with the inclusion proof of a record. */
  readonly proof?: TlogProof;
}

/** Takes a checkpoint in any form: a note, a proof, or as JSON a client's `_meta` or what `colibri checkpoint` printed; in a file or as the text itself. */
export function readAgainst(given: string): Against {
  const { where = 'the checkpoint given', text } = fileOrText(given);
  if (text.startsWith('c2sp.org/tlog-proof@')) {
    const proof = orUsage(`${where} is not a proof`, () => parseTlogProof(text));
    return { source: 'against', where, note: proof.checkpoint, proof };
  }
  const note = noteIn(text);
  if (note !== undefined) return { source: 'against', where, note };
  const shown = JSON.stringify(given.slice(0, 80));
  throw new UsageError(`--against takes a checkpoint, as a file or as text, not ${shown}.`);
}

/** A verifier key in its text form, or in what `colibri checkpoint` printed as JSON; given as such or in a file. */
export function readKey(given: string): string {
  const { where, text } = fileOrText(given);
  const key = printedCheckpoint(text)?.key ?? text.trim();
  const complaint =
    where === undefined
      ? '--key is neither a file nor a verifier key'
      : `There is no verifier key in ${where}`;
  const hint =
    'It looks like name+id+base64; "colibri checkpoint --json", run where the log is trusted, prints it as "key".';
  orUsage(complaint, () => parseVerifierKey(key), hint);
  return key;
}

/** The full path of a file that must be there. */
export function existingFile(path: string): string {
  if (target(path)?.isFile() !== true) throw new UsageError(`There is no file ${resolve(path)}.`);
  return resolve(path);
}

function fileOrText(given: string): { readonly where?: string; readonly text: string } {
  const where = resolve(given);
  const text = readWhole(where, undefined, true)?.toString('utf8');
  // Not a path, or one that leads nowhere.
  return text === undefined ? { text: given } : { where, text };
}

function noteIn(text: string): string | undefined {
  const note = printedCheckpoint(text)?.note ?? (/^\s*["{]/.test(text) ? noteInJson(text) : text);
  // A shell drops the last newline, and a terminal shows "\n" for a newline.
  const lines = note?.includes('\n') === false ? note.replaceAll('\\n', '\n') : note;
  return lines?.includes('\n\n') ? `${lines.trimEnd()}\n` : undefined;
}

/**
 * What `colibri checkpoint --json` printed. Only that: a certificate or a bundle's marker also has keys and notes in it, and
 * nothing may vouch for itself.
 */
function printedCheckpoint(text: string): { readonly key: string; readonly note: string } | undefined {
  try {
    const { key, note, size } = Object(JSON.parse(text)) as { [name: string]: unknown };
    const isPrinted = typeof key === 'string' && typeof note === 'string' && typeof size === 'number';
    return isPrinted ? { key, note } : undefined;
  } catch {
    return undefined;
  }
}

/** The note as a JSON text, or in a result that a client kept, however deep `_meta` is in it. */
function noteInJson(text: string): string | undefined {
  let note: string | undefined;
  try {
    const whole: unknown = JSON.parse(text, (name, value: unknown) => {
      if (name === 'colibri/checkpoint' && typeof value === 'string') note ??= value;
      return value;
    });
    return typeof whole === 'string' ? whole : note;
  } catch {
    return undefined;
  }
}

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
