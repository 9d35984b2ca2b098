import * as z from 'zod';
import { projectName } from '../../config.ts';
import { LIMITS } from '../../limits.ts';
import { actorName, each, instant, line, otherwise, pageOffset, recordId, texts } from '../fields.ts';
import { STATUSES, WORKFLOWS } from './workflows.ts';

const PRIORITIES = ['low', 'normal', 'high', 'critical'] as const;
const TYPES = ['implementation', 'refactor', 'doc', 'investigation', 'spike'] as const;

export type Priority = (typeof PRIORITIES)[number];
export type TaskType = (typeof TYPES)[number];

/** Tasks in a page, and in a list of next actions, where the caller does not say. */
export const PAGE_DEFAULT = 50;
export const NEXT_DEFAULT = 20;

const IF_CONFIGURED = 'default: as configured, else all';

const title = line(LIMITS.titleCharsMax);
const priority = z.enum(PRIORITIES);

/** What may be given when a task is created and changed later. */
const Editable = {
  description: z.string().max(LIMITS.descriptionCharsMax).optional(),
  priority: priority.optional(),
  labels: z.array(line(LIMITS.labelCharsMax)).max(LIMITS.labelsMax).optional(),
  assignee: actorName.optional(),
  estimate_hours: z.number().min(0).max(LIMITS.estimateHoursMax).optional(),
  depends_on: z.array(recordId).max(LIMITS.dependenciesMax).optional().describe('tasks to finish first'),
};

export const CreateInput = z.strictObject({
  title,
  project: projectName.describe('a new name creates a project'),
  ...Editable,
  priority: otherwise(priority, 'normal'),
  assignee: otherwise(actorName, 'unassigned'),
  parent_id: recordId.optional().describe('parent task'),
  type: z.enum(TYPES).optional(),
  proof_grade: z.boolean().optional().describe('finishing needs a sealed session'),
  workflow: z.enum(WORKFLOWS).optional().describe('default: as configured'),
});

export const CreateOutput = z.strictObject({
  ...texts('task_id', 'created_at', 'created_by'),
  status: z.enum(STATUSES),
  sequence: z.int(),
  workflow: z.enum(WORKFLOWS),
});

export const UpdateInput = z
  .strictObject({
    task_id: recordId.describe('with at least one other field'),
    status: z.enum(STATUSES).optional().describe('lower case: kanban; upper case: pipeline'),
    progress: z.number().min(0).max(100).optional().describe('percent'),
    title: title.optional(),
    ...Editable,
    blocked_reason: line(LIMITS.reasonCharsMax).optional().describe('required with status blocked'),
    takeover: z.boolean().optional().describe('true: take over from its holder'),
  })
  .refine((update) => Object.keys(update).length > 1, 'give at least one field besides task_id')
  .refine((update) => update.status !== 'blocked' || update.blocked_reason !== undefined, {
    path: ['blocked_reason'],
    message: 'required when status is blocked: say what the task waits for',
  });

/** Who holds a task, or held it. A person at the command line is never seen, and counts as present. */
const Holder = {
  ...texts('held_by', 'since'),
  last_seen: z.string().optional(),
  present: z.boolean(),
};

const FormerHolder = z.strictObject(Holder);

export const UpdateOutput = z.strictObject({
  ...texts('task_id', 'updated_at', 'updated_by'),
  status: z.enum(STATUSES),
  progress: z.number(),
  previous_status: z.enum(STATUSES).optional(),
  taken_over_from: FormerHolder.optional(),
  warnings: z.array(z.string()).optional(),
});

export const GetInput = z.strictObject({
  task_id: recordId,
  include_thought_trail: z.boolean().optional().describe('include thought ids'),
  include_dependents: z.boolean().optional().describe('include child ids'),
  include_history: z.boolean().optional().describe('include its calls, newest first'),
});

