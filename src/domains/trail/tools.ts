import { ColibriError } from '../../errors.ts';
import { formatId } from '../../log/state.ts';
import { SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Reader, Transaction } from '../../storage/engine.ts';
import { type CallContext, defineTool, type Tool } from '../../tool.ts';
import * as schema from './schema.ts';
import {
  addRecord,
  coveringSessions,
  openSessionOf,
  requireSession,
  requireTaskReference,
  type StoredSession,
  sessionId,
  type TaskReference,
} from './sessions.ts';
import { appendThought, listThoughts, type ThoughtRow } from './thoughts.ts';
import { type ChainReport, integrityScore, pauseEvery, walkSession, walkTask } from './verify-chain.ts';

/** What the server can see of the repository it works in. */
export interface Evidence {
  /** Branch and commit that are checked out, where there is a repository. */
  current(): Promise<
    { readonly branch?: string | undefined; readonly commitSha?: string | undefined } | undefined
  >;
  /** Whether a commit exists, or undefined where nobody can tell. */
  commitExists(sha: string): Promise<boolean | undefined>;
}

export interface TrailDeps {
  readonly evidence: Evidence;
  readonly monotonic: () => number;
}

const PAGE_DEFAULT = 100;

export function trailTools(deps: TrailDeps): Tool[] {
  return [
    defineTool({
      name: 'thought_record',
      title: 'Record thought',
      summary:
        'Append a thought on a task to its tamper-evident trail: why you do what you do. It cannot be edited later.',
      family: 'trail',
      effect: 'writes',
      input: schema.RecordInput,
      output: schema.RecordOutput,
      handle: (args, call, tx) => recordThought(deps, tx, call, args),
    }),
    defineTool({
      name: 'thought_record_list',
      title: 'List thoughts',
      summary: 'The thoughts of a task or a session in order; verify_chain also checks every hash and link.',
      family: 'trail',
      effect: 'reads',
      input: schema.ListInput,
      output: schema.ListOutput,
      async handle(args, call, tx) {
        const subject = await subjectOf(tx, args);
        const filter = {
          column: subject.kind === 'task' ? 'task_id' : 'session_id',
          id: subject.id,
          type: args.type,
        } as const;
        const { rows, count } = await listThoughts(tx, filter, args.limit ?? PAGE_DEFAULT, args.offset ?? 0);
        return {
          ...subject.name,
          thought_count: count,
          thoughts: rows.map(viewThought),
          ...(args.verify_chain && validityOf(await walk(deps, tx, call, subject, false))),
        };
      },
    }),
    defineTool({
      name: 'audit_verify_chain',
      title: 'Verify chain',
      summary:
        'Check every record of a task or a session against its hashes; lists all breaks, full_trace all hashes.',
      family: 'trail',
      effect: 'reads',
      input: schema.VerifyInput,
      output: schema.VerifyOutput,
      async handle(args, call, tx) {
        const subject = await subjectOf(tx, args, 'ERR_NOT_FOUND');
        const report = await walk(deps, tx, call, subject, args.full_trace === true);
        return {
          ...subject.name,
          chain_valid: report.broken.length === 0,
          total_records: report.total,
          integrity_score: integrityScore(report),
          broken_links: report.broken,
          verified_at: call.at,
          ...(args.full_trace && { trace: report.trace }),
        };
      },
    }),
  ];
}

async function recordThought(deps: TrailDeps, tx: Transaction, call: CallContext, args: schema.RecordArgs) {
  const task = await requireTaskReference(tx, args.task_id);
  const session = await sessionFor(tx, task, args);
  const { evidence, warnings } = await gatherEvidence(deps.evidence, args);
  const thought = await appendThought(tx, call, {
    task_id: task.id,
    session_id: session?.id ?? null,
    type: args.type,
    content: args.content,
    ...evidence,
    tests_run: JSON.stringify(args.tests_run ?? []),
    blockers: JSON.stringify(args.blockers ?? []),
    metadata: args.metadata === undefined ? null : JSON.stringify(args.metadata),
  });
  await addRecord(tx, call, { kind: 'thought', ref: thought.id, task_id: task.id });
  return { ...viewLink(thought), ...(warnings.length > 0 && { warnings }) };
}

/** The session a thought binds to: the one named, which must be open and cover the task, else the task's open one. */
async function sessionFor(
  tx: Reader,
  task: TaskReference,
  args: schema.RecordArgs,
): Promise<StoredSession | undefined> {
  if (args.session_id !== undefined) return await namedSession(tx, task, args.session_id);
  const open = await openSessionOf(tx, task.id);
  if (open !== undefined || task.proof_grade === 0) return open;
  const covering = (await coveringSessions(tx, task.id))[0];
  if (covering !== undefined) return covering;
  const task_id = formatId(TASKS, task.id);
  throw new ColibriError(
    'ERR_SESSION_REQUIRED',
    `${task_id} is proof-grade and has no open session. Call audit_session_start for it, then record this thought again.`,
    { task_id },
  );
}

