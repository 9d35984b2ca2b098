/** The task tools as the contract describes them, in memory and without a line of the server. */

type Workflow = 'kanban' | 'pipeline';
export type Priority = 'low' | 'normal' | 'high' | 'critical';

export interface ModelTask {
  readonly id: number;
  readonly workflow: Workflow;
  readonly project: string;
  readonly sequence: number;
  readonly parent: number | undefined;
  readonly proofGrade: boolean;
  readonly createdBy: string;
  readonly createdAt: string;
  status: string;
  statusSince: string;
  statusBy: string;
  title: string;
  description: string;
  priority: Priority;
  progress: number;
  assignee: string;
  labels: readonly string[];
  estimate: number | undefined;
  blockedReason: string | undefined;
  dependsOn: readonly number[];
  updatedAt: string;
  updatedBy: string;
  thoughts: number;
  sealed: boolean;
  /** The open session, if there is one. */
  session: string | undefined;
  /** Who has it in progress, and since when. */
  held: { readonly by: string; readonly since: string } | undefined;
}

export interface NewTask {
  readonly title: string;
  readonly project: string;
  readonly description?: string;
  readonly workflow?: Workflow;
  readonly priority?: Priority;
  readonly labels?: readonly string[];
  readonly assignee?: string;
  readonly estimate?: number;
  readonly proofGrade?: boolean;
  readonly parent?: number;
  readonly dependsOn?: readonly number[];
}

export interface Changes {
  readonly status?: string;
  readonly progress?: number;
  readonly title?: string;
  readonly description?: string;
  readonly priority?: Priority;
  readonly labels?: readonly string[];
  readonly assignee?: string;
  readonly estimate?: number;
  readonly blockedReason?: string;
  readonly dependsOn?: readonly number[];
  readonly takeover?: boolean;
}

export const PRIORITIES: readonly Priority[] = ['low', 'normal', 'high', 'critical'];

const ARROWS: Readonly<Record<string, readonly string[]>> = {
  backlog: ['todo', 'cancelled'],
  todo: ['in_progress', 'blocked', 'cancelled'],
  in_progress: ['review', 'blocked', 'cancelled'],
  blocked: ['todo', 'in_progress', 'cancelled'],
  review: ['done', 'backlog', 'blocked', 'cancelled'],
  done: [],
  cancelled: [],
  INIT: ['GATHER', 'CANCELLED'],
  GATHER: ['ANALYZE', 'CANCELLED'],
  ANALYZE: ['PLAN', 'CANCELLED'],
  PLAN: ['APPLY', 'CANCELLED'],
  APPLY: ['VERIFY', 'CANCELLED'],
  VERIFY: ['DONE', 'GATHER', 'CANCELLED'],
  DONE: [],
  CANCELLED: [],
};

export const STATUSES: readonly string[] = Object.keys(ARROWS);

export class BoardModel {
  readonly tasks = new Map<number, ModelTask>();

  arrowsOf(id: number): readonly string[] {
    return ARROWS[this.tasks.get(id)?.status ?? ''] ?? [];
  }

  isFinal(id: number): boolean {
    return this.arrowsOf(id).length === 0;
  }

  /** Whom a task waits for: its children and what it depends on, each once. */
  awaitedBy(id: number): Set<number> {
    const children = [...this.tasks.values()].filter((task) => task.parent === id).map((task) => task.id);
    return new Set([...children, ...(this.tasks.get(id)?.dependsOn ?? [])]);
  }

  unmet(id: number): number {
    return [...this.awaitedBy(id)].filter((awaited) => !this.isFinal(awaited)).length;
  }

