import { erasureLine } from '../../../verify/verdict.ts';
import type { Period } from '../../glance.ts';
import type { Opened } from '../worker/open.ts';
import type { Call, Task } from '../worker/records.ts';
import type { VerdictView } from '../worker/verdict.ts';
import { type Child, h, type Part } from './dom.ts';
import { glanceView } from './glance.ts';
import { card, lineButton, note, number, plural, said, seal, table, time, words } from './parts.ts';

const RECENT_MAX = 8;
const ACTORS_MAX = 50;

/** What a manager wants to know: what was done, by whom, when, and what can be relied on. */
export function summaryView(
  opened: Opened,
  openTask: (task: Task) => void,
  period: Period | undefined,
): HTMLElement {
  const { calls, tasks, sessions, verdict } = opened;
  const done = tasks.filter(isDone);
  const cancelled = tasks.filter(({ status }) => status.toLowerCase() === 'cancelled');
  const open = tasks.filter((task) => !isDone(task) && !cancelled.includes(task));
  const thoughts = calls.filter(({ kind }) => kind === 'thought').length;
  const failures = calls.filter(({ kind }) => kind === 'failure').length;
  const sealed = sessions.filter(({ isSealed, isWrong }) => isSealed && !isWrong).length;
  const unproved = note('Names are what each client said of itself; nothing proves them.');
  const failed = failures === 0 ? 'none failed' : `${number(failures)} failed or refused`;
  return h('div.grid', [
    verdict.findingCount > 0 &&
      seal('bad', 'Something here is not as it was written. What is shown may be wrong; see Checks.'),
    h('div.grid.columns.figures', [
      figure(
        done.length,
        'tasks finished',
        `of ${number(tasks.length)}; ${number(open.length)} open, ${number(cancelled.length)} cancelled`,
      ),
      figure(thoughts, 'thoughts recorded', 'decisions, risks, plans'),
      figure(sealed, 'sessions sealed', `of ${number(sessions.length)}; each seal was checked`),
      figure(calls.length, 'calls in the log', failed),
    ]),
    h('p.note', spanOf(calls)),
    period !== undefined && glanceView(opened, period, openTask),
    h('div.grid.columns', [
      card('Recently finished', recent(done, openTask, 'No task is finished yet.')),
      card('Who did what', unproved, actors(calls, tasks)),
      card('What this rests on', h('ul.grounds', ...grounds(verdict).map((line) => h('li', line)))),
      card('Open and moving', recent(open, openTask, 'Nothing is open.')),
    ]),
  ]);
}

function isDone({ status }: Task): boolean {
  return status.toLowerCase() === 'done';
}

function figure(value: number, label: string, more: string): HTMLElement {
  return h('div.card', h('b.figure', number(value)), h('div', label), h('small', more));
}

function spanOf(calls: readonly Call[]): Child[] {
  const [first, last] = [calls[0], calls.at(-1)];
  if (first === undefined || last === undefined) return ['No calls.'];
  const clock = ' UTC, by the clock of the machine that kept the log.';
  return ['From ', time(first.at), ' to ', time(last.at), clock];
}

function recent(tasks: readonly Task[], openTask: (task: Task) => void, none: string): HTMLElement {
  if (tasks.length === 0) return note(none);
  const latest = [...tasks].sort((a, b) => (a.status_since < b.status_since ? 1 : -1)).slice(0, RECENT_MAX);
  return h('ul', [
    ...latest.map((task) => {
      const { id, title, status, status_by, status_since } = task;
      const last = h('small', said(words(status), 40), ' by ', said(status_by, 60), ', ', time(status_since));
      return h('li', lineButton(id, title, { click: () => openTask(task) }), last);
    }),
    tasks.length > RECENT_MAX && h('li.note', `and ${number(tasks.length - RECENT_MAX)} more on the board`),
  ]);
}

function actors(calls: readonly Call[], tasks: readonly Task[]): HTMLElement {
  const names = ['Actor', 'Finished', 'Thoughts', 'Calls', 'Failed'];
  const counts = new Map(
    calls.map(({ actor }) => [actor, { finished: 0, thoughts: 0, calls: 0, failed: 0 }]),
  );
  for (const { actor, kind } of calls) {
    const count = counts.get(actor);
    if (count === undefined) continue;
    count.calls += 1;
    if (kind === 'thought') count.thoughts += 1;
    if (kind === 'failure') count.failed += 1;
  }
  for (const { status_by } of tasks.filter(isDone)) {
    const count = counts.get(status_by);
    if (count !== undefined) count.finished += 1;
  }
  const rows = [...counts].sort(([, a], [, b]) => b.calls - a.calls).slice(0, ACTORS_MAX);
  const cells = rows.map(([actor, count]) => [said(actor, 60), ...Object.values(count).map(number)]);
  return table('Actors', names, cells);
}

/** What the verdict stands on and what it does not, in sentences. */
function grounds({ keys, rows, size, remarks, erased }: VerdictView): Part[] {
  return [
    `${plural(rows, 'audit row')} of ${number(size)} checked in this browser by the rules of “colibri verify”, not taken on trust.`,
    ...keys.map(({ id }) => [
      'The key ',
      h('code.hash', id),
      ' came with it: it shows that one key signed, not whose it is. Compare it under Checks.',
    ]),
    ...erased.map((erasure) => said(erasureLine(erasure), 400)),
    ...remarks.map((remark) => said(remark, 400)),
    'A page that comes with its data could be made to lie. To be sure, check the bundle with a verify.html or a Colibri that you got elsewhere.',
  ];
}
