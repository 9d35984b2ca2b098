import type { Call, Outside, Ruling, Written } from '../domains/rule.ts';
import { settle, type WritingRule } from '../domains/rule.ts';
import { RULES } from '../domains/rules.ts';
import { ARROWS } from '../domains/tasks/workflows.ts';
import { ColibriError } from '../errors.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import type { AuditRow } from '../log/row.ts';
import { formatId, rowHash, STATE_TABLES, type StateTable } from '../log/tables.ts';
import { type Claims, type Memory, type RowsById, UnknownFact } from './memory.ts';
import type { ReadEffect } from './rules/effects.ts';
import { isObject, type JsonObject } from './rules/payloads.ts';
import { ownText } from './rules/plain-row.ts';

/** A call that is judged: its arguments, its exit row and what lies beside it. */
export interface EndedCall {
  readonly exit: AuditRow;
  readonly contentHash: string;
  readonly args: JsonObject | undefined;
  /** The payload of the exit row. */
  readonly body: JsonObject | undefined;
  readonly effects: readonly ReadEffect[];
  /** Rows of state that are as this call left them, by their ids. */
  readonly rows: RowsById;
  readonly text: (digest: string) => string | undefined;
}

/** How a call went when it was run again. */
export interface Replayed {
  /** Whether the rules could judge it. */
  readonly isJudged: boolean;
  readonly difference?: Difference;
  /** What it must have written, where the rules agree with it. */
  readonly written: readonly Written[];
}

/** What the rules say of a call that says something else. */
export interface Difference {
  readonly position: number;
  /** The record it is about. */
  readonly table: string;
  readonly record: string;
  readonly message: string;
  readonly columns: readonly string[];
  /** Of a row that has another hash: what it must be, so that the columns can be named. */
  readonly row?: {
    readonly table: StateTable;
    readonly id: number;
    readonly hash: string;
    readonly expected: JsonObject;
  };
}

/** The rules of a writing tool, or undefined for a tool that only reads. */
export function writingRule(version: number, tool: string): WritingRule | undefined {
  const rules = RULES[version];
  return rules !== undefined && Object.hasOwn(rules, tool) ? rules[tool] : undefined;
}

export const NEWEST_RULES = Math.max(...Object.keys(RULES).map(Number));

/** Codes that no rule gives: the machine failed, not the call. */
const NOT_OF_RULES: ReadonlySet<string | null> = new Set([
  ...['HANDLER_ERROR', 'AUDIT_ENTER_FAILED', 'ERR_INIT_FAILED'],
  ...['ERR_STORAGE_FULL', 'ERR_STORAGE_BUSY', 'ERR_STORAGE_UNCERTAIN'],
]);

/** Runs a call again on what earlier ones left, and takes in what it wrote. */
export function replay(call: EndedCall, memory: Memory): Replayed {
  const { exit, args, body } = call;
  const rule = writingRule(exit.rules, exit.tool);
  const isRefused = exit.outcome === 'error' && !NOT_OF_RULES.has(exit.error_code);
  if (rule === undefined || (exit.outcome !== 'ok' && !isRefused)) return NOTHING;
  const claims: Claims = {
    ...{
      tool: exit.tool,
      refused: isRefused,
      position: exit.position,
      args: args ?? {},
      effects: call.effects,
      rows: call.rows,
      text: call.text,
    },
    result: objectIn(body?.result),
  };
  memory.begin(claims);
  const ruled =
    args === undefined || body === undefined ? UNKNOWN : run(rule, args, callOf(exit, body), memory);
  const difference =
    ruled.kind === 'unknown' ? moveDifference(call) : differenceOf(call, ruled, memory.assumed);
  if (ruled.kind === 'ruling' && difference === undefined) {
    memory.apply(ruled.rows, call.contentHash);
    return { isJudged: true, written: ruled.rows };
  }
  memory.learn(claims, call.contentHash, difference !== undefined);
  return { isJudged: ruled.kind !== 'unknown', written: [], ...(difference && { difference }) };
}

const NOTHING: Replayed = { isJudged: true, written: [] };

type Ruled =
  | ({ readonly kind: 'ruling' } & Ruling)
  | { readonly kind: 'refusal'; readonly code: string }
  | { readonly kind: 'fault' }
  | { readonly kind: 'unknown' };

const UNKNOWN: Ruled = { kind: 'unknown' };

function run({ rule }: WritingRule, args: JsonObject, call: Call, memory: Memory): Ruled {
  try {
    // The rule takes the arguments of its tool. Whether these are such is what running it shows.
    return { ...settle(rule(args as never, call), memory), kind: 'ruling' };
  } catch (error) {
    if (error instanceof ColibriError) return { kind: 'refusal', code: error.code };
    return error instanceof UnknownFact ? UNKNOWN : { kind: 'fault' };
  }
}

function callOf(exit: AuditRow, body: JsonObject): Call {
  const { tool, source, position } = exit;
  const outside: Outside = objectIn(body.outside) ?? {};
  // These three become part of rows that are kept.
  const [actor, process, at] = [ownText(exit.actor), ownText(exit.process), ownText(exit.at)];
  return { tool, actor, source, process, at, position, outside };
}

