/// <reference lib="dom" />
import { type Call, KINDS, type Kind } from '../protocol.ts';
import { h, number, plural, said, time } from './dom.ts';
import { virtualList } from './virtual-list.ts';

const NAMES: Readonly<Record<Kind, string>> = {
  thought: 'Thoughts',
  task: 'Task changes',
  session: 'Sessions',
  owner: 'Owner’s acts',
  read: 'Reads',
  failure: 'Failures',
};
const ACTORS_MAX = 500;
const NARROW = matchMedia('(max-width: 640px)');

export interface TrailView {
  readonly element: HTMLElement;
  /** Shows only what concerns one task. */
  showTask(id: string): void;
}

/** The calls as a timeline. Tens of thousands of them are filtered and drawn at once, because only those in view exist. */
export function trailView(calls: readonly Call[], openCall: (call: Call) => void): TrailView {
  let shown: readonly Call[] = calls;
  const list = virtualList({
    label: 'Trail of calls',
    rowHeight: () => (NARROW.matches ? 92 : 64),
    draw: (index) => entry(shown[index]),
    open: (index) => {
      const call = shown[index];
      if (call !== undefined) openCall(call);
    },
  });
  const count = h('p', { class: 'note', role: 'status', 'aria-live': 'polite' });
  const search = h('input', {
    id: 'trail-search',
    type: 'search',
    placeholder: 'Words, T-0001, a tool, an error',
    spellcheck: 'false',
  });
  const actor = h('select', { id: 'trail-actor' }, h('option', { value: '' }, 'Everyone'));
  for (const name of [...new Set(calls.map((call) => call.actor))].sort().slice(0, ACTORS_MAX))
    actor.append(h('option', { value: name }, name.slice(0, 60)));
  const newest = h('input', { id: 'trail-newest', type: 'checkbox' });
  const kinds = KINDS.map((kind) => kindBox(kind, calls.filter((call) => call.kind === kind).length, apply));
  // Made once: lowering 50,000 texts at each key would be felt.
  let haystacks: readonly string[] | undefined;

  function apply(): void {
    const wanted = new Set(kinds.filter(({ input }) => input.checked).map(({ kind }) => kind));
    const needles = search.value
      .toLowerCase()
      .split(/\s+/)
      .filter((needle) => needle !== '');
    if (needles.length > 0) haystacks ??= calls.map(haystack);
    const found = calls.filter(
      (call, i) =>
        (wanted.size === 0 || wanted.has(call.kind)) &&
        (actor.value === '' || call.actor === actor.value) &&
        needles.every((needle) => haystacks?.[i]?.includes(needle)),
    );
    shown = newest.checked ? found.reverse() : found;
    count.textContent =
      shown.length === calls.length
        ? plural(calls.length, 'call')
        : `${number(shown.length)} of ${plural(calls.length, 'call')}`;
    list.show(shown.length);
  }
  search.addEventListener('input', apply);
  actor.addEventListener('change', apply);
  newest.addEventListener('change', apply);
  apply();

  const element = h(
    'div',
    { class: 'trail' },
    h(
      'div',
      { class: 'filters' },
      h('label', { for: 'trail-search' }, h('span', {}, 'Search'), search),
      h('label', { for: 'trail-actor' }, h('span', {}, 'Actor'), actor),
      h('fieldset', { class: 'kinds' }, h('legend', {}, 'Show only'), ...kinds.map(({ element }) => element)),
      h('label', { class: 'check', for: 'trail-newest' }, newest, 'Newest first'),
    ),
    count,
    list.element,
  );
  return {
    element,
    showTask(id) {
      search.value = id;
      actor.value = '';
      for (const { input } of kinds) input.checked = false;
      apply();
    },
  };
}

function kindBox(kind: Kind, count: number, apply: () => void) {
  const input = h('input', { type: 'checkbox', id: `kind-${kind}`, on: { change: apply } });
  const element = h(
    'label',
    { class: 'kind', 'data-kind': kind, for: `kind-${kind}` },
    input,
    NAMES[kind],
    h('span', { class: 'count' }, number(count)),
  );
  return { kind, input, element };
}

function haystack(call: Call): string {
  return `#${call.position} ${call.task} ${call.tool} ${call.actor} ${call.verb} ${call.error} ${call.text}`.toLowerCase();
}

function entry(call: Call | undefined): Node[] {
  if (call === undefined) return [];
  return [
    h('span', { class: 'dot', 'data-kind': call.kind, 'data-wrong': call.isWrong, 'aria-hidden': true }),
    h(
      'span',
      { class: 'entry' },
      h(
        'span',
        { class: 'entry-line' },
        call.isWrong && h('span', { class: 'wrong-tag' }, 'finding'),
        h('span', { class: 'verb', 'data-kind': call.kind }, said(call.verb, 30)),
        call.task !== '' && h('span', { class: 'id' }, call.task),
        h('span', { class: 'clip' }, said(call.text.replace(/\s+/g, ' '), 240)),
      ),
      h(
        'span',
        { class: 'entry-meta' },
        time(call.at),
        h('span', {}, said(call.actor, 40)),
        h('code', {}, call.tool.slice(0, 40)),
        call.error !== '' && h('span', { class: 'error' }, said(call.error, 60)),
        h('span', {}, `#${call.position}`),
      ),
    ),
  ];
}
