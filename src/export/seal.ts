import { canonicalJson } from '../integrity/canonical-json.ts';
import { formatId } from '../log/state.ts';
import { TASKS, THOUGHTS } from '../log/tables.ts';
import { auditRow } from '../log/verify/finding.ts';

/** A record of a session with the hash that is its leaf. */
export interface SealedRecord {
  readonly kind: 'thought' | 'change';
  readonly ref: number;
  readonly task_id: number;
  readonly hash: string;
}

/** What finalizing a session fixed. */
export interface SealFacts {
  readonly session_id: string;
  readonly merkle_root: string;
  readonly leaf_count: number;
  readonly tree_depth: number;
  /** Position of the exit row that seals it. */
  readonly position: number;
  /** Set when only one task's records were sealed. */
  readonly sealed_task_id: string | null;
}

/** A seal is written in three pieces, so that a session of any length needs no memory. Together they are canonical JSON. */
export function sealBegin({ leaf_count, merkle_root, position }: SealFacts): string {
  return `{"leaf_count":${leaf_count},"merkle_root":"${merkle_root}","position":${position},"records":[`;
}

export function sealRecord(record: SealedRecord, isFirst: boolean): string {
  return `${isFirst ? '' : ','}${canonicalJson(describeRecord(record))}`;
}

export function sealEnd({ sealed_task_id, session_id, tree_depth }: SealFacts): string {
  return `],"sealed_task_id":${canonicalJson(sealed_task_id)},"session_id":"${session_id}","tree_depth":${tree_depth}}`;
}

/** A record as a seal lists it: a thought by its id, a task change by its audit row. */
export function describeRecord({ kind, ref, task_id, hash }: SealedRecord) {
  return {
    hash,
    kind,
    record: kind === 'thought' ? formatId(THOUGHTS, ref) : auditRow(ref),
    task_id: formatId(TASKS, task_id),
  };
}