function differenceOf(
  call: EndedCall,
  ruled: Exclude<Ruled, { kind: 'unknown' }>,
  assumed: ReadonlySet<string>,
): Difference | undefined {
  const { exit } = call;
  const differs = (what: string, columns: readonly string[]): Difference => {
    const [first] = call.effects;
    const { table, id: record } = first ?? { table: 'actions', id: `#${exit.position}` };
    const message = `The rules do not allow what ${exit.tool} did at audit row ${exit.position}: ${what}.`;
    return { position: exit.position, table, record, message, columns };
  };
  if (ruled.kind === 'fault') return differs('its arguments are not such that the tool takes', ['args_hash']);
  if (ruled.kind === 'refusal') {
    if (ruled.code === exit.error_code) return undefined;
    const instead = exit.error_code === null ? 'it succeeded' : `it was refused with ${exit.error_code}`;
    return differs(`they refuse it with ${ruled.code}, and ${instead}`, ['error_code']);
  }
  if (exit.error_code !== null)
    return differs(`they allow it, and it was refused with ${exit.error_code}`, ['error_code']);
  const inRows = differenceInRows(call, ruled.rows);
  if (inRows !== undefined) return inRows;
  const fields = differingFields(call, ruled.result, assumed);
  return fields.length === 0
    ? undefined
    : differs(`it must have answered another ${fields.join(', ')}`, fields);
}

/** What can be said of a move from what the call says alone: whether any workflow has it. */
function moveDifference({ exit, args, body, effects }: EndedCall): Difference | undefined {
  const [from, to] = [objectIn(body?.result)?.previous_status, args?.status];
  if (
    exit.outcome !== 'ok' ||
    exit.tool !== 'task_update' ||
    typeof from !== 'string' ||
    typeof to !== 'string'
  )
    return undefined;
  const isKnown = Object.values(ARROWS).some((arrows) =>
    new Map(Object.entries(arrows)).get(from)?.some((next) => next === to),
  );
  if (isKnown) return undefined;
  const { position } = exit;
  const { table, id: record } = effects[0] ?? { table: 'actions', id: `#${position}` };
  const message = `No workflow has the move from ${from} to ${to} that ${record} made at audit row ${position}.`;
  return { position, table, record, message, columns: ['status'] };
}

const TABLES: ReadonlyMap<string, StateTable> = new Map(STATE_TABLES.map((table) => [table.name, table]));

function differenceInRows({ exit, effects }: EndedCall, rows: readonly Written[]): Difference | undefined {
  for (let i = 0; i < Math.max(effects.length, rows.length); i += 1) {
    const [effect, written] = [effects[i], rows[i]];
    const found = differenceInRow(exit.position, effect, written);
    if (found !== undefined) return found;
  }
  return undefined;
}

function differenceInRow(
  position: number,
  effect: ReadEffect | undefined,
  written: Written | undefined,
): Difference | undefined {
  const table = TABLES.get(written?.table ?? effect?.table ?? '');
  if (table === undefined) throw new Error('a rule wrote to a table that is not one of state');
  const must = written === undefined ? undefined : formatId(table, written.row.id);
  const name = (what: string, columns: readonly string[], row?: Difference['row']): Difference => {
    const record = effect?.id ?? must ?? '';
    const message = `Audit row ${position} did not write ${record} as the rules say: ${what}.`;
    return { position, table: effect?.table ?? table.name, record, message, columns, ...(row && { row }) };
  };
  if (written === undefined) return name('they write nothing there', ['effects']);
  if (effect === undefined) return name('it says nothing of it', ['effects']);
  if (effect.table !== written.table || effect.id !== must)
    return name(`they write ${must} instead`, ['effects']);
  if (effect.previous !== written.previous)
    return name(`row ${written.previous} wrote it before`, ['previous']);
  const expected = objectIn(written.row) ?? {};
  if (rowHash(table, expected) !== effect.hash)
    return name('', [], { table, id: written.row.id, hash: effect.hash, expected });
  return isSameSeal(effect, written) ? undefined : name('its seal is another', ['seal']);
}

function isSameSeal({ seal }: ReadEffect, written: Written): boolean {
  if (written.table !== 'sessions' || written.row.merkle_root === null) return seal === undefined;
  return seal?.merkle_root === written.row.merkle_root && seal.leaf_count === written.row.leaf_count;
}

function differingFields({ body }: EndedCall, result: object, assumed: ReadonlySet<string>): string[] {
  const [must, is] = [objectIn(result) ?? {}, objectIn(body?.result) ?? {}];
  if (isSameFlat(must, is)) return [];
  const fields = [...new Set([...Object.keys(must), ...Object.keys(is)])];
  const text = (value: unknown) => (value === undefined ? '' : canonicalJson(value));
  return fields.filter((field) => !assumed.has(field) && text(must[field]) !== text(is[field]));
}

/** Most results are flat. */
function isSameFlat(a: JsonObject, b: JsonObject): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => a[name] === b[name] && a[name] !== undefined)
  );
}

function objectIn(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}
