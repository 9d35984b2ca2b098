import { ERRORS } from '../../errors.ts';
import type { AuditRow } from '../../log/row.ts';
import { STATE_TABLES, type StateTable } from '../../log/tables.ts';
import type { Effect } from '../../tool.ts';
import { sharedText } from '../own-text.ts';

/** Says in its message what is wrong with the text of an audit row. */
export class FormError extends Error {
  /** The version of the rules it was written under, where this verifier does not know them: then it may have any form. */
  readonly newer: number | undefined;

  constructor(message: string, newer?: number) {
    super(message);
    this.newer = newer;
  }
}

/** An effect with its table and number read. */
export interface ReadEffect extends Effect {
  readonly of: StateTable;
  readonly number: number;
}

/** An audit row of which every value is one that it can have. */
export interface ReadRow extends AuditRow {
  readonly effects: readonly ReadEffect[];
}

/**
 * The audit row that a text holds. Throws FormError unless the text is one that Colibri writes: exactly its fields, in
 * canonical form, each with a value it can have. Hostile input enters here: whoever can sign can put any text in a log.
 */
export function readRow(text: string, newestRules: number): ReadRow {
  const match = text.length > ROW_CHARS_MAX ? null : ROW.exec(text);
  if (match === null) throw notARow(text, newestRules);
  const row = rowIn(match);
  if (row.rules > newestRules) throw newer(row.rules);
  const wrong = row.stage === 'enter' ? wrongInEnter(row) : wrongInExit(row);
  if (wrong !== undefined) throw new FormError(wrong);
  return row;
}

const newer = (version: number) => new FormError(`rules version ${version}`, version);

function notARow(text: string, newestRules: number): FormError {
  try {
    const { rules } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (Number.isSafeInteger(rules) && Number(rules) > newestRules) return newer(Number(rules));
  } catch {
    return new FormError('it is not a JSON object');
  }
  return new FormError(
    'a field is missing, too many, or has a value that no row has, or it is not in canonical form',
  );
}

// The layout is the canonical form: names in their order, no spaces, and every value in the one way of writing it. One
// pass of a regular expression takes half the time of parsing the text and writing it again.

const PLAIN = '[^"\\\\\\u0000-\\u001f\\ud800-\\udfff]*';
const ESCAPE = '\\\\(?:["\\\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))';
const TEXT = `${PLAIN}(?:(?:${ESCAPE}|[\\ud800-\\udbff][\\udc00-\\udfff])${PLAIN})*`;
const SOME_TEXT = `(?!")${TEXT}`;
const HASH = '[0-9a-f]{64}';
const COUNT = '[1-9][0-9]{0,14}';
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const INSTANT =
  '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d\\.\\d{3}Z';
const ROW = new RegExp(
  `^\\{"actor":"(${SOME_TEXT})",(?:"args_hash":"(${HASH})",)?"at":"(${INSTANT})","correlation_id":"(${UUID})",(?:"duration_ms":(0|${COUNT}),)?(?:"effects":\\[([^\\]]+)\\],)?(?:"error_code":"([A-Z_]+)",)?"outcome":"(running|ok|error|rejected|denied|crashed)","position":(${COUNT}),"process":"(${SOME_TEXT})",(?:"repaired":(\\["${TEXT}"(?:,"${TEXT}")*\\]),)?(?:"result_hash":"(${HASH})",)?"rules":([1-9][0-9]{0,8}),"schema_valid":(true|false),"sequence_no":(${COUNT}),"source":"(mcp|cli)","stage":"(enter|exit)","tool":"(${TEXT})"\\}$`,
);

const TOOL_CHARS_MAX = 64;
/** A line of a client has a million characters at most, and of a longer row the expression above might exhaust the stack. */
const ROW_CHARS_MAX = 4_000_000;
const DAY_AT = 8;

