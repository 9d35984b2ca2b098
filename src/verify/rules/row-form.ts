import { ERRORS } from '../../errors.ts';
import { isHash } from '../../integrity/digest.ts';
import { type AuditRow, auditText, UNSAID } from '../../log/row.ts';
import { STATE_TABLES, type StateTable } from '../../log/tables.ts';
import type { Effect } from '../../tool.ts';

/** Says in its message what is wrong with the text of an audit row. */
export class FormError extends Error {}

/** The row was written under rules that this version does not know, and may have any form. */
export class NewerRules extends Error {
  readonly version: number;

  constructor(version: number) {
    super(`rules version ${version}`);
    this.version = version;
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
  const row = plainRow(text) ?? parsedRow(text, newestRules);
  if (row.rules > newestRules) throw new NewerRules(row.rules);
  for (const [fits, message] of row.stage === 'enter' ? ENTER : EXIT)
    if (!fits(row)) throw new FormError(message);
  return row;
}

// In a text without escapes the layout alone is the canonical form: nothing is left that could be written in two ways.
// One pass of a regular expression takes half the time of parsing the text and writing it again. Whatever it does not
// match is left to the reader that can say why.

const PLAIN = '[^"\\\\\\u0000-\\u001f\\ud800-\\udfff]';
const HASH = '[0-9a-f]{64}';
const COUNT = '[1-9][0-9]{0,14}';
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const INSTANT =
  '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d\\.\\d{3}Z';
const ROW = new RegExp(
  `^\\{"actor":"(${PLAIN}+)",(?:"args_hash":"(${HASH})",)?"at":"(${INSTANT})","correlation_id":"(${UUID})",(?:"duration_ms":(0|${COUNT}),)?(?:"effects":\\[([^\\]]+)\\],)?(?:"error_code":"([A-Z_]+)",)?"outcome":"([a-z]+)","position":(${COUNT}),"process":"(${PLAIN}+)",(?:"result_hash":"(${HASH})",)?"rules":([1-9][0-9]{0,8}),"schema_valid":(true|false),"sequence_no":(${COUNT}),"source":"(mcp|cli)","stage":"(enter|exit)","tool":"(${PLAIN}{1,64})"\\}$`,
);

/** The row in a text that has only the fields of one, without escapes, or undefined. */
function plainRow(text: string): ReadRow | undefined {
  const match = ROW.exec(text);
  if (match === null) return undefined;
  const [at = '', duration, code = null] = [match[3], match[5], match[7]];
  const outcome = OUTCOMES.get(match[8]);
  const effects = match[6] === undefined ? NONE : plainEffects(match[6]);
  if (outcome === undefined || effects === undefined || !isDay(at) || !isCode(code)) return undefined;
  return {
    actor: match[1] ?? '',
    args_hash: match[2] ?? null,
    at,
    correlation_id: match[4] ?? '',
    duration_ms: duration === undefined ? null : Number(duration),
    effects,
    error_code: code,
    outcome,
    position: Number(match[9]),
    process: match[10] ?? '',
    repaired: NONE,
    result_hash: match[11] ?? null,
    rules: Number(match[12]),
    schema_valid: match[13] === 'true',
    sequence_no: Number(match[14]),
    source: match[15] === 'cli' ? 'cli' : 'mcp',
    stage: match[16] === 'enter' ? 'enter' : 'exit',
    tool: match[17] ?? '',
  };
}

const NONE: readonly never[] = [];

const EFFECT = new RegExp(
  `\\{"hash":"(${HASH})","id":"([^"]+)","previous":(0|${COUNT}),(?:"seal":\\{"leaf_count":(${COUNT}),"merkle_root":"(${HASH})"\\},)?"table":"([a-z_]+)"\\}(?:,(?=\\{)|$)`,
  'y',
);

function plainEffects(inner: string): ReadEffect[] | undefined {
  const effects: ReadEffect[] = [];
  for (EFFECT.lastIndex = 0; EFFECT.lastIndex < inner.length; ) {
    const [, hash = '', id = '', previous, leaves, merkle_root = '', table] = EFFECT.exec(inner) ?? [];
    const seal = leaves === undefined ? undefined : { leaf_count: Number(leaves), merkle_root };
    const effect = asEffect(hash, id, Number(previous), TABLES.get(table), seal);
    if (effect === undefined) return undefined;
    effects.push(effect);
  }
  return effects;
}

const TABLES: ReadonlyMap<unknown, StateTable> = new Map(STATE_TABLES.map((table) => [table.name, table]));

/** At least four digits, and no more zeros before them than that takes. */
const ID = /^.-(?:\d{4}|[1-9]\d{4,14})$/;
/** `T-0001` has two characters before its number. */
const ID_PREFIX_CHARS = 2;

function asEffect(
  hash: string,
  id: string,
  previous: number,
  of: StateTable | undefined,
  seal: Effect['seal'],
): ReadEffect | undefined {
  if (of === undefined || !id.startsWith(of.prefix) || !ID.test(id)) return undefined;
  const number = Number(id.slice(ID_PREFIX_CHARS));
  if (number === 0) return undefined;
  const effect = { table: of.name, id, hash, previous, of, number };
  return seal === undefined ? effect : { ...effect, seal };
}

/** The row in any text, or why it is not one. */
function parsedRow(text: string, newestRules: number): ReadRow {
  const row = parse(text);
  if (isCount(row.rules) && Number(row.rules) > newestRules) throw new NewerRules(Number(row.rules));
  for (const [field, fits, message] of FIELDS)
    if (!fits(row[field])) throw new FormError(`${field} ${message}`);
  // Writing the known fields again shows every other one, every space and every second spelling.
  if (!isWrittenAs(row, text)) throw new FormError('it has other fields, or is not in canonical form');
  const { effects, ...rest } = row as unknown as AuditRow;
  return { ...rest, effects: effects.flatMap((effect) => effectOf(effect) ?? []) };
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...UNSAID, ...value };
  } catch {
    // Said below.
  }
  throw new FormError('it is not a JSON object');
}

