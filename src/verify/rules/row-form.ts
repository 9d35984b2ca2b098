import { ERRORS } from '../../errors.ts';
import { isHash } from '../../integrity/digest.ts';
import { type AuditRow, UNSAID } from '../../log/row.ts';
import { STATE_TABLES, type StateTable } from '../../log/tables.ts';
import { readPlainRow } from './plain-row.ts';

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

/**
 * The audit row that a text holds. Throws FormError unless the text is one that Colibri writes: exactly its fields, in
 * canonical form, each with a value it can have. Hostile input enters here: whoever can sign can put any text in a log.
 */
export function readRow(text: string, newestRules: number): AuditRow {
  const row = readPlainRow(text) ?? parsed(text, newestRules);
  if (row.rules > newestRules) throw new NewerRules(row.rules);
  requireValues(row);
  if (row.stage === 'enter') requireEnter(row);
  else requireExit(row);
  return row;
}

/** The row in any text, or why it is not one. */
function parsed(text: string, newestRules: number): AuditRow {
  const row = parse(text);
  if (isCount(row.rules) && Number(row.rules) > newestRules) throw new NewerRules(Number(row.rules));
  requireTypes(row);
  requireValues(row);
  // Writing the known fields again shows every other one, every space and every second spelling.
  if (formText(row) !== text) throw new FormError('it has other fields, or is not in canonical form');
  return row;
}

function parse(text: string): Partial<Record<keyof AuditRow, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...UNSAID, ...value };
  } catch {
    // Said below.
  }
  throw new FormError('it is not a JSON object');
}

const TEXT_FIELDS = ['actor', 'at', 'correlation_id', 'process', 'tool'] as const;
const OPTIONAL_TEXT_FIELDS = ['args_hash', 'error_code', 'result_hash'] as const;

function requireTypes(row: Partial<Record<keyof AuditRow, unknown>>): asserts row is AuditRow {
  for (const field of TEXT_FIELDS)
    if (typeof row[field] !== 'string' || row[field] === '') throw new FormError(`${field} is not a text`);
  for (const field of OPTIONAL_TEXT_FIELDS)
    if (row[field] !== null && typeof row[field] !== 'string') throw new FormError(`${field} is not a text`);
  if (!isCount(row.position) || !isCount(row.sequence_no) || !isCount(row.rules))
    throw new FormError('position, sequence_no or rules is not a whole number above 0');
  if (typeof row.schema_valid !== 'boolean') throw new FormError('schema_valid is not true or false');
  if (row.stage !== 'enter' && row.stage !== 'exit') throw new FormError('stage is not enter or exit');
  if (row.source !== 'mcp' && row.source !== 'cli') throw new FormError('source is not mcp or cli');
  if (!OUTCOMES.has(row.outcome)) throw new FormError('outcome is not one that a call has');
  const { duration_ms: duration, repaired } = row;
  if (duration !== null && !(Number.isSafeInteger(duration) && Number(duration) >= 0))
    throw new FormError('duration_ms is not a whole number of at least 0');
  if (!Array.isArray(repaired) || !repaired.every((path) => typeof path === 'string'))
    throw new FormError('repaired is not a list of texts');
  if (!Array.isArray(row.effects) || !row.effects.every(isEffect))
    throw new FormError('effects is not a list of written rows');
}

const OUTCOMES: ReadonlySet<unknown> = new Set(['running', 'ok', 'error', 'rejected', 'denied', 'crashed']);

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

const TABLES: ReadonlyMap<unknown, StateTable> = new Map(STATE_TABLES.map((table) => [table.name, table]));

/** At least four digits, and no more zeros before them than that takes. */
const ID = /^[TΘAR]-(?:\d{4}|[1-9]\d{4,14})$/;

function isEffect(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { table: name, id, hash, previous, seal } = value as Readonly<Record<string, unknown>>;
  const table = TABLES.get(name);
  return (
    table !== undefined &&
    typeof id === 'string' &&
    ID.test(id) &&
    id.startsWith(table.prefix) &&
    typeof hash === 'string' &&
    isHash(hash) &&
    (previous === 0 || isCount(previous)) &&
    (seal === undefined || isSeal(seal))
  );
}

function isSeal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { leaf_count, merkle_root } = value as Readonly<Record<string, unknown>>;
  return isCount(leaf_count) && typeof merkle_root === 'string' && isHash(merkle_root);
}

