import { canonicalJson, isInexactInteger } from '../../integrity/canonical-json.ts';
import { isSalt, saltedDigest } from '../../integrity/salted.ts';
import type { AuditRow } from '../../log/row.ts';
import { auditRow, type Finding, type Report } from '../finding.ts';
import type { SourceRow } from '../source.ts';
import { isOutside } from './outside.ts';

type Payload = NonNullable<SourceRow['payload']>;
export type JsonObject = Readonly<Record<string, unknown>>;

/** The object that a body holds, before anything about it is believed. */
export function parseBody(body: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The body beside a row, where one must be and is what the row's digest says. Reports one that is missing, too many, or
 * not what was hashed. `value` is what `parseBody` made of it.
 */
export function checkPayload(
  row: AuditRow,
  payload: Payload | undefined,
  value: JsonObject | undefined,
  isWriting: boolean,
  report: Report,
): JsonObject | undefined {
  const { position } = row;
  const base = { table: 'action_payloads', record: auditRow(position), position };
  const digest = row.stage === 'enter' ? row.args_hash : row.result_hash;
  if (row.stage === 'exit' && (digest !== null) !== hasResult(row, isWriting))
    report({
      ...base,
      kind: 'malformed',
      table: 'actions',
      columns: ['result_hash'],
      message: resultMessage(row),
    });
  if (!isKept(row, isWriting)) {
    const message = `There is a payload at position ${position} that no audit row speaks of.`;
    if (payload !== undefined) report({ ...base, kind: 'stray', message });
    return undefined;
  }
  if (payload === undefined) {
    const message = `What audit row ${position} was called with or answered is missing.`;
    report({ ...base, kind: 'missing', message });
    return undefined;
  }
  const fault = faultOf(payload, digest);
  if (fault === undefined) return readBody(row, payload.body, value, base, report);
  report({
    ...base,
    ...fault,
    kind: 'altered',
    message: `What lies beside audit row ${position} is not what its digest says.`,
  });
  return undefined;
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

function faultOf(
  { salt, body }: Payload,
  digest: string | null,
): Pick<Finding, 'columns' | 'expected' | 'actual'> | undefined {
  if (!isSalt(salt)) return { columns: ['salt'] };
  const actual = saltedDigest(salt, body);
  return actual === digest ? undefined : { columns: ['salt', 'body'], expected: digest ?? '', actual };
}

function readBody(
  row: AuditRow,
  body: string,
  value: JsonObject | undefined,
  base: { readonly table: string; readonly record: string; readonly position: number },
  report: Report,
): JsonObject | undefined {
  const isFit =
    value !== undefined && isCanonical(value, body) && (row.stage === 'enter' || isExitBody(row, value));
  if (isFit) return value;
  const message = `What lies beside audit row ${row.position} does not have the form in which Colibri keeps it.`;
  report({ ...base, kind: 'malformed', columns: ['body'], message });
  return undefined;
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
  for (const [name, member] of Object.entries(value)) {
    if (name < before || !isInOrder(member)) return false;
    before = name;
  }
  return true;
}

/** What was seen outside and either a result or an error, and nothing else. */
function isExitBody(row: AuditRow, body: JsonObject): boolean {
  if (Object.keys(body).length !== 2 || !isOutside(row.rules, row.tool, body.outside)) return false;
  if (row.outcome === 'ok') return isObject(body.result);
  const { error } = body;
  return (
    isObject(error) &&
    Object.keys(error).length === 2 &&
    error.code === row.error_code &&
    typeof error.message === 'string'
  );
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
