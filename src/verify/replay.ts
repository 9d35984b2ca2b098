import type { Call, Ruling, Written } from '../domains/rule.ts';
import { settle, type WritingRule } from '../domains/rule.ts';
import { RULES } from '../domains/rules.ts';
import { ARROWS } from '../domains/tasks/workflows.ts';
import { ColibriError } from '../errors.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { formatId, rowText, type StateTable, tableNamed } from '../log/tables.ts';
import { type Finding, rowFinding } from './finding.ts';
import { type EndedCall, type Memory, UnknownFact, Untold } from './memory.ts';
import { ownText } from './own-text.ts';
import { ofTool } from './rules/arguments.ts';
import { type JsonObject, objectIn } from './rules/payloads.ts';
import type { ReadEffect, ReadRow } from './rules/row-form.ts';

/** How a call went when it was run again. */
export interface Replayed {
  /** Whether the rules could judge it. */
  readonly isJudged: boolean;
  readonly difference?: Difference;
  /** What it must have written, where the rules agree with it, and the texts of these rows; one for each effect. */
  readonly written: readonly Written[];
  readonly texts: readonly string[];
}

/** What the rules say of a call that says something else. */
export interface Difference extends Finding {
  /** Of a row that has another hash: what it must be, so that the columns can be named. The message then lacks its end. */
  readonly row?: {
    readonly of: StateTable;
    readonly id: number;
    readonly hash: string;
    readonly expected: JsonObject;
  };
}

/** The rules of a writing tool, or undefined for a tool that only reads. */
export function writingRule(version: number, tool: string): WritingRule | undefined {
  return ofTool<WritingRule>(RULES, version, tool);
}

export const NEWEST_RULES = Math.max(...Object.keys(RULES).map(Number));

/** Codes that no rule gives: the machine failed, not the call. */
const NOT_OF_RULES: ReadonlySet<string | null> = new Set([
  ...['HANDLER_ERROR', 'AUDIT_ENTER_FAILED', 'ERR_INIT_FAILED'],
  ...['ERR_STORAGE_FULL', 'ERR_STORAGE_BUSY', 'ERR_STORAGE_UNCERTAIN'],
]);

/** Whether the rules, not the machine, made the call fail. */
export function isRefused({ outcome, error_code }: ReadRow): boolean {
  return outcome === 'error' && !NOT_OF_RULES.has(error_code);
}

/** Runs a call again on what earlier ones left, and takes in what it wrote. */
export function replay(rule: WritingRule, call: EndedCall, memory: Memory): Replayed {
  if (call.exit.outcome !== 'ok' && !call.refused) return NOTHING;
  memory.begin(call);
  const ruled = run(rule, call, memory);
  const texts: string[] = [];
  const difference =
    ruled === undefined ? moveDifference(call) : differenceOf(call, ruled, memory.assumed, texts);
  if (ruled !== undefined && 'rows' in ruled && difference === undefined) {
    memory.apply(ruled.rows, call.contentHash);
    return { isJudged: true, written: ruled.rows, texts };
  }
  memory.learn(call, difference !== undefined);
  return { isJudged: ruled !== undefined, written: [], texts: [], ...(difference && { difference }) };
}

const NOTHING: Replayed = { isJudged: true, written: [], texts: [] };

/** What the rules say: a ruling, the code of a refusal, or that the arguments are not such that the tool takes. */
type Ruled = Ruling | { readonly code: string | undefined; readonly untold?: string };

/** Undefined where the rules cannot judge the call. */
function run(rule: WritingRule, { exit, args, body }: EndedCall, memory: Memory): Ruled | undefined {
  if (args === undefined || body === undefined) return undefined;
  const { actor, source, process, sequence_no: enter, position } = exit;
  const outside = objectIn(body.outside) ?? {};
  // It becomes part of rows that are kept.
  const call: Call = { actor, source, process, at: ownText(exit.at), enter, position, outside };
  try {
    // The rule takes the arguments of its tool. Whether these are such is what running it shows.
    return settle(rule.rule(args as never, call), memory);
  } catch (error) {
    if (error instanceof UnknownFact) return undefined;
    if (error instanceof Untold) return { code: undefined, untold: error.message };
    return { code: error instanceof ColibriError ? error.code : undefined };
  }
}