function isWrittenAs(row: Readonly<Record<string, unknown>>, text: string): boolean {
  try {
    return FIELDS.length === Object.keys(row).length && auditText(row) === text;
  } catch {
    return false;
  }
}

type Fits = (value: unknown) => boolean;

const isText: Fits = (value) => typeof value === 'string' && value !== '';
const isHashOrNone: Fits = (value) => value === null || (typeof value === 'string' && isHash(value));
const isCount: Fits = (value) => Number.isSafeInteger(value) && Number(value) > 0;
const isCountOrZero: Fits = (value) => value === 0 || isCount(value);
const oneOf =
  (...values: readonly unknown[]): Fits =>
  (value) =>
    values.includes(value);
const matches = (pattern: string): Fits => {
  const whole = new RegExp(`^${pattern}$`);
  return (value) => typeof value === 'string' && whole.test(value);
};

const OUTCOMES: ReadonlyMap<unknown, AuditRow['outcome']> = new Map(
  (['running', 'ok', 'error', 'rejected', 'denied', 'crashed'] as const).map((outcome) => [outcome, outcome]),
);

const isInstant = matches(INSTANT);
const DAY_AT = 8;

/** There is no 30 February; every month has 28 days. */
function isDay(at: string): boolean {
  return at.slice(DAY_AT, DAY_AT + 2) <= '28' || new Date(Date.parse(at)).toISOString() === at;
}

function isCode(code: unknown): boolean {
  return code === null || (typeof code === 'string' && Object.hasOwn(ERRORS, code));
}

const TOOL_CHARS_MAX = 64;

