import type { CallOutcome } from '../audit-sink.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { Effect } from '../tool.ts';

/** The version of the rules that this build writes by. The verifier keeps every released one. */
export const RULES_VERSION = 1;

/** Which door a call came through. */
export type CallSource = 'mcp' | 'cli';

/** One audit row. Its text leaves out what is null and lists that are empty. */
export interface AuditRow {
  readonly position: number;
  /** Position of the call's enter row; the two rows of a call share it. */
  readonly sequence_no: number;
  readonly stage: 'enter' | 'exit';
  readonly tool: string;
  readonly actor: string;
  readonly source: CallSource;
  readonly correlation_id: string;
  readonly at: string;
  readonly rules: number;
  readonly schema_valid: boolean;
  readonly args_hash: string | null;
  readonly outcome: 'running' | CallOutcome;
  readonly error_code: string | null;
  readonly duration_ms: number | null;
  readonly result_hash: string | null;
  readonly effects: readonly Effect[];
  readonly process: string;
  readonly repaired: readonly string[];
}

/** The row as it is stored. `text` is hashed as it stands and never serialised again. */
export interface StoredRow {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly chain_hash: string;
}

/** Whether the commit that holds this exit row also files its checkpoint for good: a seal, and every act of the owner. */
export function filesCheckpoint({
  stage,
  tool,
  outcome,
}: Pick<AuditRow, 'stage' | 'tool' | 'outcome'>): boolean {
  return stage === 'exit' && outcome === 'ok' && (tool === 'merkle_finalize' || tool.startsWith('owner_'));
}

/** How much of a time says which day and which second it is in. */
export const [DAY_CHARS, SECOND_CHARS] = ['2026-01-01'.length, '2026-01-01T00:00:00'.length];

/**
 * When an actor was last seen, to the second: the first of its rows in that second, so that not every commit stores it. A
 * clock that was days ahead may be set right; any other time that is before the last one does not count.
 */
export function seenAt(before: string | undefined, at: string): string {
  const isSameDay = before?.slice(0, DAY_CHARS) === at.slice(0, DAY_CHARS);
  return before !== undefined && isSameDay && at.slice(0, SECOND_CHARS) <= before.slice(0, SECOND_CHARS)
    ? before
    : at;
}

/** The chain hash before the first row. */
export const GENESIS = '0'.repeat(64);

export function storeRow(
  row: Pick<AuditRow, 'position'> & Partial<AuditRow>,
  previousChainHash: string,
): StoredRow {
  const text = auditText(row);
  const content_hash = sha256Hex(text);
  const chain_hash = chainHash(content_hash, previousChainHash);
  return { position: row.position, text, content_hash, chain_hash };
}

/** What a row leaves out of its text where it has nothing to say. */
export const UNSAID = {
  args_hash: null,
  duration_ms: null,
  effects: [],
  error_code: null,
  repaired: [],
  result_hash: null,
} as const satisfies Partial<AuditRow>;

/** The fields in the order of canonical JSON: sorting them anew would take as long as the hashes of a row. */
const FIELDS =
  `actor args_hash at correlation_id duration_ms effects error_code outcome position process repaired
  result_hash rules schema_valid sequence_no source stage tool`
    .split(/\s+/)
    .map((name) => ({ name: name as keyof AuditRow, label: `"${name}":` }));

/** The canonical text of a row: what is hashed. */
export function auditText(row: Partial<AuditRow>): string {
  if (isRegular(row)) return regularText(row);
  // A part of it may come from a row that somebody forged.
  let text = '';
  for (const { name, label } of FIELDS) {
    const value = row[name];
    if (value === null || (value === undefined && !(name in row))) continue;
    if (typeof value === 'object' && value.length === 0) continue;
    text += (text === '' ? '{' : ',') + label + canonicalJson(value);
  }
  return text === '' ? '{}' : `${text}}`;
}

/**
 * The same of a row whose fields are what they should be. They are in their order, and JSON leaves out what is undefined: V8
 * writes it in two thirds of the time of its parts, and with a quarter of the garbage.
 */
function regularText(row: AuditRow): string {
  return JSON.stringify({
    actor: row.actor,
    args_hash: row.args_hash ?? undefined,
    at: row.at,
    correlation_id: row.correlation_id,
    duration_ms: row.duration_ms ?? undefined,
    effects: row.effects.length === 0 ? undefined : row.effects.map(inOrder),
    error_code: row.error_code ?? undefined,
    outcome: row.outcome,
    position: row.position,
    process: row.process,
    repaired: row.repaired.length === 0 ? undefined : row.repaired,
    result_hash: row.result_hash ?? undefined,
    rules: row.rules,
    schema_valid: row.schema_valid,
    sequence_no: row.sequence_no,
    source: row.source,
    stage: row.stage,
    tool: row.tool,
  });
}

function inOrder({ hash, id, previous, table }: Effect): Effect {
  return { hash, id, previous, table };
}

/** Whether JSON carries every field as it is. */
function isRegular(row: Partial<AuditRow>): row is AuditRow {
  return (
    isText(row.actor) &&
    isText(row.tool) &&
    isText(row.source) &&
    isText(row.stage) &&
    isText(row.at) &&
    isText(row.correlation_id) &&
    isText(row.outcome) &&
    isText(row.process) &&
    (row.args_hash === null || isText(row.args_hash)) &&
    (row.error_code === null || isText(row.error_code)) &&
    (row.result_hash === null || isText(row.result_hash)) &&
    (row.duration_ms === null || Number.isSafeInteger(row.duration_ms)) &&
    Number.isSafeInteger(row.position) &&
    Number.isSafeInteger(row.sequence_no) &&
    Number.isSafeInteger(row.rules) &&
    typeof row.schema_valid === 'boolean' &&
    Array.isArray(row.effects) &&
    row.effects.every(isRegularEffect) &&
    Array.isArray(row.repaired) &&
    row.repaired.every(isText)
  );
}

/** A seal is rare, and is written in its parts. */
function isRegularEffect({ hash, id, previous, seal, table }: Effect): boolean {
  return isText(hash) && isText(id) && isText(table) && Number.isSafeInteger(previous) && seal === undefined;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed();
}

/** The row in a text of our own. Texts of others are for the verifier (`verify/rules/row-form.ts`). */
export function parseAuditText(text: string): AuditRow {
  return { ...UNSAID, ...(JSON.parse(text) as Omit<AuditRow, keyof typeof UNSAID>) };
}

/** Both hashes as 64 hex characters each, one after the other. */
export function chainHash(contentHash: string, previousChainHash: string): string {
  return sha256Hex(contentHash + previousChainHash);
}
