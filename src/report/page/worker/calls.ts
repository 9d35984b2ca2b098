import type { SourceRow } from '../../../verify/source.ts';
import { countOf, type Fields, fieldsOf, readJson, type ShowText, textFields, textOf } from './texts.ts';

/** The two rows of a call with their attached data. Every field is a stranger's. */
export interface Told {
  readonly position: number;
  readonly enter: Fields;
  readonly exit: Fields | undefined;
  readonly args: Fields;
  /** Which of them are digests of texts. */
  readonly texts: readonly string[];
  /** Attached to the exit row: the result or the error, and what was seen outside. */
  readonly body: Fields;
}

/** Pairs the two rows of each call, in the order in which the calls began. */
export function pairRows(rows: Iterable<SourceRow>): Told[] {
  const calls = new Map<number, Told>();
  for (const { position, text, payload } of rows) {
    const row = readJson(text);
    const body = readJson(payload?.body);
    const begun = row.stage === 'exit' ? calls.get(countOf(row.sequence_no)) : undefined;
    if (begun !== undefined && begun.exit === undefined)
      calls.set(begun.position, { ...begun, exit: row, body });
    else if (row.stage === 'exit')
      calls.set(position, { position, enter: row, exit: row, args: {}, texts: [], body });
    else {
      const texts = textFields(row.rules, row.tool, body);
      calls.set(position, { position, enter: row, exit: undefined, args: body, texts, body: {} });
    }
  }
  return [...calls.values()];
}

/** One call told in a line. Every text in it is a stranger's. */
export type Call = ReturnType<typeof tellCall>;
export type Kind = 'thought' | 'task' | 'session' | 'owner' | 'read' | 'failure';
type Telling = { readonly kind: Kind; readonly verb: string; readonly text: string };

/** Tells each call in one line. */
export function tellCalls(calls: readonly Told[], shown: ShowText, wrongAt: ReadonlySet<number>): Call[] {
  const taskOfSession = new Map<string, string>();
  return calls.map((told) => tellCall(told, shown, taskOfSession, wrongAt));
}

function tellCall(
  { enter, exit, position, body, args: given, texts }: Told,
  shown: ShowText,
  taskOfSession: Map<string, string>,
  wrongAt: ReadonlySet<number>,
) {
  const args = { ...given, ...Object.fromEntries(texts.map((field) => [field, shown(given[field])])) };
  const result = fieldsOf(body.result);
  const session = idAmong(/^A-\d{4,15}$/, args.session_id, result.session_id);
  const task = taskOf(args, result, exit) || (taskOfSession.get(session) ?? '');
  if (session !== '' && task !== '') taskOfSession.set(session, task);
  const tool = textOf(enter.tool);
  const outcome = textOf(exit?.outcome ?? 'running');
  const { kind, verb, text } = tell(tool, args, result, session);
  const isOk = outcome === 'ok';
  return {
    position,
    /** 0 where the call never ended. */
    exit: countOf(exit?.position),
    at: textOf(enter.at),
    tool,
    actor: textOf(enter.actor),
    outcome,
    error: textOf(exit?.error_code),
    task,
    kind: isOk ? kind : ('failure' as const),
    /** `created`, `moved`, `decision`. */
    verb: isOk ? verb : (FAILURES.get(outcome) ?? outcome),
    text,
    /** Whether a finding names one of its rows. */
    isWrong: wrongAt.has(position) || wrongAt.has(countOf(exit?.position)),
  };
}

/** The task a call is about, as its arguments, its answer or its effects name it. */
function taskOf(args: Fields, result: Fields, exit: Fields | undefined): string {
  const changed = effectsOf(exit).find(({ table }) => table === 'tasks')?.id;
  return idAmong(/^T-\d{4,15}$/, args.task_id, result.task_id, changed);
}

export function effectsOf(exit: Fields | undefined): Fields[] {
  return Array.isArray(exit?.effects) ? exit.effects.map(fieldsOf) : [];
}

function idAmong(form: RegExp, ...values: readonly unknown[]): string {
  return values.map(textOf).find((id) => form.test(id)) ?? '';
}

// Maps, because strangers choose the keys: an object would answer to `constructor`.
const FAILURES: ReadonlyMap<string, string> = new Map([
  ['running', 'never ended'],
  ['error', 'failed'],
  ['rejected', 'refused'],
  ['denied', 'not admitted'],
]);

/** What the owner did, and machines that joined. */
const OWNERS: ReadonlyMap<string, string> = new Map([
  ['owner_adopt', 'adopted'],
  ['owner_erase', 'erased'],
  ['owner_trust', 'trusted'],
  ['owner_transfer', 'transferred'],
  ['owner_receive', 'received'],
  ['key_join', 'joined'],
]);

function tell(tool: string, args: Fields, result: Fields, session: string): Telling {
  switch (tool) {
    case 'task_create':
      return { kind: 'task', verb: 'created', text: textOf(args.title) };
    case 'task_update':
      return tellUpdate(args, result);
    case 'thought_record':
      return { kind: 'thought', verb: textOf(args.type) || 'thought', text: textOf(args.content) };
    case 'audit_session_start':
      return { kind: 'session', verb: 'session opened', text: `${session} ${textOf(args.reason)}`.trim() };
    case 'merkle_finalize': {
      const records = textOf(result.leaf_count);
      const text = records === '' ? session : `${session} with ${records} records`;
      return { kind: 'session', verb: 'session sealed', text };
    }
    default: {
      const owner = OWNERS.get(tool);
      const text = tellArguments(args);
      return owner === undefined
        ? { kind: 'read', verb: 'read', text }
        : { kind: 'owner', verb: owner, text };
    }
  }
}

function tellUpdate({ task_id: _, status, ...others }: Fields, result: Fields): Telling {
  const rest = tellArguments(others);
  if (status === undefined) return { kind: 'task', verb: 'changed', text: rest };
  const from = textOf(result.previous_status);
  const step = from === '' ? `to ${textOf(status)}` : `${from} → ${textOf(status)}`;
  return { kind: 'task', verb: 'moved', text: rest === '' ? step : `${step}; ${rest}` };
}

function tellArguments(args: Fields): string {
  return Object.entries(args)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}
