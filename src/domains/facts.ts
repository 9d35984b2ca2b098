import type { Priority, TaskType } from './tasks/schema.ts';
import type { Status, Workflow } from './tasks/workflows.ts';
import type { ThoughtType } from './trail/schema.ts';

// The rows of state as they are stored and hashed. A column that holds a text holds its digest; lists and objects are
// canonical JSON. Derived columns are not facts and are not here. docs/reference/database.md explains every column. They
// are types, not interfaces: only those can be read column by column.

type Columns<Names extends string, T> = { readonly [N in Names]: T };

export type TaskRow = Columns<
  'id' | 'sequence' | 'progress' | 'proof_grade' | 'position' | 'title_call',
  number
> &
  Columns<'estimate_hours' | 'parent_id' | 'description_call' | 'blocked_reason_call', number | null> &
  Columns<'project' | 'title' | 'status_since' | 'status_by' | 'assignee' | 'labels', string> &
  Columns<'depends_on' | 'created_at' | 'created_by' | 'updated_at' | 'updated_by', string> &
  Columns<'description' | 'blocked_reason' | 'held_by' | 'held_process' | 'held_since', string | null> & {
    readonly workflow: Workflow;
    readonly status: Status;
    readonly priority: Priority;
    readonly type: TaskType | null;
  };

export type ThoughtRow = Columns<'id' | 'task_id' | 'chain_position' | 'position' | 'call', number> &
  Columns<'content' | 'hash' | 'recorded_at' | 'recorded_by' | 'observed', string> &
  Columns<
    'tests_run' | 'blockers' | 'metadata' | 'previous_hash' | 'branch' | 'commit_sha',
    string | null
  > & {
    readonly session_id: number | null;
    readonly type: ThoughtType;
  };

export type SessionRow = Columns<'id' | 'task_id' | 'position' | 'call', number> &
  Columns<'sealed_task_id' | 'tree_depth' | 'leaf_count', number | null> &
  Columns<'auditor_id' | 'started_at' | 'started_by' | 'skills', string> &
  Columns<'reason' | 'merkle_root' | 'finalized_at' | 'finalized_by', string | null> & {
    readonly scope: 'shallow' | 'deep';
    readonly status: 'open' | 'finalized';
  };

export type SessionRecordRow = Columns<'id' | 'session_id' | 'task_id' | 'ref' | 'position', number> & {
  /** What `ref` is: the id of a thought, or the position of the exit row of a task change. */
  readonly kind: 'thought' | 'change';
};
