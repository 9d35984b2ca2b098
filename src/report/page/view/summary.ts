/// <reference lib="dom" />
import type { AnchorView, Call, Opened, Task, VerdictView } from '../protocol.ts';
import { type Child, h, number, plural, said, time } from './dom.ts';

const DONE: readonly string[] = ['done', 'DONE'];
const CANCELLED: readonly string[] = ['cancelled', 'CANCELLED'];
const RECENT_MAX = 8;
const ACTORS_MAX = 50;

/** What a manager wants to know: what was done, by whom, when, and what can be relied on. */
export function summaryView(opened: Opened, openTask: (task: Task) => void): HTMLElement {
  const { calls, tasks, sessions, verdict } = opened;
  const done = tasks.filter(({ status }) => DONE.includes(status));
  const open = tasks.filter(({ status }) => !DONE.includes(status) && !CANCELLED.includes(status));
  const thoughts = calls.filter(({ kind }) => kind === 'thought').length;
  const failures = calls.filter(({ kind }) => kind === 'failure').length;
  const sealed = sessions.filter(({ status, isWrong }) => status === 'finalized' && !isWrong).length;
  return h(
    'div',
    { class: 'summary' },
    verdict.findingCount > 0 &&
      h(
        'p',
        { class: 'seal', 'data-tone': 'bad' },
        'Something here is not as it was written. What is shown may be wrong; see Checks.',
      ),
    h(
      'div',
      { class: 'figures' },
      figure(done.length, 'tasks finished', `of ${number(tasks.length)}; ${number(open.length)} open`),
      figure(thoughts, 'thoughts recorded', 'decisions, risks, plans'),
      figure(sealed, 'sessions sealed', `of ${number(sessions.length)}; each seal was checked`),
      figure(
        calls.length,
        'calls in the log',
        failures === 0 ? 'none failed' : `${number(failures)} failed or refused`,
      ),
    ),
    h('p', { class: 'span' }, ...spanOf(calls)),
    h(
      'div',
      { class: 'columns' },
      section('Finished last', recent(done, openTask, 'No task is finished yet.')),
      section(
        'Who did what',
        actors(calls, tasks),
        'Names are what each client said of itself; nothing proves them.',
      ),
      section(
        'What this rests on',
        h('ul', { class: 'grounds' }, ...grounds(opened).map((line) => h('li', {}, ...line))),
      ),
      section('Open and moving', recent(open, openTask, 'Nothing is open.')),
    ),
  );
}

function figure(value: number, label: string, note: string): HTMLElement {
  return h('div', { class: 'figure' }, h('b', {}, number(value)), h('span', {}, label), h('small', {}, note));
}

function section(title: string, content: HTMLElement, note?: string): HTMLElement {
  return h(
    'section',
    { class: 'card' },
    h('h2', {}, title),
    note !== undefined && h('p', { class: 'note' }, note),
    content,
  );
}

function spanOf(calls: readonly Call[]): Child[] {
  const [first, last] = [calls[0], calls.at(-1)];
  if (first === undefined || last === undefined) return ['No calls.'];
  return [
    'From ',
    time(first.at),
    ' to ',
    time(last.at),
    ' UTC, by the clock of the machine that kept the log.',
  ];
}

function recent(tasks: readonly Task[], openTask: (task: Task) => void, none: string): HTMLElement {
  if (tasks.length === 0) return h('p', { class: 'note' }, none);
  const latest = [...tasks].sort((a, b) => (a.statusSince < b.statusSince ? 1 : -1)).slice(0, RECENT_MAX);
  return h(
    'ul',
    { class: 'plain' },
    ...latest.map((task) =>
      h(
        'li',
        {},
        h(
          'button',
          { class: 'line', type: 'button', on: { click: () => openTask(task) } },
          h('span', { class: 'id' }, task.id),
          h('span', { class: 'clip' }, said(task.title, 200)),
        ),
        h(
          'small',
          {},
          `${task.status.replaceAll('_', ' ')} by `,
          said(task.statusBy, 60),
          ', ',
          time(task.statusSince),
        ),
      ),
    ),
    tasks.length > RECENT_MAX &&
      h('li', { class: 'note' }, `and ${number(tasks.length - RECENT_MAX)} more on the board`),
  );
}

