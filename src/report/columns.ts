import { ARROWS } from '../domains/tasks/workflows.ts';

// Where tasks are, for the board and for the figures: one rule for a terminal, a report and the live page.

/** How many tasks of a workflow are in a status. */
export interface ColumnCount {
  readonly workflow: string;
  readonly status: string;
  readonly count: number;
}

/** Every status of each workflow that is in use, in the order of its steps. What a stranger wrote in place of one comes last. */
export function columnsOf(counts: readonly ColumnCount[]): ColumnCount[] {
  const workflows = [...new Set(counts.map(({ workflow }) => workflow))].sort();
  return workflows.flatMap((workflow) => {
    const own = counts.filter((one) => one.workflow === workflow);
    const statuses = new Set([...stepsOf(workflow), ...own.map(({ status }) => status)]);
    return [...statuses].map((status) => {
      const some = own.filter((one) => one.status === status);
      return { workflow, status, count: some.reduce((sum, { count }) => sum + count, 0) };
    });
  });
}

function stepsOf(workflow: string): string[] {
  return Object.hasOwn(ARROWS, workflow) ? Object.keys(ARROWS[workflow as keyof typeof ARROWS]) : [];
}

/** Whether there is such a column at all. */
export function isColumn({ workflow, status }: Omit<ColumnCount, 'count'>): boolean {
  return stepsOf(workflow).includes(status);
}

/** How many tasks are finished, cancelled and open: these three are all of them. */
export function standingOf(counts: readonly Pick<ColumnCount, 'status' | 'count'>[]) {
  const standing = { finished: 0, cancelled: 0, open: 0 };
  for (const { status, count } of counts) standing[whereIs(status)] += count;
  return standing;
}

export function whereIs(status: string): 'finished' | 'cancelled' | 'open' {
  const word = status.toLowerCase();
  return word === 'done' ? 'finished' : word === 'cancelled' ? 'cancelled' : 'open';
}
