import { canonicalJson, isInexactInteger } from '../../integrity/canonical-json.ts';
import { digestUnder } from '../../integrity/digest.ts';
import type { AuditRow } from '../../log/row.ts';
import { type Finding, type Report, rowFinding } from '../finding.ts';
import type { SourceRow } from '../source.ts';
import type { Forms } from './arguments.ts';

type Payload = NonNullable<SourceRow['payload']>;
export type JsonObject = Readonly<Record<string, unknown>>;

/** The object that a body holds, before anything about it is believed. */
export function parseBody(body: string): JsonObject | undefined {
  try {
    return objectIn(JSON.parse(body));
  } catch {
    return undefined;
  }
}

/**
 * The body beside a row, where one must be and is what the row's digest says. Reports one that is missing, too many, or
 * not what was hashed. `value` is what `parseBody` made of it, `forms` are those of a tool that writes.
 */
export function checkPayload(
  row: AuditRow,
  payload: Payload | undefined,
  value: JsonObject | undefined,
  forms: Forms | undefined,
  report: Report,
): JsonObject | undefined {
  const { position } = row;
  const isWriting = forms !== undefined;
  const tell = (kind: Finding['kind'], message: string, more: Partial<Finding> = {}) => {
    report(rowFinding(kind, position, message, { table: 'action_payloads', ...more }));
    return undefined;
  };
  const digest = row.stage === 'enter' ? row.args_hash : row.result_hash;
  if (row.stage === 'exit' && (digest !== null) !== hasResult(row, isWriting))
    tell('malformed', resultMessage(row), { table: 'actions', columns: ['result_hash'] });
  if (!isKept(row, isWriting))
    return payload === undefined
      ? undefined
      : tell('stray', `There is a payload at position ${position}, but no audit row has one there.`);
  if (payload === undefined)
    return tell('missing', `The arguments or result of audit row ${position} are missing.`);
  const actual = digestUnder(payload.salt, payload.body);
  if (actual !== digest) {
    const message = `The payload of audit row ${position} is not what its digest says.`;
    if (actual === undefined) return tell('altered', message, { columns: ['salt'] });
    return tell('altered', message, { columns: ['salt', 'body'], expected: digest ?? '', actual });
  }
  if (
    value !== undefined &&
    isCanonical(value, payload.body) &&
    (row.stage === 'enter' || isExitBody(row, value, forms))
  )
    return value;
  const message = `The payload of audit row ${position} does not have the form in which Colibri keeps it.`;
  return tell('malformed', message, { columns: ['body'] });
}

/** Arguments are kept unless they were refused; so is what a writing call answered, unless it crashed. */
function isKept(row: AuditRow, isWriting: boolean): boolean {
  return row.schema_valid && (row.stage === 'enter' || (isWriting && row.outcome !== 'crashed'));
}

function hasResult(row: AuditRow, isWriting: boolean): boolean {
  return isKept(row, isWriting) || (!isWriting && row.schema_valid && row.outcome === 'ok');
}

function resultMessage({ position, tool, outcome, result_hash }: AuditRow): string {
  const what =
    result_hash === null ? 'no digest of a result, but a call' : 'the digest of a result, but no call';
  return `Audit row ${position} has ${what} of ${tool} with outcome ${outcome} has one.`;
}

/** Most bodies are what JSON.stringify gives again, and then only what it lets pass is left to look at; that is twice as fast. */
function isCanonical(value: JsonObject, body: string): boolean {
  try {
    if (!body.includes('\\u') && JSON.stringify(value) === body && isInOrder(value)) return true;
    return canonicalJson(value) === body;
  } catch {
    return false;
  }
}

/** Whether names are sorted and whole numbers are exact, all the way down. */
function isInOrder(value: unknown): boolean {
  if (typeof value === 'number') return !isInexactInteger(value);
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isInOrder);
  let before = '';
  for (const name in value) {
    if (name < before || !isInOrder((value as JsonObject)[name])) return false;
    before = name;
  }
  return true;
}

/** What was seen outside and either a result or an error, and nothing else. */
function isExitBody(row: AuditRow, body: JsonObject, forms: Forms | undefined): boolean {
  const isTold = forms?.outside ?? isEmpty;
  if (Object.keys(body).length !== 2 || !isTold(body.outside)) return false;
  if (row.outcome === 'ok') return isObject(body.result);
  const { error } = body;
  return (
    isObject(error) &&
    Object.keys(error).length === 2 &&
    error.code === row.error_code &&
    typeof error.message === 'string'
  );
}

function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function objectIn(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** The texts in a list; in a forged payload it may be anything. */
export function textsIn(list: unknown): string[] {
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : [];
}
