import type { Filter } from '../../filter.ts';
import type { Task } from '../../records.ts';
import type { Column, Log } from '../worker/log.ts';
import { h, replace } from './dom.ts';
import { note, number, said, tag, time, words } from './parts.ts';
import { type Refreshed, redrawing, type View } from './view.ts';

type Ask = Pick<Log, 'board' | 'cards' | 'abandoned'>;
/** A column is drawn with whom to ask for more, and with the tasks that were left. */
interface Drawing {
  readonly filter: Filter;
  readonly log: Ask;
  readonly left: ReadonlySet<string>;
  readonly openId: OpenId;
}

type OpenId = (id: string) => void;

/** The tasks as columns, one per status, the most urgent first. Long columns are shown a part at a time. */
export function boardView(log: Ask, openId: OpenId): View {
  const element = h('div.board-view');
  const redraw = redrawing(element);
  return {
    element,
    async refresh(filter): Promise<Refreshed> {
      const columns = await log.board(filter);
      const abandoned = await log.abandoned();
      const drawing = { filter, log, openId, left: new Set(abandoned.tasks) };
      redraw([columns, abandoned.tasks], () => {
        const none = columns.every(({ count }) => count === 0);
        return [
          abandoned.tasks.length > 0 &&
            note(
              'The holders of abandoned tasks were gone or silent when this was checked, ',
              time(abandoned.at),
              '. No log can prove that.',
            ),
          ...boards(columns, drawing),
          none && note('No task matches, or there is none yet.'),
        ];
      });
      return {};
    },
  };
}

function boards(columns: readonly Column[], drawing: Drawing): HTMLElement[] {
  const workflows = [...new Set(columns.map(({ workflow }) => workflow))];
  return workflows.map((workflow) => {
    const own = columns.filter((column) => column.workflow === workflow);
    const label = `Columns of ${workflow.slice(0, 40)}`;
    return h('div.board', [
      workflows.length > 1 && h('h2', said(workflow, 40)),
      h(
        'div.scroll.board-columns',
        { role: 'group', 'aria-label': label, tabindex: 0 },
        own.map((column) => columnPart(column, drawing)),
      ),
    ]);
  });
}

function columnPart(column: Column, { filter, log, left, openId }: Drawing): HTMLElement {
  const { status, count, tasks } = column;
  const list = h('ul');
  const more = h('button.more', { click: () => void extend() });
  let shown = 0;
  const add = (some: readonly Task[]) => {
    list.append(...some.map((task) => h('li', taskButton(task, left.has(task.id), openId))));
    shown += some.length;
    more.hidden = shown >= count || some.length === 0;
    replace(more, `Show more (${number(count - shown)} hidden)`);
  };
  async function extend(): Promise<void> {
    more.disabled = true;
    add(await log.cards(filter, column, shown));
    more.disabled = false;
  }
  add(tasks);
  return h('section.column', { 'data-status': status.toLowerCase(), 'data-empty': count === 0 }, [
    h('h3.row.apart', said(words(status), 40), h('span.count', number(count))),
    list,
    more,
  ]);
}

const LABELS_MAX = 4;

function taskButton(task: Task, isAbandoned: boolean, openId: OpenId): HTMLElement {
  const { id, priority, isWrong, progress } = task;
  const labelsLeft = task.labels.length - LABELS_MAX;
  return h(
    'button.task',
    { 'data-priority': priority, 'data-wrong': isWrong, 'data-key': id, click: () => openId(id) },
    h('span.row.note', [
      h('span.id', id),
      priority !== 'normal' && h('span', said(priority, 20)),
      task.isProofGrade && tag('proof'),
    ]),
    h('span', said(task.title, 100)),
    task.status === 'blocked' &&
      task.blocked_reason !== '' &&
      h('span.error', said(task.blocked_reason, 100)),
    h('span.row.note', [
      h('span', said(task.project, 40)),
      ...task.labels.slice(0, LABELS_MAX).map((label) => tag(`#${label.slice(0, 24)}`)),
      labelsLeft > 0 && h('span', `+${number(labelsLeft)}`),
    ]),
    h('span.row.note', [
      task.assignee !== 'unassigned' && said(task.assignee, 40),
      progress > 0 && progress < 100 && h('span', `${number(progress)} %`),
      h('span.since', 'since ', time(task.status_since.slice(0, 10))),
    ]),
    task.held_by !== '' &&
      h('span.row.note', [
        h('span', 'held by ', said(task.held_by, 40)),
        isAbandoned && tag('abandoned', 'partly'),
      ]),
    isWrong && tag('finding', 'bad'),
  );
}
