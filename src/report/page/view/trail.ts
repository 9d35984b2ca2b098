import type { Kind } from '../../telling.ts';
import type { Call } from '../worker/records.ts';
import { h, replace } from './dom.ts';
import { choice, field, growing, note, number, plural, said, searchField, tag, time } from './parts.ts';

const KINDS: readonly (readonly [Kind, string])[] = [
  ['thought', 'Thoughts'],
  ['task', 'Task changes'],
  ['session', 'Sessions'],
  ['owner', 'Owner’s acts'],
  ['read', 'Reads'],
  ['failure', 'Failures'],
];

const CALLS_STEP = 300;

/** The calls as a timeline. Tens of thousands of them are filtered at once, and shown a part at a time. */
export function trailView(calls: readonly Call[], openCall: (call: Call) => void) {
  const list = h('div');
  const count = note({ role: 'status', 'aria-live': 'polite' });
  const search = searchField('trail-search', 'Words, T-0001, a tool, an error', apply);
  const actor = choice('trail-actor', 'Everyone', new Set(calls.map((call) => call.actor)), apply);
  const newest = h('input', { id: 'trail-newest', type: 'checkbox', change: apply });
  const kinds = KINDS.map(([kind, name]) => {
    const input = h('input', { type: 'checkbox', change: apply });
    const own = calls.filter((call) => call.kind === kind).length;
    const box = h('label.kind', { 'data-kind': kind }, input, ` ${name} `, h('span.count', number(own)));
    return { kind, input, box };
  });
  // Made once: lowering 50,000 texts at each key would be felt.
  let haystacks: readonly string[] | undefined;

  function apply(): void {
    const wanted = new Set(kinds.filter(({ input }) => input.checked).map(({ kind }) => kind));
    const needles = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (needles.length > 0) haystacks ??= calls.map(haystack);
    const found = calls.filter(
      (call, i) =>
        (wanted.size === 0 || wanted.has(call.kind)) &&
        (actor.value === '' || call.actor === actor.value) &&
        needles.every((needle) => haystacks?.[i]?.includes(needle)),
    );
    const shown = newest.checked ? found.reverse() : found;
    const all = plural(calls.length, 'call');
    count.textContent = shown.length === calls.length ? all : `${number(shown.length)} of ${all}`;
    const draw = (call: Call) => h('li', h('button.list-row', { click: () => openCall(call) }, entry(call)));
    replace(list, growing(h('ol.list', { 'aria-label': 'Trail of calls' }), shown, CALLS_STEP, draw));
  }
  apply();

  const element = h('div.trail', [
    h('div.row.filters', [
      field('Search', search),
      field('Actor', actor),
      h('fieldset.row', h('legend', 'Show only'), ...kinds.map(({ box }) => box)),
      h('label.kind', newest, ' Newest first'),
    ]),
    count,
    list,
  ]);
  return {
    element,
    /** Shows only what concerns one task. */
    showTask(id: string) {
      search.value = id;
      actor.value = '';
      for (const { input } of kinds) input.checked = false;
      apply();
    },
  };
}

function haystack({ position, task, tool, actor, verb, error, text }: Call): string {
  return `#${position} ${task} ${tool} ${actor} ${verb} ${error} ${text}`.toLowerCase();
}

function entry(call: Call): Node[] {
  const { kind, isWrong, task, error } = call;
  return [
    h('span.dot', { 'data-kind': kind, 'data-wrong': isWrong, 'aria-hidden': true }),
    h('span.entry', [
      h('span.row', [
        isWrong && tag('finding', 'bad'),
        h('span.verb', { 'data-kind': kind }, said(call.verb, 30)),
        task !== '' && h('span.id', task),
        h('span.clip', said(call.text.replace(/\s+/g, ' '), 240)),
      ]),
      h('span.row.note', [
        time(call.at),
        h('span', said(call.actor, 40)),
        h('code', call.tool.slice(0, 40)),
        error !== '' && h('span.error', said(error, 60)),
        h('span', `#${call.position}`),
      ]),
    ]),
  ];
}
