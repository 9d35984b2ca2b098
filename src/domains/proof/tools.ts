import * as z from 'zod';
import { ColibriError } from '../../errors.ts';
import { treeRoot } from '../../integrity/tree.ts';
import { LIMITS } from '../../limits.ts';
import { formatId, SESSIONS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import { type Tool, toolsOf } from '../../tool.ts';
import type { SessionRow } from '../facts.ts';
import { actorName, each, line, otherwise, recordId, texts } from '../fields.ts';
import { readLeaves, SESSION_BY_ID } from '../lookup.ts';
import type { Outside } from '../rule.ts';
import { requireRow, ruled } from '../ruled.ts';
import { PROOF_RULES } from './rules.ts';

const scope = z.enum(['shallow', 'deep']);

export const StartInput = z.strictObject({
  task_id: recordId,
  auditor_id: actorName.describe('who will check the work, such as your user'),
  reason: line(LIMITS.reasonCharsMax).optional(),
  scope: otherwise(scope, 'shallow'),
});

export const StartOutput = z.strictObject({
  ...texts('session_id', 'task_id', 'auditor_id', 'started_at'),
  scope,
});

export const FinalizeInput = z.strictObject({
  session_id: recordId,
  task_id: recordId.optional().describe('only its records'),
});

export const FinalizeOutput = z.strictObject({
  ...texts('session_id', 'merkle_root', 'finalized_at'),
  ...each(z.int(), 'tree_depth', 'leaf_count'),
  frozen: z.literal(true),
});

export const RootOutput = z.strictObject({
  ...texts('session_id', 'merkle_root', 'as_of'),
  is_finalized: z.boolean(),
});

export type StartArgs = z.output<typeof StartInput>;
export type Started = z.output<typeof StartOutput>;
export type FinalizeArgs = z.output<typeof FinalizeInput>;
export type Finalized = z.output<typeof FinalizeOutput>;

/** Asked when a session starts: its row covers the answer. */
export type ProofDeps = { skillsInForce(): Promise<Outside['skills']> };

const tool = toolsOf('proof');

export function proofTools(deps: ProofDeps): Tool[] {
  return [
    tool({
      name: 'audit_session_start',
      title: 'Start session',
      summary:
        'Open a proof session on a task: it collects every thought and change until merkle_finalize seals it. deep also covers child tasks.',
      input: StartInput,
      output: StartOutput,
      example: { task_id: 'T-0001', auditor_id: 'ada' },
      prepare: async (args) => ({ args, outside: { skills: await deps.skillsInForce() } }),
      ...ruled(PROOF_RULES.audit_session_start),
    }),
    tool({
      name: 'merkle_finalize',
      title: 'Finalize session',
      summary: 'Seal a session: build the Merkle tree over its records and freeze it permanently.',
      input: FinalizeInput,
      output: FinalizeOutput,
      example: { session_id: 'A-0001' },
      readsLog: true,
      ...ruled(PROOF_RULES.merkle_finalize),
    }),
    tool({
      name: 'merkle_root',
      title: 'Session root',
      summary: 'Get the Merkle root of a session; for an open session, the root so far.',
      effect: 'reads',
      kind: 'snapshot',
      input: z.strictObject({ session_id: recordId }),
      output: RootOutput,
      example: { session_id: 'A-0001' },
      async handle(args, _call, tx) {
        const session = await requireRow<SessionRow>(tx, SESSIONS, args.session_id, SESSION_BY_ID);
        return { session_id: formatId(SESSIONS, session.id), ...(await rootOf(tx, session)) };
      },
    }),
  ];
}

async function rootOf(tx: Reader, session: SessionRow) {
  if (session.merkle_root !== null && session.finalized_at !== null)
    return { merkle_root: session.merkle_root, is_finalized: true, as_of: session.finalized_at };
  const leaves = await readLeaves(tx, session.id, null);
  if (leaves.length > 0)
    return { merkle_root: treeRoot(leaves), is_finalized: false, as_of: await lastChangeOf(tx, session) };
  const session_id = formatId(SESSIONS, session.id);
  const sentence = `${session_id} is open and has no records yet, so it has no root. Record a thought, then ask again.`;
  throw new ColibriError('ERR_NOT_FINALIZED', sentence, { session_id });
}

/** When the last record joined the session, or when it began. */
async function lastChangeOf(tx: Reader, session: SessionRow): Promise<string> {
  const row = await tx.get<{ at: string }>(
    `SELECT a.at FROM audit_rows a WHERE a.position =
       (SELECT position FROM session_records WHERE session_id = ? ORDER BY id DESC LIMIT 1)`,
    session.id,
  );
  return row?.at ?? session.started_at;
}
