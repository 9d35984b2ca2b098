import { ColibriError } from '../../errors.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { formatId, parseId, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { SessionRow, TaskRow, ThoughtRow } from '../facts.ts';
import { notFound, numberOf, recordIn } from '../records.ts';
import { ask, type Call, type Ruling, type Steps } from '../rule.ts';
import type { RecordArgs, Recorded } from './schema.ts';

/** Arguments as they are kept: a digest in the place of each text. */
type KeptRecord = Omit<RecordArgs, 'tests_run' | 'blockers' | 'metadata'> & {
  readonly [K in 'tests_run' | 'blockers' | 'metadata']?: string;
};

/** Appends a thought to the chain of its task. */
function* recordThought(args: KeptRecord, call: Call): Steps<Ruling<Recorded>> {
  const taskId = numberOf(TASKS, args.task_id);
  const named = args.session_id === undefined ? 0 : (parseId(SESSIONS, args.session_id) ?? 0);
  const { task, newest, covering, given, id } = yield* ask({
    task: ['task', taskId],
    newest: ['newestThought', taskId],
    covering: ['coveringSessions', taskId],
    given: ['session', named],
    id: ['nextId', 'thoughts'],
  });
  if (task === undefined) throw notFound(TASKS, args.task_id);
  const session = sessionFor(task, args.session_id, given, covering);
  const linked = {
    task_id: taskId,
    type: args.type,
    content: args.content,
    previous_hash: newest?.hash ?? null,
    recorded_at: call.at,
    recorded_by: call.actor,
  };
  const { hash } = yield* ask({ hash: ['thoughtHash', linked] });
  const { branch, commit_sha, observed } = gatherEvidence(args, call);
  const row: ThoughtRow = {
    id,
    task_id: taskId,
    type: args.type,
    content: args.content,
    previous_hash: linked.previous_hash,
    recorded_at: call.at,
    recorded_by: call.actor,
    session_id: session?.id ?? null,
    hash,
    chain_position: (newest?.chain_position ?? 0) + 1,
    branch,
    commit_sha,
    observed,
    tests_run: args.tests_run ?? null,
    blockers: args.blockers ?? null,
    metadata: args.metadata ?? null,
    call: call.enter,
    position: call.position,
  };
  const records = yield* recordIn(covering, { kind: 'thought', ref: id, task_id: taskId }, call);
  return {
    rows: [{ table: 'thoughts', row, previous: 0 }, ...records],
    result: viewLink(row),
  };
}

/** What a thought says of its place in the chain. */
export function viewLink(thought: ThoughtRow): Recorded {
  const { type, hash, previous_hash, recorded_at, recorded_by, chain_position } = thought;
  const thought_id = formatId(THOUGHTS, thought.id);
  const task_id = formatId(TASKS, thought.task_id);
  const link = { thought_id, task_id, type, hash, previous_hash, recorded_at, recorded_by, chain_position };
  return thought.session_id === null ? link : { ...link, session_id: formatId(SESSIONS, thought.session_id) };
}

/** The session a thought binds to: the one named, which must be open and cover the task, else the task's open one. */
function sessionFor(
  task: TaskRow,
  named: string | undefined,
  session: SessionRow | undefined,
  covering: readonly SessionRow[],
): SessionRow | undefined {
  const task_id = formatId(TASKS, task.id);
  if (named === undefined) {
    const open = covering.find((other) => other.task_id === task.id);
    if (open !== undefined || task.proof_grade === 0) return open;
    if (covering[0] !== undefined) return covering[0];
    const sentence = `${task_id} is proof-grade and has no open session. Call audit_session_start for it, then record this thought again.`;
    throw new ColibriError('ERR_SESSION_REQUIRED', sentence, { task_id });
  }
  if (session === undefined) throw notFound(SESSIONS, named);
  const { finalized_at, scope } = session;
  if (session.status === 'finalized') {
    const sentence = `${named} was finalized at ${finalized_at} and takes no more records. Leave session_id out, or open a new session with audit_session_start.`;
    throw new ColibriError('ERR_ALREADY_FINALIZED', sentence, { session_id: named, finalized_at });
  }
  if (covering.some(({ id }) => id === session.id)) return session;
  const session_task_id = formatId(TASKS, session.task_id);
  const sentence = `${named} does not cover ${task_id}: it is ${scope} on ${session_task_id}. Leave session_id out, or open one for ${task_id} with audit_session_start.`;
  throw new ColibriError('ERR_SESSION_NOT_FOUND', sentence, { session_id: named, task_id, session_task_id });
}

/** Branch and commit as claimed, or as the server saw them; what it saw itself is marked as observed. */
function gatherEvidence(args: KeptRecord, { outside: { git = {} } }: Call) {
  const fields = ['branch', 'commit_sha'] as const;
  const observed = fields.filter((field) => args[field] === undefined && git[field] !== undefined);
  return {
    branch: args.branch ?? git.branch ?? null,
    commit_sha: args.commit_sha ?? git.commit_sha ?? null,
    observed: canonicalJson(observed),
  };
}

/** The writing tool of this domain, with the arguments that are texts. */
export const TRAIL_RULES = {
  thought_record: { texts: ['content', 'tests_run', 'blockers', 'metadata'], rule: recordThought },
} as const;
