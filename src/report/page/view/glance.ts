import { COUNTED, type Counts, type Happened, type Period } from '../../glance.ts';
import type { Summary } from '../worker/log.ts';
import { type Child, h } from './dom.ts';
import { card, growing, hash, lineButton, note, number, said, table, time } from './parts.ts';

const STEP = 20;

/** A period at a glance, from the calls that were checked here: reasons first, then who did how much where. */
export function glanceView(
  { at: glance, reasons, ...period }: NonNullable<Summary['glance']>,
  openId: (id: string) => void,
): HTMLElement {
  const line = ({ task_id, title, by, at }: Happened) => [
    lineButton(task_id, title, { click: () => openId(task_id) }),
    h('small', said(by, 60), ', ', time(at)),
  ];
  const together = { name: 'together', ...glance.totals };
  return card(
    titleOf(period),
    h('p', COUNTED.map((name) => `${number(glance.totals[name])} ${name}`).join(', ')),
    list('Finished', glance.finished, (one) => [
      h('p', said(reasons.get(one.task_id) ?? '(no reason)', 400)),
      ...line(one),
    ]),
    list(
      'Refused',
      glance.refused,
      ({ code, reason, count, agents }) => [
        h('p', `${number(count)} × `, said(code, 80), reason === '' ? '' : ': ', said(reason, 400)),
        h('small', 'by ', said(agents.join(', '), 200)),
      ],
      glance.totals.refused,
    ),
    list('Abandoned', glance.abandoned, (one) => [
      ...line(one),
      h('small', 'taken over by ', said(one.taken_over_by, 60)),
    ]),
    list('Erased', glance.erased, ({ what, by, at }) => [
      said(what, 200),
      h('small', said(by, 60), ', ', time(at)),
    ]),
    list('Started', glance.started, line),
    list('Cancelled', glance.cancelled, line),
    list('Commits', glance.commits, ({ commit, tasks: named, thoughts }) => [
      hash(commit),
      h('small', said([...named, ...thoughts].join(', '), 400)),
    ]),
    h(
      'div.grid.columns',
      countTable('Counts by agent', glance.by_agent, glance.totals, together),
      countTable('Counts by project', glance.by_project, glance.totals, together),
    ),
  );
}

function titleOf({ since, until }: Period): string {
  const from = since === '' ? 'From the beginning' : `Since ${since.slice(0, 16).replace('T', ' ')} UTC`;
  return until > '9999' ? from : `${from} until ${until.slice(0, 16).replace('T', ' ')} UTC`;
}

function list<T>(
  name: string,
  entries: readonly T[],
  draw: (entry: T) => readonly Child[],
  /** What the entries stand for, where one stands for several. */
  count = entries.length,
): HTMLElement | false {
  if (entries.length === 0) return false;
  const items = h('ul');
  return h(
    'section',
    h('h3', `${name} (${number(count)})`),
    growing(items, entries, STEP, (one) => h('li', draw(one))),
  );
}

const NAMES_MAX = 50;

/** How much each agent did, or how much was done in each project. What nobody did takes no room. */
export function countTable<C extends Partial<Counts>>(
  label: string,
  rows: readonly (C & { readonly name: string })[],
  totals: C,
  ...last: readonly (C & { readonly name: string })[]
): HTMLElement {
  const shown = ([...COUNTED, 'calls'] as const).filter((name) => (totals[name] ?? 0) > 0);
  if (shown.length === 0 || rows.length === 0) return note('None.');
  const lines = [...rows.slice(0, NAMES_MAX), ...last].map((row) => [
    said(row.name, 60),
    ...shown.map((name) => number(row[name] ?? 0)),
  ]);
  const heads = ['Name', ...shown].map((name) => `${name[0]?.toUpperCase()}${name.slice(1)}`);
  const left = rows.length - NAMES_MAX;
  return h('div', [
    table(label, heads, lines),
    left > 0 && note(`${number(left)} more with fewer calls are not listed.`),
  ]);
}
