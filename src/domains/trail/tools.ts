import { ColibriError } from '../../errors.ts';
import { formatId, SESSIONS, TASKS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import { type CallContext, defineTool, type Tool } from '../../tool.ts';
import type { GitEvidence } from '../rule.ts';
import { requireRow, requireSession, ruled } from '../ruled.ts';
import { TRAIL_RULES, viewLink } from './rules.ts';
import * as schema from './schema.ts';
import { listThoughts, type ShownThought } from './thoughts.ts';

/** Whose records are verified. */
export interface ChainSubject {
  readonly kind: 'task' | 'session';
  readonly id: number;
}

/** What verifying the records of a task or a session gave. It never stops at the first break. */
export interface ChainReport {
  /** Thoughts of a task, or records of a session. */
  readonly total: number;
  /** Share of records nothing was found against, as a percentage with at most two digits behind the point. */
  readonly score: number;
  readonly broken: readonly schema.BrokenLink[];
  readonly trace: readonly schema.TraceEntry[];
}

export interface TrailDeps {
  /** What is checked out, where there is a repository that can be read. */
  gitEvidence(): Promise<GitEvidence | undefined>;
  /** The one verifier, on the audit rows and records of a task or a session. */
  verifyChain(
    tx: Reader,
    subject: ChainSubject,
    options: { readonly trace: boolean; readonly pause: () => Promise<void> },
  ): Promise<ChainReport>;
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
      input: schema.RecordInput,
      output: schema.RecordOutput,
      prepare: async (args) => ({ args, outside: await observe(deps, args) }),
      ...ruled(TRAIL_RULES.thought_record),
    }),
    defineTool({
      name: 'thought_record_list',
      title: 'List thoughts',
      summary:
        'The thoughts of a task, of a session, or all, in order; verify_chain also checks every record and link.',
      family: 'trail',
      effect: 'reads',
      input: schema.ListInput,
      output: schema.ListOutput,
      handle: (args, call, tx) => list(deps, tx, call, args),
    }),
    defineTool({
      name: 'audit_verify_chain',
      title: 'Verify chain',
      summary:
        'Check every record and audit row of a task or a session. Lists every break; with full_trace, every hash.',
      family: 'trail',
      effect: 'reads',
      input: schema.VerifyInput,
      output: schema.VerifyOutput,
      handle: (args, call, tx) => verify(deps, tx, call, args),
    }),
  ];
}

/** Branch and commit are looked up only where the caller names none. */
async function observe(deps: TrailDeps, { branch, commit_sha }: schema.RecordArgs) {
  const git = branch === undefined || commit_sha === undefined ? await deps.gitEvidence() : undefined;
  return git === undefined ? {} : { git };
}

async function list(deps: TrailDeps, tx: Reader, call: CallContext, args: schema.ListArgs) {
  const session = args.session_id === undefined ? undefined : (await requireSession(tx, args.session_id)).id;
  const task = args.task_id === undefined ? undefined : await requireTaskNumber(tx, args.task_id);
  const filter = { task, session, type: args.type };
  const { thoughts, count } = await listThoughts(tx, filter, args.limit ?? PAGE_DEFAULT, args.offset ?? 0);
  // Of a listing of everything, the tasks of this page are checked.
  const tasks = task === undefined ? new Set(thoughts.map(({ task_id }) => task_id)) : [task];
  const subjects: ChainSubject[] =
    session === undefined
      ? [...tasks].map((id) => ({ kind: 'task', id }))
      : [{ kind: 'session', id: session }];
  return {
    ...(task !== undefined && { task_id: formatId(TASKS, task) }),
    ...(session !== undefined && { session_id: formatId(SESSIONS, session) }),
    thought_count: count,
    thoughts: thoughts.map(viewThought),
    ...(args.verify_chain && (await validityOf(deps, tx, call, subjects))),
  };
}

async function validityOf(deps: TrailDeps, tx: Reader, call: CallContext, subjects: readonly ChainSubject[]) {
  const invalid = new Set<number>();
  const options = { trace: false, pause: () => call.yieldToWaiting() };
  for (const subject of subjects)
    for (const { position } of (await deps.verifyChain(tx, subject, options)).broken) invalid.add(position);
  return { chain_valid: invalid.size === 0, ...(invalid.size > 0 && { invalid_links: [...invalid] }) };
}

async function verify(deps: TrailDeps, tx: Reader, call: CallContext, args: schema.VerifyArgs) {
  const subject = await subjectOf(tx, args);
  const trace = args.full_trace === true;
  const report = await deps.verifyChain(tx, subject, { trace, pause: () => call.yieldToWaiting() });
  return {
    [`${subject.kind}_id`]: formatId(subject.kind === 'task' ? TASKS : SESSIONS, subject.id),
    chain_valid: report.broken.length === 0,
    total_records: report.total,
    integrity_score: report.score,
    broken_links: [...report.broken],
    verified_at: call.at,
    ...(trace && { trace: [...report.trace] }),
  };
}

async function subjectOf(tx: Reader, args: schema.VerifyArgs): Promise<ChainSubject> {
  try {
    return args.session_id === undefined
      ? { kind: 'task', id: await requireTaskNumber(tx, args.task_id ?? '') }
      : { kind: 'session', id: (await requireSession(tx, args.session_id)).id };
  } catch (error) {
    if (!(error instanceof ColibriError)) throw error;
    throw new ColibriError('ERR_NOT_FOUND', error.message, error.details, { cause: error });
  }
}

async function requireTaskNumber(tx: Reader, text: string): Promise<number> {
  const find = (id: number) => tx.get<{ id: number }>('SELECT id FROM tasks WHERE id = ?', id);
  return (await requireRow(tx, TASKS, text, find)).id;
}

/** Everything the hash is made of and everything beside it; lists that are empty are left out. */
function viewThought(thought: ShownThought) {
  const observed = JSON.parse(thought.observed) as string[];
  const { tests_run, blockers, metadata, branch, commit_sha, content, erased } = thought;
  return {
    ...viewLink(thought),
    content,
    ...(erased && { erased }),
    ...(branch !== null && { branch }),
    ...(commit_sha !== null && { commit_sha }),
    ...(observed.length > 0 && { observed }),
    ...(tests_run.length > 0 && { tests_run }),
    ...(blockers.length > 0 && { blockers }),
    ...(metadata !== undefined && { metadata }),
  };
}
