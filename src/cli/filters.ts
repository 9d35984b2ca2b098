import type { Config } from '../config.ts';
import { ARROWS, STATUSES, type Status, WORKFLOWS } from '../domains/tasks/workflows.ts';
import { didYouMean } from '../errors.ts';
import { UsageError, type Values } from './command.ts';
import { PERIOD_OPTIONS, readPeriod } from './dates.ts';

/** Statuses with no arrows out, and the others. */
export const FINISHED: readonly Status[] = STATUSES.filter((status) =>
  WORKFLOWS.some((workflow) => ARROWS[workflow][status]?.length === 0),
);
const OPEN = STATUSES.filter((status) => !FINISHED.includes(status));

/** The options that choose among tasks. */
export const TASK_FILTERS = {
  project: { value: 'NAME', help: 'only this project' },
  status: { value: 'STATUS', multiple: true, choices: STATUSES, help: 'only this status; may be repeated' },
  assignee: { value: 'NAME', help: 'only tasks assigned to this person or agent' },
  label: { value: 'LABEL', help: 'only tasks with this label' },
  holder: { value: 'NAME', help: 'only tasks that this person or agent holds' },
  ...PERIOD_OPTIONS,
} as const;

/** The filters as a query of tasks. The period is that of the last change. */
export function taskQuery(values: Values<typeof TASK_FILTERS>, { project }: Config) {
  const { assignee, label, holder } = values;
  const status = values.status?.flatMap(readStatuses);
  const named = values.project ?? project;
  return {
    ...(named !== undefined && { project: named }),
    ...(status !== undefined && { status }),
    ...(assignee !== undefined && { assignee }),
    ...(label !== undefined && { label }),
    ...(holder !== undefined && { held_by: holder }),
    ...((values.since ?? values.until) !== undefined && { changed: readPeriod(values) }),
  };
}

/** Tasks that are not finished. */
export const OPEN_ONLY = { status: [...OPEN] };
export const FINISHED_ONLY = { status: [...FINISHED] };

/** The statuses that a person can mean: small letters and hyphens will do. Two workflows may have the same word. */
export function readStatuses(text: string): Status[] {
  const plain = (word: string) => word.toLowerCase().replaceAll('-', '_');
  const meant = STATUSES.filter((status) => plain(status) === plain(text));
  if (meant.length > 0) return meant;
  const hint = didYouMean(plain(text), STATUSES);
  throw new UsageError(`"${text}" is not a status.${hint} Statuses: ${STATUSES.join(', ')}.`);
}
