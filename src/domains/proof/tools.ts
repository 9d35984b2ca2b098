import { ColibriError } from '../../errors.ts';
import { isHash } from '../../integrity/digest.ts';
import { Frontier, treeDepth } from '../../integrity/tree.ts';
import { formatId } from '../../log/state.ts';
import { TASKS } from '../../log/tables.ts';
import type { Reader, Transaction } from '../../storage/engine.ts';
import { type CallContext, defineTool, type Tool } from '../../tool.ts';
import {
  insertSession,
  lastChangeOf,
  openSessionOf,
  requireSession,
  requireTaskReference,
  type SessionRow,
  sessionId,
  sessionLeaves,
  updateSession,
} from '../trail/index.ts';
import * as schema from './schema.ts';

export interface ProofDeps {
  /** Name and digest of each skill in force now; the seal covers them. */
  skillsInForce(): Promise<readonly { readonly name: string; readonly digest: string }[]>;
}

const PAGE = 2_000;

export function proofTools(deps: ProofDeps): Tool[] {
  return [
    defineTool({
      name: 'audit_session_start',
      title: 'Start session',
      summary:
        'Open a proof session on a task: it collects every thought and change until merkle_finalize seals it. deep also covers child tasks.',
      family: 'proof',
      effect: 'writes',
      input: schema.StartInput,
      output: schema.StartOutput,
      handle: (args, call, tx) => startSession(deps, tx, call, args),
    }),
    defineTool({
      name: 'merkle_finalize',
      title: 'Finalize session',
      summary: 'Seal a session: build the Merkle tree over its records and freeze it for ever.',
      family: 'proof',
      effect: 'writes',
      input: schema.FinalizeInput,
      output: schema.FinalizeOutput,
      handle: (args, call, tx) => finalizeSession(tx, call, args),
    }),
    defineTool({
      name: 'merkle_root',
      title: 'Session root',
      summary: 'The Merkle root of a session; of an open one, the root so far.',
      family: 'proof',
      effect: 'reads',
      input: schema.RootInput,
      output: schema.RootOutput,
      async handle(args, _call, tx) {
        const session = await requireSession(tx, args.session_id);
        return { session_id: sessionId(session), ...(await rootOf(tx, session)) };
      },
    }),
  ];
}

async function startSession(deps: ProofDeps, tx: Transaction, call: CallContext, args: schema.StartArgs) {
  const task = await requireTaskReference(tx, args.task_id);
  const open = await openSessionOf(tx, task.id);
  if (open !== undefined) {
    throw new ColibriError(
      'ERR_SESSION_EXISTS',
      `${args.task_id} has the open session ${sessionId(open)}, started by ${open.started_by} at ${open.started_at}. Use it, or seal it with merkle_finalize first.`,
      { session_id: sessionId(open), started_by: open.started_by, started_at: open.started_at },
    );
  }
  const session = await insertSession(tx, call, {
    task_id: task.id,
    auditor_id: args.auditor_id,
    reason: args.reason ?? null,
    scope: args.scope ?? 'shallow',
    status: 'open',
    started_at: call.at,
    started_by: call.actor,
    skills: JSON.stringify(await deps.skillsInForce()),
    sealed_task_id: null,
    merkle_root: null,
    tree_depth: null,
    leaf_count: null,
    finalized_at: null,
    finalized_by: null,
  });
  const { auditor_id, started_at, scope } = session;
  return { session_id: sessionId(session), task_id: formatId(TASKS, task.id), auditor_id, started_at, scope };
}

async function finalizeSession(tx: Transaction, call: CallContext, args: schema.FinalizeArgs) {
  const session = await requireSession(tx, args.session_id);
  if (session.status === 'finalized') {
    throw new ColibriError(
      'ERR_ALREADY_FINALIZED',
      `${args.session_id} was finalized at ${session.finalized_at} by ${session.finalized_by}. merkle_root returns its root.`,
      { session_id: args.session_id, finalized_at: session.finalized_at, merkle_root: session.merkle_root },
    );
  }
  const only = args.task_id === undefined ? null : (await requireTaskReference(tx, args.task_id)).id;
  const tree = await buildTree(tx, session, only);
  if (tree.size === 0) {
    const of = args.task_id === undefined ? '' : ` of ${args.task_id}`;
    throw new ColibriError(
      'ERR_NO_RECORDS',
      `${args.session_id} has no records${of} to seal. Record a thought with thought_record first.`,
      {
        session_id: args.session_id,
      },
    );
  }
  const seal = { merkle_root: tree.root(), tree_depth: treeDepth(tree.size), leaf_count: tree.size };
  await updateSession(tx, call, session, {
    status: 'finalized',
    sealed_task_id: only,
    ...seal,
    finalized_at: call.at,
    finalized_by: call.actor,
  });
  sealInLog(call, session, seal);
  return { session_id: sessionId(session), ...seal, finalized_at: call.at, frozen: true as const };
}

/** The exit row says root and size in plain text, so that the log alone proves the seal. */
function sealInLog(
  call: CallContext,
  session: SessionRow,
  seal: { readonly merkle_root: string; readonly leaf_count: number },
): void {
  const index = call.effects.findIndex(
    (effect) => effect.table === 'sessions' && effect.id === sessionId(session),
  );
  const effect = call.effects[index];
  if (effect === undefined) throw new Error('a sealed session left no effect');
  call.effects[index] = { ...effect, seal: { merkle_root: seal.merkle_root, leaf_count: seal.leaf_count } };
}

async function rootOf(tx: Reader, session: SessionRow) {
  if (session.merkle_root !== null && session.finalized_at !== null) {
    return { merkle_root: session.merkle_root, is_finalized: true, as_of: session.finalized_at };
  }
  const tree = await buildTree(tx, session, null);
  if (tree.size === 0) {
    const id = sessionId(session);
    throw new ColibriError(
      'ERR_NOT_FINALIZED',
      `${id} is open and has no records yet, so it has no root. Record a thought, then ask again.`,
      {
        session_id: id,
      },
    );
  }
  return { merkle_root: tree.root(), is_finalized: false, as_of: await lastChangeOf(tx, session) };
}

async function buildTree(tx: Reader, session: SessionRow, onlyTask: number | null): Promise<Frontier> {
  const tree = new Frontier();
  let last = 0;
  for (;;) {
    const page = await sessionLeaves(tx, session.id, onlyTask, last, PAGE);
    for (const leaf of page) {
      if (leaf.hash === null || !isHash(leaf.hash) || !Number.isSafeInteger(leaf.id))
        throw new Error(
          `record ${leaf.id} of ${sessionId(session)} is damaged; audit_verify_chain tells more`,
        );
      tree.add(leaf.hash);
      last = leaf.id;
    }
    if (page.length < PAGE) return tree;
  }
}
