import * as z from 'zod';
import { LIMITS } from '../../limits.ts';
import { each, line, otherwise, pageOffset, recordId, texts } from '../fields.ts';

/** Thoughts in a page where the caller does not say. */
export const PAGE_DEFAULT = 100;

const type = z.enum(['reflection', 'decision', 'discovery', 'risk', 'blockers', 'plan', 'analysis']);

export type ThoughtType = z.output<typeof type>;
const evidence = line(LIMITS.evidenceCharsMax);
const evidenceList = z.array(evidence).max(LIMITS.evidenceItemsMax);

export const RecordInput = z.strictObject({
  task_id: recordId,
  type,
  content: line(LIMITS.thoughtCharsMax),
  branch: evidence.optional().describe('default, like commit_sha: read from git'),
  commit_sha: evidence.optional(),
  tests_run: evidenceList.optional().describe('with results'),
  blockers: evidenceList.optional().describe('obstacles'),
  metadata: z
    .record(z.string(), z.unknown())
    .refine(
      (value) => Buffer.byteLength(JSON.stringify(value)) <= LIMITS.metadataBytesMax,
      `larger than ${LIMITS.metadataBytesMax} bytes`,
    )
    .optional()
    // Strict converters refuse an object of unknown fields. Stage 2 takes the object itself, too.
    .meta({ listedAs: 'string', description: 'JSON object as text, at most 16 KB' }),
  session_id: recordId.optional().describe('default: the task’s open session'),
});

const Link = {
  ...texts('thought_id', 'task_id', 'hash', 'recorded_at', 'recorded_by'),
  type,
  previous_hash: z.string().nullable(),
  chain_position: z.int(),
  session_id: z.string().optional(),
};

export const RecordOutput = z.strictObject(Link);

/** Of which task and session. */
const Subject = each(recordId.optional(), 'task_id', 'session_id');

export const ListInput = z.strictObject({
  ...Subject,
  type: type.optional(),
  limit: otherwise(z.int().min(1).max(LIMITS.thoughtsPageMax), PAGE_DEFAULT),
  offset: pageOffset,
  verify_chain: z.boolean().optional(),
});

const Thought = z.strictObject({
  ...Link,
  content: z.string(),
  erased: z.boolean().optional(),
  ...each(z.string().optional(), 'branch', 'commit_sha'),
  ...each(z.array(z.string()).optional(), 'observed', 'tests_run', 'blockers'),
  metadata: z.record(z.string(), z.unknown()).optional(),
});

export const ListOutput = z.strictObject({
  ...each(z.string().optional(), 'task_id', 'session_id'),
  thought_count: z.int(),
  thoughts: z.array(Thought),
  chain_valid: z.boolean().optional(),
  invalid_links: z.array(z.int()).optional(),
});

export const VerifyInput = z
  .strictObject({ ...Subject, full_trace: z.boolean().optional() })
  .refine(
    ({ task_id, session_id }) => (task_id === undefined) !== (session_id === undefined),
    'give exactly one of task_id and session_id',
  );

/** Something that is not as it was written. `position` counts the records of the subject from 1; 0 is the subject itself. */
const BrokenLink = z.strictObject({
  position: z.int(),
  ...texts('record', 'what', 'expected_hash', 'actual_hash'),
  columns: z.array(z.string()).optional(),
});

const TraceEntry = z.strictObject({ position: z.int(), ...texts('record', 'hash') });

export const VerifyOutput = z.strictObject({
  ...each(z.string().optional(), 'task_id', 'session_id'),
  chain_valid: z.boolean(),
  total_records: z.int(),
  integrity_score: z.number(),
  broken_links: z.array(BrokenLink),
  verified_at: z.string(),
  trace: z.array(TraceEntry).optional(),
});

export type RecordArgs = z.output<typeof RecordInput>;
export type Recorded = z.output<typeof RecordOutput>;
export type Evidence = Pick<z.output<typeof Thought>, 'observed' | 'tests_run' | 'blockers' | 'metadata'>;
export type ListArgs = z.output<typeof ListInput>;
export type VerifyArgs = z.output<typeof VerifyInput>;
export type BrokenLink = z.output<typeof BrokenLink>;
export type TraceEntry = z.output<typeof TraceEntry>;
