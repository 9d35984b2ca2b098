import * as z from 'zod';
import { LIMITS } from '../../limits.ts';
import { actorName, line, recordId } from '../fields.ts';

const scope = z.enum(['shallow', 'deep']);

export const StartInput = z.strictObject({
  task_id: recordId,
  auditor_id: actorName,
  reason: line(LIMITS.reasonCharsMax).optional(),
  scope: scope.optional(),
});

export const StartOutput = z.strictObject({
  session_id: z.string(),
  task_id: z.string(),
  auditor_id: z.string(),
  started_at: z.string(),
  scope,
});

export const FinalizeInput = z.strictObject({ session_id: recordId, task_id: recordId.optional() });

export const FinalizeOutput = z.strictObject({
  session_id: z.string(),
  merkle_root: z.string(),
  tree_depth: z.int(),
  leaf_count: z.int(),
  finalized_at: z.string(),
  frozen: z.literal(true),
});

export const RootInput = z.strictObject({ session_id: recordId });

export const RootOutput = z.strictObject({
  session_id: z.string(),
  merkle_root: z.string(),
  is_finalized: z.boolean(),
  as_of: z.string(),
});

export type StartArgs = z.output<typeof StartInput>;
export type FinalizeArgs = z.output<typeof FinalizeInput>;