/** A call on the task: what it asked for, and how it ended. `position` is that of its exit row. */
const PastCall = z.strictObject({
  position: z.int(),
  ...texts('at', 'actor', 'tool', 'outcome'),
  error_code: z.string().optional(),
  message: z.string().optional(),
  args: z.record(z.string(), z.unknown()),
  previous_status: z.string().optional(),
  taken_over_from: z.record(z.string(), z.unknown()).optional(),
});

const Summary = {
  ...texts('task_id', 'title', 'project', 'assignee', 'created_at', 'updated_at'),
  status: z.enum(STATUSES),
  priority,
  progress: z.number(),
};

export const GetOutput = z.strictObject({
  ...Summary,
  ...texts('description', 'created_by', 'updated_by', 'status_since', 'status_by'),
  ...each(z.array(z.string()), 'labels', 'depends_on'),
  estimate_hours: z.number().optional(),
  ...each(z.string().optional(), 'parent_id', 'blocked_reason'),
  ...each(z.int(), 'sequence', 'dependencies_unmet'),
  workflow: z.enum(WORKFLOWS),
  type: z.enum(TYPES).optional(),
  proof_grade: z.boolean(),
  erased: z.boolean().optional(),
  holder: z.strictObject({ ...Holder, abandoned: z.boolean() }).optional(),
  ...each(z.array(z.string()).optional(), 'thought_trail', 'dependents'),
  history: z.array(PastCall).optional(),
  history_total: z.int().optional(),
});

export const ListInput = z.strictObject({
  project: projectName.optional().describe(IF_CONFIGURED),
  status: z.array(z.enum(STATUSES)).max(STATUSES.length).optional(),
  priority: z.array(priority).max(PRIORITIES.length).optional(),
  assignee: actorName.optional(),
  label: line(LIMITS.labelCharsMax).optional(),
  ...each(instant, 'created_after', 'created_before'),
  search: z.string().max(LIMITS.searchCharsMax).optional().describe('words or prefixes'),
  limit: otherwise(z.int().min(1).max(LIMITS.tasksPageMax), PAGE_DEFAULT),
  offset: pageOffset,
  sort_by: otherwise(z.enum(['created', 'updated', 'priority', 'progress']), 'updated'),
  sort_order: otherwise(z.enum(['asc', 'desc']), 'desc'),
});

export const ListOutput = z.strictObject({
  tasks: z.array(z.strictObject({ ...Summary, erased: z.boolean().optional() })),
  ...each(z.int(), 'total_count', 'returned_count', 'offset', 'limit'),
});

export const NextInput = z.strictObject({
  project: projectName.optional().describe(IF_CONFIGURED),
  limit: otherwise(z.int().min(1).max(LIMITS.nextActionsMax), NEXT_DEFAULT),
  include_blocked: z.boolean().optional().describe('include blocked tasks and why'),
});

const HeldTask = z.strictObject({
  ...texts('task_id', 'title'),
  status: z.enum(STATUSES),
  ...Holder,
  erased: z.boolean().optional(),
});

export const NextOutput = z.strictObject({
  next_actions: z.array(
    z.strictObject({
      ...texts('task_id', 'title', 'assignee'),
      priority,
      estimate_hours: z.number().optional(),
      parent_id: z.string().optional(),
      dependencies_unmet: z.int(),
      status: z.enum(STATUSES).optional(),
      erased: z.boolean().optional(),
    }),
  ),
  count: z.int(),
  project: z.string(),
  blocked: z
    .array(z.strictObject({ ...texts('task_id', 'title', 'blocked_reason'), erased: z.boolean().optional() }))
    .optional(),
  ...each(z.array(HeldTask).optional(), 'yours', 'abandoned'),
  hint: z.string().optional(),
});

export type CreateArgs = z.output<typeof CreateInput>;
export type Created = z.output<typeof CreateOutput>;
export type UpdateArgs = z.output<typeof UpdateInput>;
export type Updated = z.output<typeof UpdateOutput>;
export type FormerHolder = z.output<typeof FormerHolder>;
export type PastCall = z.output<typeof PastCall>;
export type ListArgs = z.output<typeof ListInput>;
