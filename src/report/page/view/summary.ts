import type { Task } from '../../records.ts';
import type { Log, NamedCommit, Summary } from '../worker/log.ts';
import { type Child, h, type Part } from './dom.ts';
import { countTable, glanceView } from './glance.ts';
import { card, lineButton, note, number, said, seal, time, words } from './parts.ts';
import { type Refreshed, redrawing, type View } from './view.ts';

/** What the summary says about its own trustworthiness, besides the counts. */
export interface Grounds {
  readonly isWrong: boolean;
  readonly lines: readonly Part[];
}

type OpenId = (id: string) => void;

/** What a manager wants to know: what was done, by whom, when, and what can be relied on. */
export function summaryView(log: Pick<Log, 'summary'>, grounds: () => Grounds, openId: OpenId): View {
  const element = h('div.grid');
  const redraw = redrawing(element);
  return {
    element,
    async refresh(filter): Promise<Refreshed> {
      const summary = await log.summary(filter);
      const { isWrong, lines } = grounds();
      redraw([summary, isWrong], () => [
        isWrong &&
          seal('bad', 'Something here is not as it was written, so what is shown may be wrong. See Checks.'),
        ...summaryParts(summary, openId),
        card('What this rests on', h('ul.grounds', ...lines.map((line) => h('li', line)))),
      ]);
      return {};
    },
  };
}

function summaryParts(summary: Summary, openId: OpenId): Child[] {
  const { tasks, sessions, counts } = summary;
  const total = tasks.finished + tasks.open + tasks.cancelled;
  const all = sessions.sealed + sessions.open;
  const rest = `of ${number(total)}; ${number(tasks.open)} open, ${number(tasks.cancelled)} cancelled`;
  const wrong = counts.refused + counts.failed;
  const refused = wrong === 0 ? 'none refused' : `${number(wrong)} refused or failed`;
  const unproved = note('Names are what each client called itself; they are not proved.');
  return [
    h('div.grid.columns.figures', [
      figure(tasks.finished, 'task', 'finished', rest),
      figure(counts.thoughts, 'thought', 'recorded', 'decisions, risks, plans'),
      figure(sessions.sealed, 'session', 'sealed', `of ${number(all)}`),
      figure(counts.calls, 'call', 'in the log', refused),
    ]),
    h('p.note', spanOf(summary)),
    summary.glance !== undefined && glanceView(summary.glance, openId),
    h('div.grid.columns', [
      card('Recently finished', recent(summary.finished, openId, 'No task was finished.')),
      card('Who did what', unproved, countTable('Agents', summary.agents, counts)),
      card('Open, recently changed', recent(summary.moving, openId, 'Nothing is open.')),
      card('Projects', countTable('Projects', summary.projects, counts)),
      card('Commits named by thoughts', commits(summary.commits, openId)),
    ]),
  ];
}

function figure(value: number, one: string, what: string, more: string): HTMLElement {
  const label = `${one}${value === 1 ? '' : 's'} ${what}`;
  return h('div.card', h('b.figure', number(value)), h('div', label), h('small', more));
}

function spanOf({ first, last, countedBy }: Summary): Child[] {
  if (first === '') return ['No calls.'];
  const clock = ' UTC, by the clock of the machine that wrote the log.';
  const who =
    countedBy === 'browser'
      ? ' Counted in this browser.'
      : ` Counted by the server, through row ${number(countedBy.through)} of ${number(countedBy.of)}; not proved.`;
  return ['From ', time(first), ' to ', time(last), clock, who];
}

function recent(tasks: readonly Task[], openId: OpenId, none: string): HTMLElement {
  if (tasks.length === 0) return note(none);
  return h(
    'ul',
    tasks.map(({ id, title, status, status_by, status_since }) => {
      const last = h('small', said(words(status), 40), ' by ', said(status_by, 60), ', ', time(status_since));
      return h('li', lineButton(id, title, { 'data-key': `recent-${id}`, click: () => openId(id) }), last);
    }),
  );
}

function commits(all: readonly NamedCommit[], openId: OpenId): HTMLElement {
  if (all.length === 0) return note('None.');
  return h(
    'ul',
    all.map(({ id, task, commit_sha, branch, observed, recorded_at }) => {
      const who = observed.includes('commit_sha') ? 'read from the repository' : 'named by the agent';
      const where = branch === '' ? '' : ` on ${branch}`;
      const line = lineButton(id, `${commit_sha.slice(0, 12)}${where} · ${task}`, {
        click: () => openId(id),
        'data-key': `commit-${id}`,
      });
      return h('li', line, h('small', who, ', ', time(recorded_at)));
    }),
  );
}
