import { KINDS } from '../../filter.ts';
import type { Call } from '../../records.ts';
import type { Kind } from '../../telling.ts';
import type { CallPage, Log } from '../worker/log.ts';
import { h, replace } from './dom.ts';
import { note, number, plural, said, tag, time } from './parts.ts';
import { type Refreshed, redrawing, type View } from './view.ts';

const NAMES: Readonly<Record<Kind, string>> = {
  ...{ thought: 'Thoughts', task: 'Task changes', session: 'Sessions' },
  ...{ owner: 'Owner’s acts', read: 'Reads', failure: 'Refused or failed' },
};

/** The calls as a timeline, a part at a time. */
export function trailView(log: Pick<Log, 'trail'>, openId: (id: string) => void, isLive: boolean): View {
  const list = h('div');
  const redraw = redrawing(list);
  const count = note({ role: 'status', 'aria-live': 'polite' });
  const newest = h('input', { id: 'trail-newest', type: 'checkbox', checked: isLive, change: ask });
  const kinds = KINDS.map((kind) => {
    const input = h('input', { type: 'checkbox', change: ask });
    return { kind, input, box: h('label.kind', { 'data-kind': kind }, input, ` ${NAMES[kind]}`) };
  });
  let filter: Parameters<View['refresh']>[0] | undefined;
  let asked = 0;
  let isExtended = false;

  const queryAfter = (after: number) => ({
    ...{ project: '', agent: '', since: '', until: '', words: '' },
    ...filter,
    kinds: kinds.filter(({ input }) => input.checked).map(({ kind }) => kind),
    newestFirst: newest.checked,
    after,
  });
  const draw = (call: Call) => h('li', entryButton(call, openId));

  async function show(): Promise<void> {
    asked += 1;
    const mine = asked;
    const page = await log.trail(queryAfter(0));
    // Somebody asked for something else meanwhile.
    if (mine !== asked) return;
    isExtended = false;
    redraw(page, () => parts(page));
  }

  function parts(first: CallPage): HTMLElement[] {
    const items = h('ol.list', { 'aria-label': 'Trail of calls' });
    const more = h('button.more', { click: () => void extend() });
    let shown = 0;
    let { next } = first;
    const add = (page: CallPage) => {
      items.append(...page.calls.map(draw));
      shown += page.calls.length;
      next = page.next;
      more.hidden = next === undefined;
      replace(count, countOf(shown, page));
      replace(more, moreOf(shown, page));
    };
    async function extend(): Promise<void> {
      if (next === undefined) return;
      const mine = asked;
      isExtended = true;
      more.disabled = true;
      const page = await log.trail(queryAfter(next));
      if (mine === asked) add(page);
      more.disabled = false;
    }
    add(first);
    items.hidden = shown === 0;
    return [items, more];
  }

  function ask(): void {
    void show();
  }

  const element = h('div.trail', [
    h('div.row.filters', [
      h('fieldset.row', h('legend', 'Show only'), ...kinds.map(({ box }) => box)),
      h('label.kind', newest, ' Newest first'),
    ]),
    count,
    list,
  ]);
  return {
    element,
    async refresh(wanted, isNews = false): Promise<Refreshed> {
      if (isNews && isExtended) return { waits: true };
      filter = wanted;
      await show();
      return {};
    },
  };
}

function countOf(shown: number, { total, all, next }: CallPage): string {
  if (total !== undefined)
    return total === all ? plural(all, 'call') : `${number(total)} of ${plural(all, 'call')}`;
  const beginning = shown === 0 ? 'No call matches' : `${plural(shown, 'call')} shown`;
  return next === undefined ? `${beginning}. That is all.` : `${beginning}. There may be more.`;
}

function moreOf(shown: number, { total }: CallPage): string {
  return total === undefined ? 'Show more' : `Show more (${number(total - shown)} hidden)`;
}

/** A call on two lines, which opens it. */
function entryButton(call: Call, openId: (id: string) => void): HTMLElement {
  const id = `row-${call.position}`;
  return h('button.list-row', { 'data-key': id, click: () => openId(id) }, entry(call));
}

function entry(call: Call): Node[] {
  const { kind, isWrong, task, thought, error } = call;
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
        thought !== '' && h('span', thought),
        h('span', `#${call.position}`),
      ]),
    ]),
  ];
}
