import * as z from 'zod';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { isHash } from '../integrity/digest.ts';
import type { AuditRow } from '../log/row.ts';
import { BUNDLE_KIND, BUNDLE_VERSION } from './layout.ts';

// Everything in this file describes input by strangers: what does not fit is a finding, never an exception.

const hash = z.string().refine(isHash);
const count = z.int().min(0);
const position = z.int().min(1);

const Effect = z.strictObject({
  table: z.string(),
  id: z.string(),
  hash,
  columns: z.string(),
  seal: z.strictObject({ merkle_root: hash, leaf_count: position }).optional(),
});

const Audit = z.strictObject({
  position,
  sequence_no: position,
  stage: z.enum(['enter', 'exit']),
  tool: z.string(),
  actor: z.string(),
  correlation_id: z.string(),
  at: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  schema_valid: z.boolean(),
  args_hash: hash.nullable(),
  outcome: z.enum(['running', 'ok', 'error', 'rejected', 'denied', 'crashed']),
  error_code: z.string().nullable(),
  duration_ms: z.number().nullable(),
  result_hash: hash.nullable(),
  effects: z.array(Effect),
  process: z.string(),
  repaired: z.array(z.string()),
});

const Payload = z.strictObject({ body: z.string(), position, salt: z.string() });

const Marker = z.strictObject({
  kind: z.literal(BUNDLE_KIND),
  version: z.literal(BUNDLE_VERSION),
  scope: z.string(),
  origin: z.string().nullable(),
  rows: count,
  checkpointed: count,
  root: hash.nullable(),
  chain_hash: hash.nullable(),
});

const Written = z.looseObject({ id: position, position, salt: z.string() });

const Thought = z.looseObject({
  id: position,
  task_id: position,
  type: z.enum(['reflection', 'decision', 'discovery', 'risk', 'blockers', 'plan', 'analysis']),
  content: z.string(),
  previous_hash: hash.nullable(),
  hash,
  chain_position: position,
  recorded_at: z.string(),
  recorded_by: z.string(),
});

const Session = z.looseObject({
  id: position,
  task_id: position,
  status: z.enum(['open', 'finalized']),
  skills: z.string(),
  sealed_task_id: position.nullable(),
  merkle_root: hash.nullable(),
  tree_depth: count.nullable(),
  leaf_count: count.nullable(),
  position,
});

const SessionRecord = z.looseObject({
  id: position,
  session_id: position,
  task_id: position,
  kind: z.enum(['thought', 'change']),
  ref: position,
});

export type PayloadLine = z.output<typeof Payload>;
export type BundleMarker = z.output<typeof Marker>;
export type WrittenRow = z.output<typeof Written>;
export type ThoughtLine = z.output<typeof Thought>;
export type SessionLine = z.output<typeof Session>;
export type SessionRecordLine = z.output<typeof SessionRecord>;

/** Reads one line, which must be the canonical text of what it says. */
function reader<T>(schema: z.ZodType<T>): (text: string) => T | undefined {
  return (text) => {
    try {
      const value: unknown = JSON.parse(text);
      if (canonicalJson(value) !== text) return undefined;
      const read = schema.safeParse(value);
      return read.success ? read.data : undefined;
    } catch {
      return undefined;
    }
  };
}

export const readAuditRow: (text: string) => AuditRow | undefined = reader<AuditRow>(
  Audit as unknown as z.ZodType<AuditRow>,
);
export const readPayload = reader<PayloadLine>(Payload);
export const readMarker = reader<BundleMarker>(Marker);
export const readWritten = reader<WrittenRow>(Written);
export const asThought = (row: WrittenRow) => Thought.safeParse(row).data;
export const asSession = (row: WrittenRow) => Session.safeParse(row).data;
export const asSessionRecord = (row: WrittenRow) => SessionRecord.safeParse(row).data;