function formText(row: AuditRow): string {
  // Hashes, times, codes and ids were checked and need no escapes.
  return `{"actor":${quote(row.actor)},${plain('args_hash', row.args_hash)}"at":"${row.at}","correlation_id":"${row.correlation_id}",${row.duration_ms === null ? '' : `"duration_ms":${row.duration_ms},`}${effectsText(row.effects)}${plain('error_code', row.error_code)}"outcome":"${row.outcome}","position":${row.position},"process":${quote(row.process)},${repairedText(row.repaired)}${plain('result_hash', row.result_hash)}"rules":${row.rules},"schema_valid":${row.schema_valid},"sequence_no":${row.sequence_no},"source":"${row.source}","stage":"${row.stage}","tool":${quote(row.tool)}}`;
}

function effectsText(effects: AuditRow['effects']): string {
  let text = '';
  for (const { hash, id, previous, seal, table } of effects) {
    const sealed =
      seal === undefined
        ? ''
        : `"seal":{"leaf_count":${seal.leaf_count},"merkle_root":"${seal.merkle_root}"},`;
    text += `${text === '' ? '' : ','}{"hash":"${hash}","id":"${id}","previous":${previous},${sealed}"table":"${table}"}`;
  }
  return text === '' ? '' : `"effects":[${text}],`;
}

function repairedText(items: readonly string[]): string {
  return items.length === 0 ? '' : `"repaired":[${items.map(quote).join(',')}],`;
}

function plain(field: string, text: string | null): string {
  return text === null ? '' : `"${field}":"${text}",`;
}

const PLAIN = /^[ !#-[\]-~]*$/;

function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  if (!text.isWellFormed()) throw new FormError('a text holds a lone surrogate');
  return JSON.stringify(text);
}

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TOOL_CHARS_MAX = 64;

function requireValues(row: AuditRow): void {
  if (!isInstant(row.at)) throw new FormError('at is not an instant in UTC with milliseconds');
  if (!UUID_V4.test(row.correlation_id)) throw new FormError('correlation_id is not a version 4 UUID');
  if (row.tool.length > TOOL_CHARS_MAX) throw new FormError('tool is longer than 64 characters');
  if (row.args_hash !== null && !isHash(row.args_hash)) throw new FormError('args_hash is not a SHA-256');
  if (row.result_hash !== null && !isHash(row.result_hash))
    throw new FormError('result_hash is not a SHA-256');
  if (row.error_code !== null && !Object.hasOwn(ERRORS, row.error_code))
    throw new FormError('error_code is not one of Colibri’s');
}

const INSTANT = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;
const DAY_AT = 8;

/** Whether a text is a time as Colibri writes it, and one that exists: there is no 30 February. */
function isInstant(text: string): boolean {
  if (!INSTANT.test(text)) return false;
  // Every month has 28 days.
  return text.slice(DAY_AT, DAY_AT + 2) <= '28' || new Date(Date.parse(text)).toISOString() === text;
}

function requireEnter(row: AuditRow): void {
  if (row.outcome !== 'running') throw new FormError('an enter row has the outcome running');
  if (row.sequence_no !== row.position)
    throw new FormError('an enter row begins the call of its own position');
  if (row.args_hash === null) throw new FormError('an enter row has the digest of its arguments');
  if (
    row.error_code !== null ||
    row.duration_ms !== null ||
    row.result_hash !== null ||
    row.effects.length > 0
  )
    throw new FormError('an enter row has no error_code, duration_ms, result_hash or effects');
}

function requireExit(row: AuditRow): void {
  if (row.outcome === 'running') throw new FormError('an exit row says how the call ended');
  if (row.sequence_no >= row.position) throw new FormError('an exit row ends a call that began before it');
  if (row.args_hash !== null || row.repaired.length > 0)
    throw new FormError('an exit row has no args_hash and no repaired');
  if ((row.duration_ms === null) !== (row.outcome === 'crashed'))
    throw new FormError('an exit row has a duration_ms unless the call crashed');
  if (!CODES[row.outcome](row.error_code))
    throw new FormError(`error_code does not fit the outcome ${row.outcome}`);
  const mayBeInvalid = row.outcome === 'rejected' || row.outcome === 'crashed';
  if (row.outcome === 'rejected' ? row.schema_valid : !row.schema_valid && !mayBeInvalid)
    throw new FormError(`schema_valid does not fit the outcome ${row.outcome}`);
  if (row.effects.length > 0 && row.outcome !== 'ok')
    throw new FormError('only a call that succeeded has effects');
}

type Ended = Exclude<AuditRow['outcome'], 'running'>;

const CODES: Readonly<Record<Ended, (code: string | null) => boolean>> = {
  ok: (code) => code === null,
  crashed: (code) => code === null,
  error: (code) => code !== null && code !== 'INVALID_PARAMS' && code !== 'TOOL_NOT_ADMITTED',
  rejected: (code) => code === 'INVALID_PARAMS' || code === 'HANDLER_ERROR',
  denied: (code) => code === 'TOOL_NOT_ADMITTED',
};
