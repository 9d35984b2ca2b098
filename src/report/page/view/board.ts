import { ARROWS } from '../../../domains/tasks/workflows.ts';
import type { Abandoned } from '../given.ts';
import type { Task } from '../worker/records.ts';
import { h, replace } from './dom.ts';
import { choice, field, growing, note, number, said, searchField, tag, time, words } from './parts.ts';

const COLUMNS = new Map(Object.entries(ARROWS).map(([workflow, arrows]) => [workflow, Object.keys(arrows)]));
const URGENCY: readonly string[] = ['critical', 'high', 'normal', 'low'];
const CARDS_STEP = 30;

/** The tasks as columns, one per status, the most urgent first. Long columns are shown a part at a time. */
export function boardView(
  tasks: readonly Task[],
  openTask: (task: Task) => void,
  abandoned: Abandoned = { at: '', tasks: [] },
): HTMLElement {
  const left = new Set(abandoned.tasks);
  const project = choice('board-project', 'All projects', new Set(tasks.map((task) => task.project)), draw);
  const search = searchField('board-search', 'Title, id, assignee or label', draw);
  const columns = h('div');

  function draw(): void {
    const needle = search.value.trim().toLowerCase();
    const shown = tasks.filter(
      (task) => (project.value === '' || task.project === project.value) && haystack(task).includes(needle),
    );
    const none = tasks.length === 0 ? 'There are no tasks.' : 'No task matches.';
    replace(columns, boards(shown, left, openTask), shown.length === 0 && note(none));
  }
  draw();
  return h('div.board-view', [
    h('div.row.filters', field('Search', search), field('Project', project)),
    left.size > 0 &&
      note(
        'The holders of abandoned tasks were gone or silent when this report was made, ',
        time(abandoned.at),
        '. No log can prove that.',
      ),
    columns,
  ]);
}

function haystack({ id, title, assignee, labels }: Task): string {
  return `${id} ${title} ${assignee} ${labels.join(' ')}`.toLowerCase();
}

function boards(
  tasks: readonly Task[],
  left: ReadonlySet<string>,
  openTask: (task: Task) => void,
): HTMLElement[] {
  const workflows = [...new Set(tasks.map(({ workflow }) => workflow))].sort();
  return workflows.map((workflow) => {
    const own = tasks.filter((task) => task.workflow === workflow);
    const statuses = new Set([...(COLUMNS.get(workflow) ?? []), ...own.map(({ status }) => status)]);
    const columns = [...statuses].map((status) => column(status, own, left, openTask));
    const label = `Columns of ${workflow.slice(0, 40)}`;
    return h('div.board', [
      workflows.length > 1 && h('h2', said(workflow, 40)),
      h('div.scroll.board-columns', { role: 'group', 'aria-label': label, tabindex: 0 }, columns),
    ]);
  });
}

function column(
  status: string,
  all: readonly Task[],
  left: ReadonlySet<string>,
  openTask: (task: Task) => void,
): HTMLElement {
  const tasks = all
    .filter((task) => task.status === status)
    .sort((a, b) => URGENCY.indexOf(a.priority) - URGENCY.indexOf(b.priority));
  return h('section.column', { 'data-status': status.toLowerCase(), 'data-empty': tasks.length === 0 }, [
    h('h3.row.apart', said(words(status), 40), h('span.count', number(tasks.length))),
    ...growing(h('ul'), tasks, CARDS_STEP, (task) => h('li', taskButton(task, left.has(task.id), openTask))),
  ]);
}

function taskButton(task: Task, isAbandoned: boolean, openTask: (task: Task) => void): HTMLElement {
  const { priority, isWrong, progress } = task;
  return h(
    'button.task',
    { 'data-priority': priority, 'data-wrong': isWrong, click: () => openTask(task) },
    h('span.row.note', [
      h('span.id', task.id),
      priority !== 'normal' && h('span', said(priority, 20)),
      task.isProofGrade && tag('proof'),
    ]),
    h('span', said(task.title, 100)),
    h('span.row.note', [
      task.assignee !== 'unassigned' && said(task.assignee, 40),
      progress > 0 && progress < 100 && h('span', `${number(progress)} %`),
    ]),
    task.held_by !== '' &&
      h('span.row.note', [
        h('span', 'held by ', said(task.held_by, 40)),
        isAbandoned && tag('abandoned', 'partly'),
      ]),
    isWrong && tag('finding', 'bad'),
  );
}