  /** Every code that may refuse this; none means that it must succeed. */
  refusalsOfCreate(task: NewTask): Set<string> {
    const named = [...(task.parent === undefined ? [] : [task.parent]), ...(task.dependsOn ?? [])];
    const codes = new Set<string>();
    if (named.some((id) => !this.tasks.has(id))) codes.add('ERR_TASK_NOT_FOUND');
    if (task.parent !== undefined && this.#leadsTo(task.dependsOn ?? [], task.parent))
      codes.add('ERR_CIRCULAR_DEPENDENCY');
    return codes;
  }

  /** Whether a change asks for another status: a takeover with the one that a held task has does not. */
  moves(task: ModelTask, { status, takeover }: Changes): boolean {
    return status !== undefined && !(takeover === true && task.held !== undefined && status === task.status);
  }

  refusalsOfUpdate(id: number, changes: Changes, by: string): Set<string> {
    const task = this.tasks.get(id);
    if (task === undefined) return new Set(['ERR_TASK_NOT_FOUND']);
    const codes = new Set<string>();
    const moves = this.moves(task, changes);
    if (changes.takeover === true && !moves && task.held === undefined) codes.add('ERR_INVALID_TRANSITION');
    if (moves && changes.status !== undefined) {
      if (!this.arrowsOf(id).includes(changes.status)) codes.add('ERR_INVALID_TRANSITION');
      else if ((task.held?.by ?? by) !== by && task.assignee !== by && changes.takeover !== true)
        codes.add('ERR_TASK_HELD');
      else if (changes.status.toLowerCase() === 'done') {
        if (task.thoughts === 0) codes.add('ERR_WRITEBACK_REQUIRED');
        else if (task.proofGrade && (!task.sealed || task.session !== undefined))
          codes.add('ERR_PROOF_REQUIRED');
      }
    }
    if (changes.dependsOn?.some((other) => !this.tasks.has(other))) codes.add('ERR_TASK_NOT_FOUND');
    if (this.#leadsTo(changes.dependsOn ?? [], id)) codes.add('ERR_CIRCULAR_DEPENDENCY');
    return codes;
  }

  create(task: NewTask, at: string, by: string): ModelTask {
    const workflow = task.workflow ?? 'kanban';
    const made: ModelTask = {
      id: this.tasks.size + 1,
      workflow,
      project: task.project,
      sequence: [...this.tasks.values()].filter((other) => other.project === task.project).length + 1,
      parent: task.parent,
      proofGrade: task.proofGrade ?? false,
      createdBy: by,
      createdAt: at,
      status: workflow === 'kanban' ? 'backlog' : 'INIT',
      statusSince: at,
      statusBy: by,
      title: task.title,
      description: task.description ?? '',
      priority: task.priority ?? 'normal',
      progress: 0,
      assignee: task.assignee ?? 'unassigned',
      labels: [...new Set(task.labels)],
      estimate: task.estimate,
      blockedReason: undefined,
      dependsOn: [...new Set(task.dependsOn)],
      updatedAt: at,
      updatedBy: by,
      thoughts: 0,
      sealed: false,
      session: undefined,
      held: undefined,
    };
    this.tasks.set(made.id, made);
    return made;
  }

  update(id: number, changes: Changes, at: string, by: string): ModelTask {
    const task = this.tasks.get(id) as ModelTask;
    task.title = changes.title ?? task.title;
    task.description = changes.description ?? task.description;
    task.priority = changes.priority ?? task.priority;
    task.progress = changes.progress ?? task.progress;
    task.assignee = changes.assignee ?? task.assignee;
    task.estimate = changes.estimate ?? task.estimate;
    const moves = this.moves(task, changes);
    task.blockedReason = changes.blockedReason ?? (moves ? undefined : task.blockedReason);
    if (changes.labels !== undefined) task.labels = [...new Set(changes.labels)];
    if (changes.dependsOn !== undefined) task.dependsOn = [...new Set(changes.dependsOn)];
    if (changes.takeover === true && task.held?.by !== by) task.held = { by, since: at };
    if (changes.status !== undefined && changes.status !== task.status) {
      const isUnderWay = /in_progress|GATHER|ANALYZE|PLAN|APPLY|VERIFY/.test(changes.status);
      if (!isUnderWay) task.held = undefined;
      else if (task.held?.by !== by) task.held = { by, since: at };
      task.status = changes.status;
      task.statusSince = at;
      task.statusBy = by;
      if (changes.status.toLowerCase() === 'done') task.progress = 100;
    }
    task.updatedAt = at;
    task.updatedBy = by;
    return task;
  }

  /** Ready ones first, then by priority, then oldest; what is under way only for who holds it. */
  nextActions(project: string | undefined, by: string): ModelTask[] {
    const isNext = ({ status, workflow, held }: ModelTask) =>
      status === 'todo' || status === 'INIT' || (workflow === 'pipeline' && held?.by === by);
    return [...this.tasks.values()]
      .filter((task) => project === undefined || task.project === project)
      .filter(isNext)
      .toSorted(
        (a, b) =>
          Number(this.unmet(a.id) > 0) - Number(this.unmet(b.id) > 0) ||
          PRIORITIES.indexOf(b.priority) - PRIORITIES.indexOf(a.priority) ||
          a.id - b.id,
      );
  }

  blocked(project: string | undefined): ModelTask[] {
    return [...this.tasks.values()]
      .filter((task) => task.status === 'blocked')
      .filter((task) => project === undefined || task.project === project);
  }

  /** Whether waiting for these means, in the end, waiting for `goal`. */
  #leadsTo(from: readonly number[], goal: number): boolean {
    const seen = new Set(from);
    for (const id of seen) for (const awaited of this.awaitedBy(id)) seen.add(awaited);
    return seen.has(goal);
  }
}
