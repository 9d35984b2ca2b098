import type { SourceRow } from '../../../verify/source.ts';
import type { Call, Kind } from '../protocol.ts';
import { countOf, type Fields, fieldsOf, readJson, textOf } from './fields.ts';
import { type Texts, textFields } from './texts.ts';

/** The two rows of a call with what lies beside them. Every field is a stranger's. */
export interface Told {
  readonly position: number;
  readonly enter: Fields;
  readonly exit: Fields | undefined;
  readonly args: Fields;
  /** What lies beside the exit row: the result or the error, and what was seen outside. */
  readonly body: Fields;
}

type Telling = { readonly kind: Kind; readonly verb: string; readonly text: string };

/** Puts the two rows of each call together, in the order in which the calls began. */
export function pairRows(rows: Iterable<SourceRow>): Told[] {
  const calls = new Map<number, Told>();
  for (const { position, text, payload } of rows) {
    const row = readJson(text);
    const body = readJson(payload?.body);
    const begun = row.stage === 'exit' ? calls.get(countOf(row.sequence_no)) : undefined;
    if (begun !== undefined && begun.exit === undefined)
      calls.set(begun.position, { ...begun, exit: row, body });
    else if (row.stage === 'exit') calls.set(position, { position, enter: row, exit: row, args: {}, body });
    else calls.set(position, { position, enter: row, exit: undefined, args: body, body: {} });
  }
  return [...calls.values()];
}

/** The digests that stand in the arguments of a call. */
export function digestsIn({ enter, args }: Told): unknown[] {
  return textFields(enter.rules, enter.tool).map((field) => args[field]);
}

/** Tells each call in one line. */
export function tellCalls(calls: readonly Told[], texts: Texts, wrongAt: ReadonlySet<number>): Call[] {
  const taskOfSession = new Map<string, string>();
  return calls.map((told) => {
    const call = tellCall(told, texts, taskOfSession);
    return { ...call, isWrong: wrongAt.has(call.position) || wrongAt.has(call.exit) };
  });
}

function tellCall(told: Told, texts: Texts, taskOfSession: Map<string, string>): Omit<Call, 'isWrong'> {
  const { enter, exit, position, body } = told;
  const args = texts.restored(told.args, textFields(enter.rules, enter.tool));
  const result = fieldsOf(body.result);
  const session = idAmong(/^A-\d{4,15}$/, args.session_id, result.session_id);
  const task = taskOf(args, result, exit) || (taskOfSession.get(session) ?? '');
  if (session !== '' && task !== '') taskOfSession.set(session, task);
  const outcome = textOf(exit?.outcome ?? 'running');
  return {
    position,
    exit: countOf(exit?.position),
    at: textOf(enter.at),
    tool: textOf(enter.tool),
    actor: textOf(enter.actor),
    outcome,
    error: textOf(exit?.error_code),
    task,
    ...tell(textOf(enter.tool), args, result, session),
    ...(outcome !== 'ok' && { kind: 'failure', verb: FAILURES[outcome] ?? outcome }),
  };
}

/** The task a call is about, as its arguments, its answer or its effects name it. */
function taskOf(args: Fields, result: Fields, exit: Fields | undefined): string {
  const named = idAmong(TASK_ID, args.task_id, result.task_id);
  if (named !== '') return named;
  const effects = Array.isArray(exit?.effects) ? exit.effects.map(fieldsOf) : [];
  return idAmong(TASK_ID, effects.find(({ table }) => table === 'tasks')?.id);
}

const TASK_ID = /^T-\d{4,15}$/;

function idAmong(form: RegExp, ...values: readonly unknown[]): string {
  return values.map(textOf).find((id) => form.test(id)) ?? '';
}

const FAILURES: Readonly<Record<string, string>> = {
  running: 'never ended',
  error: 'failed',
  rejected: 'refused',
  denied: 'not admitted',
  crashed: 'crashed',
};

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
    case 'merkle_finalize':
      return {
        kind: 'session',
        verb: 'session sealed',
        text: `${session}${result.leaf_count === undefined ? '' : ` with ${textOf(result.leaf_count)} records`}`,
      };
    default:
      return Object.hasOwn(OWNERS, tool)
        ? { kind: 'owner', verb: OWNERS[tool] ?? tool, text: tellArguments(args) }
        : { kind: 'read', verb: 'read', text: tellArguments(args) };
  }
}

/** What the owner did, and machines that joined. */
const OWNERS: Readonly<Record<string, string>> = {
  owner_adopt: 'adopted',
  owner_erase: 'erased',
  owner_trust: 'trusted',
  owner_transfer: 'transferred',
  owner_receive: 'received',
  key_join: 'joined',
};

function tellUpdate(args: Fields, result: Fields): Telling {
  const { task_id: _, status, ...others } = args;
  const from = textOf(result.previous_status);
  const rest = tellArguments(others);
  if (status === undefined) return { kind: 'task', verb: 'changed', text: rest };
  const step = from === '' ? `to ${textOf(status)}` : `${from} → ${textOf(status)}`;
  return { kind: 'task', verb: 'moved', text: rest === '' ? step : `${step}; ${rest}` };
}

function tellArguments(args: Fields): string {
  return Object.entries(args)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}
