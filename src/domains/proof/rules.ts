import { ColibriError } from '../../errors.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { treeDepth, treeRoot } from '../../integrity/tree.ts';
import { formatId, SESSIONS, TASKS } from '../../log/tables.ts';
import type { SessionRow } from '../facts.ts';
import { notFound, numberOf, pick } from '../records.ts';
import { ask, type Call, type Ruling, type Steps } from '../rule.ts';
import type { FinalizeArgs, Finalized, StartArgs, Started } from './tools.ts';

function* startSession(args: StartArgs, call: Call): Steps<Ruling<Started>> {
  const taskId = numberOf(TASKS, args.task_id);
  const { existing, open, id } = yield* ask({
    existing: ['existing', [taskId]],
    open: ['openSession', taskId],
    id: ['nextId', 'sessions'],
  });
  if (existing.length === 0) throw notFound(TASKS, args.task_id);
  if (open !== undefined) {
    const { started_by, started_at } = open;
    const session_id = formatId(SESSIONS, open.id);
    const sentence = `${args.task_id} has the open session ${session_id}, started by ${started_by} at ${started_at}. Use it, or seal it with merkle_finalize first.`;
    throw new ColibriError('ERR_SESSION_EXISTS', sentence, { session_id, started_by, started_at });
  }
  const row: SessionRow = {
    id,
    task_id: taskId,
    auditor_id: args.auditor_id,
    reason: args.reason ?? null,
    call: call.enter,
    scope: args.scope ?? 'shallow',
    status: 'open',
    started_at: call.at,
    started_by: call.actor,
    skills: canonicalJson(call.outside.skills ?? []),
    sealed_task_id: null,
    merkle_root: null,
    tree_depth: null,
    leaf_count: null,
    finalized_at: null,
    finalized_by: null,
    position: call.position,
  };
  return {
    rows: [{ table: 'sessions', row, previous: 0 }],
    result: {
      session_id: formatId(SESSIONS, id),
      task_id: formatId(TASKS, taskId),
      ...pick(row, 'auditor_id', 'started_at', 'scope'),
    },
  };
}

function* finalizeSession({ session_id, task_id }: FinalizeArgs, call: Call): Steps<Ruling<Finalized>> {
  const only = task_id === undefined ? null : numberOf(TASKS, task_id);
  const sessionId = numberOf(SESSIONS, session_id);
  const { session, existing } = yield* ask({
    session: ['session', sessionId],
    existing: ['existing', only === null ? [] : [only]],
  });
  if (session === undefined) throw notFound(SESSIONS, session_id);
  if (session.status === 'finalized') {
    const { finalized_at, finalized_by, merkle_root } = session;
    const sentence = `${session_id} was finalized at ${finalized_at} by ${finalized_by}. merkle_root returns its root.`;
    throw new ColibriError('ERR_ALREADY_FINALIZED', sentence, { session_id, finalized_at, merkle_root });
  }
  if (only !== null && existing.length === 0) throw notFound(TASKS, task_id ?? '');
  const { leaves } = yield* ask({ leaves: ['leaves', sessionId, only] });
  if (leaves.length === 0) {
    const of = only === null ? '' : ` of ${task_id}`;
    const sentence = `${session_id} has no records${of} to seal. Record a thought with thought_record first.`;
    throw new ColibriError('ERR_NO_RECORDS', sentence, { session_id });
  }
  const leaf_count = leaves.length;
  const seal = { merkle_root: treeRoot(leaves), tree_depth: treeDepth(leaf_count), leaf_count };
  const row: SessionRow = {
    ...session,
    status: 'finalized',
    sealed_task_id: only,
    ...seal,
    finalized_at: call.at,
    finalized_by: call.actor,
    position: call.position,
  };
  return {
    rows: [{ table: 'sessions', row, previous: session.position }],
    result: { session_id, ...seal, finalized_at: call.at, frozen: true },
  };
}

/** The writing tools of this domain, with the arguments that are texts. */
export const PROOF_RULES = {
  audit_session_start: { texts: ['reason'], rule: startSession },
  merkle_finalize: { texts: [], rule: finalizeSession },
} as const;
