import { canonicalJson } from '../../integrity/canonical-json.ts';
import { formatId, TASKS, THOUGHTS } from '../../log/tables.ts';
import { auditRow } from '../finding.ts';

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
  readonly sealed_task_id: number | null;
}

/** A seal is written in three pieces, so that a session of any length needs no memory. Together they are canonical JSON. */
export function sealBegin({ leaf_count, merkle_root, position }: SealFacts): string {
  return `{"leaf_count":${leaf_count},"merkle_root":"${merkle_root}","position":${position},"records":[`;
}

export function sealRecord({ kind, ref, task_id, hash }: SealedRecord, isFirst: boolean): string {
  const record = kind === 'thought' ? formatId(THOUGHTS, ref) : auditRow(ref);
  return `${isFirst ? '' : ','}${canonicalJson({ hash, kind, record, task_id: formatId(TASKS, task_id) })}`;
}

export function sealEnd({ sealed_task_id, session_id, tree_depth }: SealFacts): string {
  const task = sealed_task_id === null ? null : formatId(TASKS, sealed_task_id);
  return `],"sealed_task_id":${canonicalJson(task)},"session_id":"${session_id}","tree_depth":${tree_depth}}\n`;
}