/** What each field can be. */
const FIELDS: readonly (readonly [field: keyof AuditRow, fits: Fits, message: string])[] = [
  ['actor', isText, 'is not a text'],
  ['process', isText, 'is not a text'],
  [
    'tool',
    (value) => isText(value) && String(value).length <= TOOL_CHARS_MAX,
    'is not a name of 1 to 64 characters',
  ],
  ['position', isCount, 'is not a whole number above 0'],
  ['sequence_no', isCount, 'is not a whole number above 0'],
  ['rules', isCount, 'is not a whole number above 0'],
  ['schema_valid', oneOf(true, false), 'is not true or false'],
  ['stage', oneOf('enter', 'exit'), 'is not enter or exit'],
  ['source', oneOf('mcp', 'cli'), 'is not mcp or cli'],
  ['outcome', (value) => OUTCOMES.has(value), 'is not one that a call has'],
  ['duration_ms', (value) => value === null || isCountOrZero(value), 'is not a whole number of at least 0'],
  [
    'repaired',
    (value) => Array.isArray(value) && value.every((path) => typeof path === 'string'),
    'is not a list of texts',
  ],
  ['effects', (value) => Array.isArray(value) && value.every(effectOf), 'is not a list of written rows'],
  ['at', (value) => isInstant(value) && isDay(String(value)), 'is not an instant in UTC with milliseconds'],
  ['correlation_id', matches(UUID), 'is not a version 4 UUID'],
  ['args_hash', isHashOrNone, 'is not a SHA-256'],
  ['result_hash', isHashOrNone, 'is not a SHA-256'],
  ['error_code', isCode, 'is not one of Colibri’s'],
];

const EFFECT_FIELDS: ReadonlySet<string> = new Set(['table', 'id', 'hash', 'previous', 'seal']);

function effectOf(value: unknown): ReadEffect | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { table, id, hash, previous, seal } = value as Readonly<Record<string, unknown>>;
  const fits =
    Object.keys(value).every((name) => EFFECT_FIELDS.has(name)) &&
    typeof id === 'string' &&
    typeof hash === 'string' &&
    isHash(hash) &&
    isCountOrZero(previous) &&
    (seal === undefined || isSeal(seal));
  return fits ? asEffect(hash, id, Number(previous), TABLES.get(table), seal as Effect['seal']) : undefined;
}

function isSeal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false;
  const { leaf_count, merkle_root } = value as Readonly<Record<string, unknown>>;
  return isCount(leaf_count) && typeof merkle_root === 'string' && isHash(merkle_root);
}

type Condition = readonly [holds: (row: AuditRow) => boolean, message: string];

const ENTER: readonly Condition[] = [
  [({ outcome }) => outcome === 'running', 'an enter row has the outcome running'],
  [(row) => row.sequence_no === row.position, 'an enter row begins the call of its own position'],
  [({ args_hash }) => args_hash !== null, 'an enter row has the digest of its arguments'],
  [
    (row) =>
      row.error_code === null &&
      row.duration_ms === null &&
      row.result_hash === null &&
      row.effects.length === 0,
    'an enter row has no error_code, duration_ms, result_hash or effects',
  ],
];

const EXIT: readonly Condition[] = [
  [({ outcome }) => outcome !== 'running', 'an exit row says how the call ended'],
  [(row) => row.sequence_no < row.position, 'an exit row ends a call that began before it'],
  [
    (row) => row.args_hash === null && row.repaired.length === 0,
    'an exit row has no args_hash and no repaired',
  ],
  [
    (row) => (row.duration_ms === null) === (row.outcome === 'crashed'),
    'an exit row has a duration_ms unless the call crashed',
  ],
  [({ outcome, error_code }) => CODES[outcome](error_code), 'error_code does not fit the outcome'],
  [
    ({ outcome, schema_valid }) =>
      outcome === 'rejected' ? !schema_valid : schema_valid || outcome === 'crashed',
    'schema_valid does not fit the outcome',
  ],
  [
    ({ effects, outcome }) => effects.length === 0 || outcome === 'ok',
    'only a call that succeeded has effects',
  ],
];

const CODES: Readonly<Record<AuditRow['outcome'], (code: string | null) => boolean>> = {
  running: () => false,
  ok: (code) => code === null,
  crashed: (code) => code === null,
  error: (code) => code !== null && code !== 'INVALID_PARAMS' && code !== 'TOOL_NOT_ADMITTED',
  rejected: (code) => code === 'INVALID_PARAMS' || code === 'HANDLER_ERROR',
  denied: (code) => code === 'TOOL_NOT_ADMITTED',
};