function rowIn(match: RegExpExecArray): ReadRow {
  const at = match[3] ?? '';
  const duration = match[5];
  const code = match[7] ?? null;
  const repaired = match[11];
  const tool = name(match[18]);
  if (tool.length > TOOL_CHARS_MAX) throw new FormError('tool is longer than 64 characters');
  if (code !== null && !Object.hasOwn(ERRORS, code))
    throw new FormError('error_code is not one of Colibri’s');
  // There is no 30 February; every month has 28 days.
  if (at.slice(DAY_AT, DAY_AT + 2) > '28' && new Date(Date.parse(at)).toISOString() !== at)
    throw new FormError('at is a day that does not exist');
  return {
    actor: name(match[1]),
    args_hash: match[2] ?? null,
    at,
    correlation_id: match[4] ?? '',
    duration_ms: duration === undefined ? null : Number(duration),
    effects: match[6] === undefined ? NONE : effectsIn(match[6]),
    error_code: code,
    outcome: match[8] as AuditRow['outcome'],
    position: Number(match[9]),
    process: name(match[10]),
    repaired: repaired === undefined ? NONE : (JSON.parse(repaired) as string[]),
    result_hash: match[12] ?? null,
    rules: Number(match[13]),
    schema_valid: match[14] === 'true',
    sequence_no: Number(match[15]),
    source: match[16] === 'cli' ? 'cli' : 'mcp',
    stage: match[17] === 'enter' ? 'enter' : 'exit',
    tool,
  };
}

const NONE: readonly never[] = [];

/** Names come again and again, and some are kept. */
function name(text = ''): string {
  return sharedText(text.includes('\\') ? String(JSON.parse(`"${text}"`)) : text);
}

/** An id has at least four digits, and no more zeros before them than that takes. */
const EFFECT = new RegExp(
  `\\{"hash":"(${HASH})","id":"((.)-(?!0000")(?:\\d{4}|[1-9]\\d{4,14}))","previous":(0|${COUNT}),(?:"seal":\\{"leaf_count":(${COUNT}),"merkle_root":"(${HASH})"\\},)?"table":"([a-z_]+)"\\}(?:,(?=\\{)|$)`,
  'y',
);

const TABLES: ReadonlyMap<unknown, StateTable> = new Map(STATE_TABLES.map((table) => [table.name, table]));

/** `T-0001` has two characters before its number. */
const ID_PREFIX_CHARS = 2;

function effectsIn(inner: string): ReadEffect[] {
  const effects: ReadEffect[] = [];
  for (EFFECT.lastIndex = 0; EFFECT.lastIndex < inner.length; ) {
    const match = EFFECT.exec(inner);
    const of = TABLES.get(match?.[7]);
    if (match === null || of === undefined || of.prefix !== match[3])
      throw new FormError('effects is not a list of written rows');
    const id = match[2] ?? '';
    const number = Number(id.slice(ID_PREFIX_CHARS));
    const effect = { table: of.name, id, hash: match[1] ?? '', previous: Number(match[4]), of, number };
    const seal = { leaf_count: Number(match[5]), merkle_root: match[6] ?? '' };
    effects.push(match[5] === undefined ? effect : { ...effect, seal });
  }
  return effects;
}

function wrongInEnter(row: AuditRow): string | undefined {
  if (row.outcome !== 'running') return 'an enter row has the outcome running';
  if (row.sequence_no !== row.position) return 'an enter row begins the call of its own position';
  if (row.args_hash === null) return 'an enter row has the digest of its arguments';
  const isOpen = row.error_code === null && row.duration_ms === null && row.result_hash === null;
  return isOpen && row.effects.length === 0
    ? undefined
    : 'an enter row has no error_code, duration_ms, result_hash or effects';
}

function wrongInExit(row: AuditRow): string | undefined {
  const { outcome, schema_valid } = row;
  if (outcome === 'running') return 'an exit row says how the call ended';
  if (row.sequence_no >= row.position) return 'an exit row ends a call that began before it';
  if (row.args_hash !== null || row.repaired.length > 0)
    return 'an exit row has no args_hash and no repaired';
  if ((row.duration_ms === null) !== (outcome === 'crashed'))
    return 'an exit row has a duration_ms unless the call crashed';
  if (!CODES[outcome](row.error_code)) return 'error_code does not fit the outcome';
  const isValid = outcome === 'rejected' ? !schema_valid : schema_valid || outcome === 'crashed';
  if (!isValid) return 'schema_valid does not fit the outcome';
  return row.effects.length === 0 || outcome === 'ok' ? undefined : 'only a call that succeeded has effects';
}

const CODES: Readonly<Record<AuditRow['outcome'], (code: string | null) => boolean>> = {
  running: () => false,
  ok: (code) => code === null,
  crashed: (code) => code === null,
  error: (code) => code !== null && code !== 'INVALID_PARAMS' && code !== 'TOOL_NOT_ADMITTED',
  rejected: (code) => code === 'INVALID_PARAMS' || code === 'HANDLER_ERROR',
  denied: (code) => code === 'TOOL_NOT_ADMITTED',
};
