import type { Priority, Status, TaskType, Workflow } from './tasks/index.ts';
import type { ThoughtType } from './trail/index.ts';

// The rows of state as they are stored and hashed. A column that holds a text holds its digest; lists and objects are
// canonical JSON. Derived columns are not facts and are not here.

export interface TaskRow {
  readonly id: number;
  readonly project: string;
  readonly sequence: number;
  /** Digests of texts. */
  readonly title: string;
  readonly description: string | null;
  readonly blocked_reason: string | null;
  readonly workflow: Workflow;
  readonly status: Status;
  readonly status_since: string;
  readonly status_by: string;
  readonly held_by: string | null;
  readonly held_process: string | null;
  readonly held_since: string | null;
  readonly progress: number;
  readonly priority: Priority;
  readonly type: TaskType | null;
  readonly proof_grade: number;
  readonly assignee: string;
  readonly labels: string;
  readonly estimate_hours: number | null;
  readonly parent_id: number | null;
  readonly depends_on: string;
  readonly created_at: string;
  readonly created_by: string;
  readonly updated_at: string;
  readonly updated_by: string;
  readonly position: number;
}

export interface ThoughtRow {
  readonly id: number;
  readonly task_id: number;
  readonly session_id: number | null;
  readonly type: ThoughtType;
  /** Digests of texts. */
  readonly content: string;
  readonly tests_run: string | null;
  readonly blockers: string | null;
  readonly metadata: string | null;
  readonly previous_hash: string | null;
  readonly hash: string;
  readonly chain_position: number;
  readonly recorded_at: string;
  readonly recorded_by: string;
  readonly branch: string | null;
  readonly commit_sha: string | null;
  readonly observed: string;
  readonly position: number;
}

export interface SessionRow {
  readonly id: number;
  readonly task_id: number;
  readonly auditor_id: string;
  /** Digest of a text. */
  readonly reason: string | null;
  readonly scope: 'shallow' | 'deep';
  readonly status: 'open' | 'finalized';
  readonly started_at: string;
  readonly started_by: string;
  readonly skills: string;
  readonly sealed_task_id: number | null;
  readonly merkle_root: string | null;
  readonly tree_depth: number | null;
  readonly leaf_count: number | null;
  readonly finalized_at: string | null;
  readonly finalized_by: string | null;
  readonly position: number;
}

export interface SessionRecordRow {
  readonly id: number;
  readonly session_id: number;
  readonly task_id: number;
  /** A thought by its id, or a task change by the position of its exit row. */
  readonly kind: 'thought' | 'change';
  readonly ref: number;
  readonly position: number;
}
