import { ColibriError } from '../../errors.ts';
import { SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import { ERASED } from '../../log/texts.ts';
import type { Reader } from '../../storage/engine.ts';
import { type CallContext, type Tool, toolsOf } from '../../tool.ts';
import type { ThoughtRow } from '../facts.ts';
import { erasedAmong, numberFrom, shownColumns } from '../lookup.ts';
import { given, pick } from '../records.ts';
import type { GitEvidence } from '../rule.ts';
import { requireRow, ruled } from '../ruled.ts';
import { TRAIL_RULES, viewLink } from './rules.ts';
import * as schema from './schema.ts';

/** Whose records are verified. */
export interface Subject {
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
  verifyChain(tx: Reader, subject: Subject, options: { readonly trace: boolean }): Promise<ChainReport>;
}

const tool = toolsOf('trail');

export function trailTools(deps: TrailDeps): Tool[] {
  return [
    tool({
      name: 'thought_record',
      title: 'Record thought',
      summary:
        'Record a thought about a task, such as the reason for a decision, in its tamper-evident trail. It cannot be edited later.',
      input: schema.RecordInput,
      output: schema.RecordOutput,
      example: { task_id: 'T-0001', type: 'decision', content: 'Use cookies because …' },
      prepare: async (args) => ({ args, outside: await observe(deps, args) }),
      ...ruled(TRAIL_RULES.thought_record),
    }),
    tool({
      name: 'thought_record_list',
      title: 'List thoughts',
      summary:
        'List the thoughts of a task, of a session, or all, in order (both ids: that task within that session); verify_chain also checks every record and link.',
      effect: 'reads',
      kind: (sent) => (Reflect.has(Object(sent), 'verify_chain') ? 'long' : 'snapshot'),
      input: schema.ListInput,
      output: schema.ListOutput,
      example: { task_id: 'T-0001' },
      handle: (args, _call, tx) => list(deps, tx, args),
    }),
    tool({
      name: 'audit_verify_chain',
      title: 'Verify chain',
      summary:
        'Check every record and audit row of a task or a session (give exactly one of the two). Lists every break; with full_trace, every hash.',
      effect: 'reads',
      kind: 'long',
      input: schema.VerifyInput,
      output: schema.VerifyOutput,
      example: { task_id: 'T-0001' },
      handle: (args, call, tx) => verify(deps, tx, call, args),
    }),
  ];
}

/** Branch and commit are looked up only where the caller names none. */
async function observe(deps: TrailDeps, { branch, commit_sha }: schema.RecordArgs) {
  const git = branch === undefined || commit_sha === undefined ? await deps.gitEvidence() : undefined;
  return git === undefined ? {} : { git };
}

async function list(deps: TrailDeps, tx: Reader, args: schema.ListArgs) {
  const { session_id, task_id, type, limit = schema.PAGE_DEFAULT, offset = 0 } = args;
  const session = session_id === undefined ? undefined : await requireSubject(tx, 'session', session_id);
  const task = task_id === undefined ? undefined : await requireSubject(tx, 'task', task_id);
  const filter = { task: task?.id, session: session?.id, type };
  const { thoughts, count } = await listThoughts(tx, filter, limit, offset);
  // Of a listing of everything, the tasks of this page are checked.
  const shown = new Set(thoughts.map((thought) => thought.task_id));
  const subject = session ?? task;
  const subjects = subject ? [subject] : [...shown].map((id) => ({ kind: 'task' as const, id }));
  return {
    ...given(args, 'task_id', 'session_id'),
    thought_count: count,
    thoughts: thoughts.map(viewThought),
    ...(args.verify_chain && (await validityOf(deps, tx, subjects))),
  };
}

/** A thought with its texts. */
type ShownThought = ThoughtRow & { readonly erased: number };

/** By the session's records, so that a child's thought in a deep session is included. */
const IN_SESSION = "id IN (SELECT ref FROM session_records WHERE session_id = ? AND kind = 'thought')";

const SHOWN = `${shownColumns(THOUGHTS)}, ${erasedAmong(THOUGHTS, ...THOUGHTS.texts)}`;

/** One page of those of a task, those that are records of a session, both, or all; and the number of all that match. */
export async function listThoughts(
  tx: Reader,
  { task, session, type }: Readonly<Record<'task' | 'session' | 'type', string | number | undefined>>,
  limit: number,
  offset: number,
) {
  const asked = Object.entries({ 'task_id = ?': task, [IN_SESSION]: session, 'type = ?': type });
  const conditions = asked.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  const where = ['TRUE', ...conditions.map(({ sql }) => sql)].join(' AND ');
  const params = conditions.map(({ value }) => value);
  const order = session === undefined && task !== undefined ? 'chain_position' : 'id';
  const thoughts = await tx.all<ShownThought>(
    `SELECT ${SHOWN} FROM thoughts WHERE ${where} ORDER BY ${order} LIMIT ? OFFSET ?`,
    ...params,
    limit,
    offset,
  );
  const count = await numberFrom(tx, `SELECT count(*) AS value FROM thoughts WHERE ${where}`, ...params);
  return { thoughts, count };
}

/** Everything the hash is made of and all the rest; what is empty or was erased is left out. */
function viewThought(thought: ShownThought) {
  const evidence = Object.entries(pick(thought, 'observed', 'tests_run', 'blockers', 'metadata')).flatMap(
    ([field, text]) => (text === null || text === '[]' || text === ERASED ? [] : [[field, JSON.parse(text)]]),
  );
  return {
    ...viewLink(thought),
    content: thought.content,
    ...(thought.erased === 1 && { erased: true }),
    ...given(thought, 'branch', 'commit_sha'),
    ...(Object.fromEntries(evidence) as schema.Evidence),
  };
}

async function validityOf(deps: TrailDeps, tx: Reader, subjects: readonly Subject[]) {
  const invalid = new Set<number>();
  for (const subject of subjects)
    for (const { position } of (await deps.verifyChain(tx, subject, { trace: false })).broken)
      invalid.add(position);
  return { chain_valid: invalid.size === 0, ...(invalid.size > 0 && { invalid_links: [...invalid] }) };
}

async function verify(deps: TrailDeps, tx: Reader, call: CallContext, args: schema.VerifyArgs) {
  const options = { trace: args.full_trace === true };
  const report = await deps.verifyChain(tx, await subjectOf(tx, args), options);
  return {
    ...given(args, 'task_id', 'session_id'),
    chain_valid: report.broken.length === 0,
    total_records: report.total,
    integrity_score: report.score,
    broken_links: [...report.broken],
    verified_at: call.at,
    ...(options.trace && { trace: [...report.trace] }),
  };
}

async function subjectOf(tx: Reader, { task_id, session_id }: schema.VerifyArgs): Promise<Subject> {
  try {
    return session_id === undefined
      ? await requireSubject(tx, 'task', task_id ?? '')
      : await requireSubject(tx, 'session', session_id);
  } catch (error) {
    if (!(error instanceof ColibriError)) throw error;
    throw new ColibriError('ERR_NOT_FOUND', error.message, error.details, { cause: error });
  }
}

async function requireSubject(tx: Reader, kind: Subject['kind'], text: string): Promise<Subject> {
  const table = kind === 'task' ? TASKS : SESSIONS;
  const sql = `SELECT id FROM ${table.name} WHERE id = ?`;
  return { kind, ...(await requireRow<{ id: number }>(tx, table, text, sql)) };
}