async function namedSession(tx: Reader, task: TaskReference, text: string): Promise<StoredSession> {
  const session = await requireSession(tx, text);
  const task_id = formatId(TASKS, task.id);
  if (session.status === 'finalized') {
    throw new ColibriError(
      'ERR_ALREADY_FINALIZED',
      `${text} was finalized at ${session.finalized_at} and takes no more records. Leave session_id out, or open a new session with audit_session_start.`,
      { session_id: text, finalized_at: session.finalized_at },
    );
  }
  if ((await coveringSessions(tx, task.id)).some((covering) => covering.id === session.id)) return session;
  throw new ColibriError(
    'ERR_SESSION_NOT_FOUND',
    `${text} does not cover ${task_id}: it is ${session.scope} on ${formatId(TASKS, session.task_id)}. Leave session_id out, or open one for ${task_id} with audit_session_start.`,
    { session_id: text, task_id, session_task_id: formatId(TASKS, session.task_id) },
  );
}

/** Branch and commit as claimed, or as the server sees them; what it saw itself is marked as observed. */
async function gatherEvidence(evidence: Evidence, args: schema.RecordArgs) {
  const warnings: string[] = [];
  const seen =
    args.branch === undefined || args.commit_sha === undefined ? await evidence.current() : undefined;
  const branch = args.branch ?? seen?.branch;
  const commitSha = args.commit_sha ?? seen?.commitSha;
  if (args.commit_sha !== undefined && (await evidence.commitExists(args.commit_sha)) === false) {
    warnings.push(
      `commit_sha ${args.commit_sha} is not a commit of this repository; it was recorded as claimed.`,
    );
  }
  const observed = [
    ...(args.branch === undefined && branch !== undefined ? ['branch'] : []),
    ...(args.commit_sha === undefined && commitSha !== undefined ? ['commit_sha'] : []),
  ];
  return {
    evidence: { branch: branch ?? null, commit_sha: commitSha ?? null, observed: JSON.stringify(observed) },
    warnings,
  };
}

type Subject =
  | { readonly kind: 'task'; readonly id: number; readonly name: { task_id: string } }
  | {
      readonly kind: 'session';
      readonly id: number;
      readonly name: { session_id: string };
      readonly session: StoredSession;
    };

/** The task or session a reading tool is about. `code` replaces the precise error where the tool has one for both. */
async function subjectOf(
  tx: Reader,
  args: { readonly task_id?: string | undefined; readonly session_id?: string | undefined },
  code?: 'ERR_NOT_FOUND',
): Promise<Subject> {
  try {
    if (args.session_id !== undefined) {
      const session = await requireSession(tx, args.session_id);
      return { kind: 'session', id: session.id, name: { session_id: sessionId(session) }, session };
    }
    const task = await requireTaskReference(tx, args.task_id ?? '');
    return { kind: 'task', id: task.id, name: { task_id: formatId(TASKS, task.id) } };
  } catch (error) {
    if (code === undefined || !(error instanceof ColibriError)) throw error;
    throw new ColibriError(code, error.message, error.details, { cause: error });
  }
}

async function walk(
  deps: TrailDeps,
  tx: Reader,
  call: CallContext,
  subject: Subject,
  trace: boolean,
): Promise<ChainReport> {
  const options = { trace, pause: pauseEvery(deps.monotonic, () => call.breathe()) };
  return subject.kind === 'task'
    ? await walkTask(tx, subject.id, options)
    : await walkSession(tx, subject.session, options);
}

function validityOf({ broken }: ChainReport) {
  const invalid = [...new Set(broken.map((link) => link.position))];
  return { chain_valid: broken.length === 0, ...(invalid.length > 0 && { invalid_links: invalid }) };
}

function viewLink(thought: Omit<ThoughtRow, 'salt' | 'position'>) {
  const { type, hash, previous_hash, recorded_at, recorded_by, chain_position } = thought;
  return {
    thought_id: formatId(THOUGHTS, thought.id),
    task_id: formatId(TASKS, thought.task_id),
    type,
    hash,
    previous_hash,
    recorded_at,
    recorded_by,
    chain_position,
    ...(thought.session_id !== null && { session_id: formatId(SESSIONS, thought.session_id) }),
  };
}

/** Everything the hash is made of and everything beside it; lists that are empty are left out. */
function viewThought(thought: ThoughtRow) {
  const list = (text: string) => JSON.parse(text) as string[];
  return {
    ...viewLink(thought),
    content: thought.content,
    ...(thought.branch !== null && { branch: thought.branch }),
    ...(thought.commit_sha !== null && { commit_sha: thought.commit_sha }),
    ...(list(thought.observed).length > 0 && { observed: list(thought.observed) }),
    ...(list(thought.tests_run).length > 0 && { tests_run: list(thought.tests_run) }),
    ...(list(thought.blockers).length > 0 && { blockers: list(thought.blockers) }),
    ...(thought.metadata !== null && { metadata: JSON.parse(thought.metadata) as Record<string, unknown> }),
  };
}