function actors(calls: readonly Call[], tasks: readonly Task[]): HTMLElement {
  const counts = new Map<string, { calls: number; thoughts: number; failures: number }>();
  for (const { actor, kind } of calls) {
    const count = counts.get(actor) ?? { calls: 0, thoughts: 0, failures: 0 };
    count.calls += 1;
    if (kind === 'thought') count.thoughts += 1;
    if (kind === 'failure') count.failures += 1;
    counts.set(actor, count);
  }
  const finished = new Map<string, number>();
  for (const { status, statusBy } of tasks)
    if (DONE.includes(status)) finished.set(statusBy, (finished.get(statusBy) ?? 0) + 1);
  const rows = [...counts].sort(([, a], [, b]) => b.calls - a.calls).slice(0, ACTORS_MAX);
  return h(
    'div',
    { class: 'scroll' },
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ...['Actor', 'Finished', 'Thoughts', 'Calls', 'Failed'].map((name) =>
            h('th', { scope: 'col' }, name),
          ),
        ),
      ),
      h(
        'tbody',
        {},
        ...rows.map(([actor, count]) =>
          h(
            'tr',
            {},
            h('th', { scope: 'row' }, said(actor, 60)),
            ...[finished.get(actor) ?? 0, count.thoughts, count.calls, count.failures].map((value) =>
              h('td', {}, number(value)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** What the verdict stands on and what it does not, in sentences. */
function grounds({ verdict }: Opened): Child[][] {
  const { keys, heads, rows, isWhole } = verdict;
  const good = heads.filter(({ status }) => status === 'consistent');
  const lines: Child[][] = [
    [
      `${plural(rows, 'audit row')} checked in this browser by the rules of “colibri verify”, not taken on trust.`,
    ],
  ];
  const [oldest, newest] = [good[0], good.at(-1)];
  if (oldest !== undefined && newest !== undefined && isWhole)
    lines.push([
      `${plural(good.length, 'signed head')}, the first at row ${number(oldest.size)}`,
      ...(oldest.at === '' ? [] : [', written ', time(oldest.at)]),
      `, the newest covers ${number(newest.size)} rows.`,
    ]);
  for (const { id } of keys)
    lines.push([
      'The key ',
      h('code', { class: 'hash' }, id),
      ' came with it: it shows that one key signed, not whose it is. Compare it under Checks.',
    ]);
  lines.push(...verdict.remarks.map((remark) => [said(remark, 400)]));
  lines.push(...anchorGrounds(verdict));
  lines.push([
    'A page that comes with its data could be made to lie. To be sure, check the bundle with a verify.html or a Colibri that you got elsewhere.',
  ]);
  return lines;
}

/** What others may hold, and how to find out; of each kind the oldest, which would say since when, and the newest. */
function anchorGrounds({ anchors }: VerdictView): Child[][] {
  if (anchors.length === 0)
    return [
      [
        'It carries no anchor. A checkpoint you kept elsewhere shows that nothing before it was rewritten; compare it under Checks.',
      ],
    ];
  return (['git', 'tsr'] as const).flatMap((kind) => {
    const some = anchors.filter((anchor) => anchor.kind === kind);
    const shown = [...new Set([some[0], some.at(-1)])].flatMap((anchor) =>
      anchor === undefined ? [] : [anchorGround(anchor)],
    );
    return some.length > 2 ? [...shown, [`and ${number(some.length - 2)} more between them.`]] : shown;
  });
}

function anchorGround({ kind, size, at, commit, ref, claims }: AnchorView): Child[] {
  const rows: Child[] = [
    `the first ${plural(size, 'row')}`,
    ...(at === '' ? [] : [', the last written ', time(at)]),
  ];
  const dated: Child[] = claims === '' ? ['no date'] : [time(claims)];
  if (kind === 'tsr')
    return [
      'Not checked here: a time stamp that claims ',
      ...dated,
      ' for ',
      ...rows,
      '. If its authority holds, they existed then. Check it with the authority’s certificate: ',
      h('code', { class: 'break' }, 'colibri verify BUNDLE --ca CERTIFICATE'),
    ];
  return [
    'Not checked here: a git commit, dated ',
    ...dated,
    ' by whoever made it, for ',
    ...rows,
    '. If a clone you trust has it, they stand since it was pushed. Look there: ',
    h(
      'code',
      { class: 'break' },
      `git fetch origin ${ref === '' ? 'REF' : ref} && git cat-file commit ${commit === '' ? 'ID' : commit}`,
    ),
  ];
}
