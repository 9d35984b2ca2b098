import { RULES } from '../domains/rules.ts';
import { textFrom } from '../untrusted.ts';
import { type JsonObject, objectIn } from '../verify/rules/payloads.ts';
import { isText } from '../verify/sources/forms.ts';
import { effectsOf } from '../verify/sources/rows.ts';

// What a call did, in words: one telling for the page and for the command line. Every field is a stranger's.

export function textOf(value: unknown): string {
  return typeof value === 'number' ? String(value) : isText(value) ? value : '';
}

/** The arguments of a tool that are texts, as far as they were given. */
export function textFields({ rules: version, tool }: JsonObject, args: JsonObject): readonly string[] {
  const rules = typeof version === 'number' ? RULES[version] : undefined;
  if (!isText(tool) || rules === undefined || !Object.hasOwn(rules, tool)) return [];
  return (rules[tool]?.texts ?? []).filter((field) => args[field] !== undefined);
}

export type Kind = 'thought' | 'task' | 'session' | 'owner' | 'read' | 'failure';
type Telling = readonly [kind: Kind, verb: string, text: string];

/** What a call left behind: its last row, its arguments with their texts, and what is kept of its end. */
export interface KeptCall {
  readonly row: JsonObject;
  readonly args: JsonObject;
  readonly result: JsonObject;
  /** Why it was refused. */
  readonly error?: JsonObject | undefined;
  /** What the server saw outside the database. */
  readonly outside?: JsonObject | undefined;
}

/** Tells a call. */
export function tellCall({ row, args, result, error: refusal = {}, outside = {} }: KeptCall) {
  const { at, actor, tool, outcome, error_code } = row;
  const isWhole = [at, actor, tool, outcome].every(isText);
  const error = textOf(error_code);
  const session = idAmong(/^A-\d{4,15}$/, args.session_id, result.session_id);
  const effects = effectsOf(row);
  const changed = effects.find(({ table }) => table === 'tasks')?.id;
  const thought = idAmong(/^Θ-\d{4,15}$/u, result.thought_id);
  const task = idAmong(/^T-\d{4,15}$/, args.task_id, result.task_id, changed);
  const telling = TELLINGS.get(textOf(tool)) ?? ((): Telling => ['read', 'read', tellArguments(args)]);
  const [kind, verb, did] = telling(args, result, session);
  // What the schema refused, or a tool that there is not: nothing vouches for what it was given, so that is not kept.
  const text = row.schema_valid === false ? HASH_ONLY : did;
  const isOk = isWhole && outcome === 'ok';
  // A full disk is a failure; everything else is a rule that refused.
  const isFault = outcome === 'error' && error.startsWith('ERR_STORAGE');
  const failed = isFault ? 'failed' : (FAILURES.get(textOf(outcome)) ?? textOf(outcome));
  return {
    at: textOf(at),
    actor: textOf(actor),
    /** Whether somebody called it from the command line. */
    isPerson: row.source === 'cli',
    tool: textOf(tool),
    outcome: textOf(outcome),
    error,
    session,
    /** The task it is about, as its arguments, its result or its effects name it. */
    task,
    /** Every record that it is about. */
    ids: [...new Set([task, thought, session, ...effects.map(({ id }) => textOf(id))])].filter((id) =>
      /^[TAΘ]-/u.test(id),
    ),
    kind: isOk ? kind : ('failure' as const),
    /** The thought it recorded. */
    thought,
    /** The commit that a thought names, or that was checked out then. */
    commit: tool === 'thought_record' ? textOf(args.commit_sha ?? objectIn(outside.git)?.commit_sha) : '',
    /** The statuses of a step that was taken. */
    from: isOk ? textOf(result.previous_status) : '',
    to: isOk && result.previous_status !== undefined ? textOf(result.status) : '',
    /** Whose task it took over. */
    takenFrom: args.takeover === true ? textOf(objectIn(result.taken_over_from)?.held_by) : '',
    /** Why it was refused, where that is kept. */
    reason: textOf(refusal.message),
    /** `created`, `moved`, `decision`. */
    verb: isOk ? verb : isWhole ? failed : 'damaged',
    text,
  };
}

const HASH_ONLY = '(its arguments are kept only as a hash)';

function idAmong(form: RegExp, ...values: readonly unknown[]): string {
  return values.map(textOf).find((id) => form.test(id)) ?? '';
}

// Maps, because strangers choose the keys: an object would answer to `constructor`.
const FAILURES: ReadonlyMap<string, string> = new Map([
  ['running', 'never ended'],
  ['error', 'refused'],
  ['rejected', 'refused'],
  ['denied', 'not admitted'],
]);

type Tell = (args: JsonObject, result: JsonObject, session: string) => Telling;
const owner =
  (verb: string): Tell =>
  (args) => ['owner', verb, tellArguments(args)];

const TELLINGS = new Map(
  Object.entries<Tell>({
    task_create: ({ title }) => ['task', 'created', textOf(title)],
    task_update: tellUpdate,
    thought_record: ({ type, content }) => ['thought', textOf(type) || 'thought', textOf(content)],
    audit_session_start: (args, _, id) => [
      'session',
      'session opened',
      `${id} ${textOf(args.reason)}`.trim(),
    ],
    merkle_finalize(_, { leaf_count }, id) {
      const count = textOf(leaf_count);
      return [
        'session',
        'session sealed',
        count === '' ? id : `${id} with ${count} ${count === '1' ? 'record' : 'records'}`,
      ];
    },
    owner_adopt: owner('adopted'),
    owner_erase: ({ record, reason }) => ['owner', 'erased', `${textOf(record)} because ${textOf(reason)}`],
    owner_trust: owner('trusted'),
    owner_transfer: owner('transferred'),
    owner_receive: owner('received'),
    key_join: owner('joined'),
  }),
);

function tellUpdate({ status, takeover, ...others }: JsonObject, result: JsonObject): Telling {
  const before = textOf(result.previous_status);
  const former = tellFormer(objectIn(result.taken_over_from), takeover === true);
  // A takeover with the status that the task has moves nothing.
  const isMove = status !== undefined && !(takeover === true && before === status);
  const step = isMove ? `${before && `${before} `}→ ${textOf(status)}` : '';
  const rest = tellArguments({ ...others, ...(former === '' && takeover !== undefined && { takeover }) });
  const text = [step, rest, former].filter((part) => part !== '').join('; ');
  return ['task', isMove ? 'moved' : 'changed', text];
}

/** Who held a task before. To its assignee, and to an agent that was restarted, it is handed over. */
function tellFormer(former: JsonObject | undefined, isTaken: boolean): string {
  if (former === undefined) return '';
  const [held_by, last_seen] = [textOf(former.held_by), textOf(former.last_seen)];
  if (!isTaken) return `handed over from ${held_by}`;
  return `taken over from ${held_by}${last_seen && `, silent since ${last_seen}`}`;
}

function tellArguments({ task_id: _, ...args }: JsonObject): string {
  return Object.entries(args)
    .map(([name, value]) => `${name} ${textFrom(value)}`)
    .join(', ');
}