/** Adds to `texts` those of the rows that it must have written. */
function differenceOf(
  call: EndedCall,
  ruled: Ruled,
  assumed: ReadonlySet<string>,
  texts: string[],
): Difference | undefined {
  const { exit } = call;
  if ('code' in ruled) {
    if (ruled.untold !== undefined)
      return notAllowed(exit, `it does not say ${ruled.untold}`, ['result_hash']);
    if (ruled.code === undefined)
      return notAllowed(exit, 'the tool does not accept its arguments', ['args_hash']);
    if (ruled.code === exit.error_code) return undefined;
    const instead = exit.error_code === null ? 'it succeeded' : `it was refused with ${exit.error_code}`;
    return notAllowed(exit, `they refuse it with ${ruled.code}, and ${instead}`, ['error_code']);
  }
  if (exit.error_code !== null)
    return notAllowed(exit, `they allow it, and it was refused with ${exit.error_code}`, ['error_code']);
  for (let i = 0; i < exit.effects.length || i < ruled.rows.length; i += 1) {
    const found = differenceInRow(exit.position, exit.effects[i], ruled.rows[i], texts);
    if (found !== undefined) return found;
  }
  const fields = differingFields(call, ruled.result, assumed);
  if (fields.length === 0) return undefined;
  return notAllowed(exit, `its answer should have had another ${fields.join(', ')}`, fields);
}

function notAllowed(exit: ReadRow, what: string, columns: readonly string[]): Difference {
  return forbidden(
    exit,
    `The rules do not allow what ${exit.tool} did at audit row ${exit.position}: ${what}.`,
    columns,
  );
}

/** A finding about what a call did. It is about the first record that the call wrote, or about the call itself. */
export function forbidden(
  { position, effects: [first] }: ReadRow,
  message: string,
  columns: readonly string[],
) {
  const subject = first === undefined ? {} : { table: first.table, record: first.id };
  return rowFinding('forbidden', position, message, { ...subject, columns });
}

/** What can be said of a move from what the call says alone: whether any workflow has it. */
function moveDifference({ exit, args, result }: EndedCall): Difference | undefined {
  const [from, to] = [result?.previous_status, args?.status];
  const isMove = exit.outcome === 'ok' && exit.tool === 'task_update';
  if (!isMove || typeof from !== 'string' || typeof to !== 'string') return undefined;
  // A takeover with the status that the task has takes the hold and moves nothing.
  if (args?.takeover === true && from === to) return undefined;
  const isKnown = Object.values(ARROWS).some((arrows) =>
    new Map(Object.entries(arrows)).get(from)?.some((next) => next === to),
  );
  if (isKnown) return undefined;
  const message = `No workflow has the move from ${from} to ${to} that audit row ${exit.position} says was made.`;
  return forbidden(exit, message, ['status']);
}

function differenceInRow(
  position: number,
  effect: ReadEffect | undefined,
  written: Written | undefined,
  texts: string[],
): Difference | undefined {
  const of = written === undefined ? undefined : tableNamed(written.table);
  const due = () => (of === undefined || written === undefined ? 'nothing' : formatId(of, written.row.id));
  const [table = '', record] = [effect?.table ?? written?.table, effect?.id ?? due()];
  const tell = (what: string, ...columns: string[]): Difference => {
    const message = `Audit row ${position} did not write ${record} as the rules say${what}`;
    return rowFinding('forbidden', position, message, { table, record, columns });
  };
  if (of === undefined || written === undefined || effect?.of !== of || effect.number !== written.row.id)
    return tell(`: they write ${due()} there, and it says ${effect?.id ?? 'nothing'}.`, 'effects');
  if (effect.previous !== written.previous)
    return tell(`: row ${written.previous} wrote it before.`, 'previous');
  const expected = objectIn(written.row) ?? {};
  const text = rowText(of, expected);
  texts.push(text);
  if (sha256Hex(text) !== effect.hash)
    return { ...tell(''), row: { of, id: effect.number, hash: effect.hash, expected } };
  return isSameSeal(effect, written) ? undefined : tell(': its seal is another.', 'seal');
}

function isSameSeal({ seal }: ReadEffect, written: Written): boolean {
  if (written.table !== 'sessions' || written.row.merkle_root === null) return seal === undefined;
  return seal?.merkle_root === written.row.merkle_root && seal.leaf_count === written.row.leaf_count;
}

function differingFields(
  { result: is = {} }: EndedCall,
  result: object,
  assumed: ReadonlySet<string>,
): string[] {
  const must = objectIn(result) ?? {};
  if (isSameFlat(must, is)) return [];
  const fields = [...new Set([...Object.keys(must), ...Object.keys(is)])];
  const text = (value: unknown) => (value === undefined ? '' : canonicalJson(value));
  return fields.filter((field) => !assumed.has(field) && text(must[field]) !== text(is[field]));
}

/** Most results are flat. */
function isSameFlat(a: JsonObject, b: JsonObject): boolean {
  let names = 0;
  for (const name in a) {
    if (a[name] !== b[name] || a[name] === undefined) return false;
    names += 1;
  }
  for (const _ in b) names -= 1;
  return names === 0;
}
