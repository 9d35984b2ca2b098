import type { AuditRow } from '../../../log/row.ts';
import type { Call, Kind } from '../protocol.ts';
import { type Fields, readJson, textOf } from './fields.ts';
import { sessionOf, taskOf } from './ids.ts';

type Begun = { readonly row: AuditRow; readonly args: Fields };
type Telling = { readonly kind: Kind; readonly verb: string; readonly text: string };

/** Tells the two rows of each call in one line, in the order the calls began. */
export class Story {
  readonly #calls = new Map<number, Omit<Call, 'isWrong'>>();
  readonly #running = new Map<number, Begun>();
  /** Which task a session is about. */
  readonly #tasks = new Map<string, string>();

  add(row: AuditRow, payload: string | undefined): void {
    const body = readJson(payload);
    if (row.stage === 'enter') {
      this.#running.set(row.position, { row, args: body });
      this.#calls.set(row.position, this.#tell(row, undefined, body, {}));
      return;
    }
    const begun = this.#running.get(row.sequence_no);
    this.#running.delete(row.sequence_no);
    const call = this.#tell(begun?.row ?? row, row, begun?.args ?? {}, body);
    this.#calls.set(call.position, call);
  }

  finish(wrongAt: ReadonlySet<number>): Call[] {
    return [...this.#calls.values()].map((call) => ({
      ...call,
      isWrong: wrongAt.has(call.position) || wrongAt.has(call.exit),
    }));
  }

  #tell(enter: AuditRow, exit: AuditRow | undefined, args: Fields, result: Fields): Omit<Call, 'isWrong'> {
    const session = sessionOf(args, result);
    const task = taskOf(args, result, exit) || (this.#tasks.get(session) ?? '');
    if (session !== '' && task !== '') this.#tasks.set(session, task);
    const outcome = exit?.outcome ?? 'running';
    const told = tell(enter.tool, args, result, session);
    const failed = outcome !== 'ok';
    return {
      position: enter.position,
      exit: exit?.position ?? 0,
      at: enter.at,
      tool: enter.tool,
      actor: enter.actor,
      outcome,
      error: exit?.error_code ?? '',
      task,
      ...told,
      ...(failed && { kind: 'failure', verb: FAILURES[outcome] ?? outcome }),
    };
  }
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
      return { kind: 'read', verb: 'read', text: tellArguments(args) };
  }
}

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
