/// <reference lib="dom" />
import type { Task } from '../protocol.ts';
import { h, number, replace, said, words } from './dom.ts';

const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  kanban: ['backlog', 'todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled'],
  pipeline: ['INIT', 'GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE', 'CANCELLED'],
};
const URGENCY: readonly string[] = ['critical', 'high', 'normal', 'low'];
const CARDS_STEP = 30;

/** The tasks as columns, one a status, the most urgent first. Long columns are shown a part at a time. */
export function boardView(tasks: readonly Task[], openTask: (task: Task) => void): HTMLElement {
  const projects = [...new Set(tasks.map(({ project }) => project))].sort();
  const project = h('select', { id: 'board-project' }, h('option', { value: '' }, 'All projects'));
  for (const name of projects) project.append(h('option', { value: name }, name.slice(0, 64)));
  const search = h('input', {
    id: 'board-search',
    type: 'search',
    placeholder: 'Title, id, assignee or label',
    spellcheck: 'false',
  });
  const columns = h('div', { class: 'boards' });

  function draw(): void {
    const needle = search.value.trim().toLowerCase();
    const shown = tasks.filter(
      (task) =>
        (project.value === '' || task.project === project.value) &&
        (needle === '' || haystack(task).includes(needle)),
    );
    replace(columns, ...boards(shown, openTask));
    if (shown.length === 0)
      columns.append(
        h('p', { class: 'note' }, tasks.length === 0 ? 'There are no tasks.' : 'No task matches.'),
      );
  }
  project.addEventListener('change', draw);
  search.addEventListener('input', draw);
  draw();
  return h(
    'div',
    { class: 'board-view' },
    h(
      'div',
      { class: 'filters' },
      h('label', { for: 'board-search' }, h('span', {}, 'Search'), search),
      h('label', { for: 'board-project' }, h('span', {}, 'Project'), project),
    ),
    columns,
  );
}

function haystack({ id, title, assignee, labels }: Task): string {
  return `${id} ${title} ${assignee} ${labels.join(' ')}`.toLowerCase();
}

function boards(tasks: readonly Task[], openTask: (task: Task) => void): HTMLElement[] {
  const workflows = [...new Set(tasks.map(({ workflow }) => workflow))].sort();
  return workflows.map((workflow) => {
    const own = tasks.filter((task) => task.workflow === workflow);
    const known = COLUMNS[workflow] ?? [];
    const others = [...new Set(own.map(({ status }) => status))].filter((status) => !known.includes(status));
    return h(
      'div',
      { class: 'board' },
      workflows.length > 1 && h('h2', {}, said(workflow, 40)),
      h(
        'div',
        {
          class: 'board-columns',
          role: 'group',
          'aria-label': `Columns of ${workflow.slice(0, 40)}`,
          tabindex: 0,
        },
        ...[...known, ...others].map((status) =>
          column(
            status,
            own.filter((task) => task.status === status),
            openTask,
          ),
        ),
      ),
    );
  });
}

function column(status: string, tasks: readonly Task[], openTask: (task: Task) => void): HTMLElement {
  const sorted = [...tasks].sort((a, b) => URGENCY.indexOf(a.priority) - URGENCY.indexOf(b.priority));
  const list = h('ul', { class: 'cards' });
  const more = h('button', { class: 'more', type: 'button', on: { click: () => extend() } });
  let shown = 0;
  function extend(): void {
    for (const task of sorted.slice(shown, shown + CARDS_STEP))
      list.append(h('li', {}, card(task, openTask)));
    shown = Math.min(sorted.length, shown + CARDS_STEP);
    more.hidden = shown === sorted.length;
    more.textContent = `Show more (${number(sorted.length - shown)} hidden)`;
  }
  extend();
  return h(
    'section',
    { class: 'column', 'data-status': status.toLowerCase(), 'data-empty': tasks.length === 0 },
    h('h3', {}, said(words(status), 40), h('span', { class: 'count' }, number(tasks.length))),
    list,
    more,
  );
}

function card(task: Task, openTask: (task: Task) => void): HTMLElement {
  return h(
    'button',
    {
      class: 'task',
      type: 'button',
      'data-priority': task.priority,
      'data-wrong': task.isWrong,
      on: { click: () => openTask(task) },
    },
    h(
      'span',
      { class: 'task-head' },
      h('span', { class: 'id' }, task.id),
      task.priority !== 'normal' && h('span', { class: 'priority' }, said(task.priority, 20)),
      task.isProofGrade && h('span', { class: 'tag' }, 'proof'),
    ),
    h('span', { class: 'task-title' }, said(task.title, 160)),
    h(
      'span',
      { class: 'task-foot' },
      task.assignee !== 'unassigned' && said(task.assignee, 40),
      task.progress > 0 && task.progress < 100 && h('span', {}, `${number(task.progress)} %`),
    ),
    task.isWrong && h('span', { class: 'wrong-tag' }, 'finding'),
  );
}
