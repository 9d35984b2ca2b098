import * as z from 'zod';
import { LIMITS } from '../../limits.ts';
import { actorName, line, recordId, texts } from '../fields.ts';

const scope = z.enum(['shallow', 'deep']);

export const StartInput = z.strictObject({
  task_id: recordId,
  auditor_id: actorName,
  reason: line(LIMITS.reasonCharsMax).optional(),
  scope: scope.optional(),
});

export const StartOutput = z.strictObject({
  ...texts('session_id', 'task_id', 'auditor_id', 'started_at'),
  scope,
});

export const FinalizeInput = z.strictObject({ session_id: recordId, task_id: recordId.optional() });

export const FinalizeOutput = z.strictObject({
  ...texts('session_id', 'merkle_root', 'finalized_at'),
  tree_depth: z.int(),
  leaf_count: z.int(),
  frozen: z.literal(true),
});

export const RootInput = z.strictObject({ session_id: recordId });

export const RootOutput = z.strictObject({
  ...texts('session_id', 'merkle_root', 'as_of'),
  is_finalized: z.boolean(),
});

export type StartArgs = z.output<typeof StartInput>;
export type Started = z.output<typeof StartOutput>;
export type FinalizeArgs = z.output<typeof FinalizeInput>;
export type Finalized = z.output<typeof FinalizeOutput>;
