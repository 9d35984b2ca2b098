import type { Finding } from '../../../verify/finding.ts';
import { type Child, h, type Part, type Props } from './dom.ts';

// What the views are made of.

export function note(...parts: readonly Part[]): HTMLElement {
  return h('p.note', ...parts);
}

export type Tone = 'busy' | 'good' | 'partly' | 'bad' | 'idle';

/** A sentence that something was found good or bad. */
export function seal(tone: Tone, ...parts: readonly Part[]): HTMLElement {
  return h('p.seal', { 'data-tone': tone }, ...parts);
}

export function tag(text: string, tone?: Tone): HTMLElement {
  return h('span.tag', { 'data-tone': tone }, text);
}

export function card(title: string, ...parts: readonly Part[]): HTMLElement {
  return h('section.card', h('h2', title), ...parts);
}

/** Names with what is said of each; those with `false` are left out. */
export function facts(...groups: readonly Readonly<Record<string, Child | readonly Child[]>>[]): HTMLElement {
  const rows = groups.flatMap((group) => Object.entries(group)).filter(([, value]) => value !== false);
  const parts = rows.flatMap(([name, value]) => [h('dt', name), h('dd', value)]);
  return h('dl', parts);
}

/** The named columns of a record, for people; empty ones are left out. */
export function columns<Name extends string>(
  record: Readonly<Record<Name, string>>,
  ...names: readonly Name[]
) {
  const shown = names.filter((name) => record[name] !== '');
  return Object.fromEntries(
    shown.map((name) => [words(name.replace(/_(?:at|id)$/, '')), time(record[name])]),
  );
}

/** The first cell of each row names it. */
export function table(label: string, names: readonly string[], rows: readonly (readonly Child[])[]) {
  const head = names.map((name) => h('th', { scope: 'col' }, name));
  const body = rows.map(([first, ...cells]) => {
    const others = cells.map((cell) => h('td', cell));
    return h('tr', h('th', { scope: 'row' }, first), others);
  });
  const scroll = { tabindex: 0, role: 'group', 'aria-label': label };
  return h('div.scroll', scroll, h('table', h('thead', h('tr', head)), h('tbody', body)));
}

/** What is wrong, as an item of a list. */
export function findingItem({ kind, record, message }: Pick<Finding, 'kind' | 'record' | 'message'>) {
  return h('li', tag(kind, 'bad'), ' ', said(record, 200), h('p', said(message, 2_000)));
}

/** A list of which the first items are shown, with a button that shows more. */
export function growing<T>(list: HTMLElement, items: readonly T[], step: number, draw: (item: T) => Node) {
  const more = h('button.more', { click: extend });
  let shown = 0;
  function extend(): void {
    list.append(...items.slice(shown, shown + step).map(draw));
    shown += step;
    more.hidden = shown >= items.length;
    more.textContent = `Show more (${number(items.length - shown)} hidden)`;
  }
  extend();
  return [list, more];
}

/** A record that can be opened, on one line. */
export function lineButton(id: string, text: string, props: Props): HTMLElement {
  return h('button.row.line', props, h('span.id', id), h('span.clip', said(text.replace(/\s+/g, ' '), 200)));
}

/** A link to a record within the page, which can be copied and sent. Only ids of a fixed form become one. */
export function linkTo(id: string, text = id): HTMLElement {
  const isId = /^(?:[TAΘ]-|row-)\d{1,15}$/u.test(id);
  return isId ? h('a.id', { href: `#/${encodeURIComponent(id)}` }, text) : said(text, 40);
}

/** A control of a filter under its name. */
export function field(name: string, control: HTMLElement): HTMLElement {
  return h('label', h('span.note', name), control);
}

export function searchField(id: string, placeholder: string, input: () => void): HTMLInputElement {
  return h('input', { id, type: 'search', size: 30, placeholder, spellcheck: 'false', input });
}

/** A choice among values that strangers wrote; '' is all of them. */
export function choice(id: string, all: string, values: ReadonlySet<string>, change: () => void) {
  const options = [...values].sort().slice(0, CHOICES_MAX);
  return h('select', { id, change }, [h('option', { value: '' }, all), ...options.map(option)]);
}

export function option(value: string): HTMLElement {
  return h('option', { value }, value.slice(0, 64));
}

const CHOICES_MAX = 500;

/** What an agent or a client wrote. It stays inside a box of its own, so that its direction does not reach the text around it. */
export function said(text: string, charactersMax = Number.POSITIVE_INFINITY): HTMLElement {
  // Cutting may split a pair of surrogates.
  const cut = text.slice(0, charactersMax).replace(/[\ud800-\udbff]$/, '');
  const shown = text.length > charactersMax ? `${cut}…` : text;
  return h('bdi', { dir: 'auto' }, shown);
}

export function number(value: number): string {
  return value.toLocaleString('en');
}

export function plural(count: number, one: string): string {
  return `${number(count)} ${one}${count === 1 ? '' : 's'}`;
}

/** A time as the log has it, for people; any other text as it is. Always UTC: everybody who looks sees the same. */
export function time(at: string): HTMLElement {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(at);
  if (!isTime) return said(at, 1_000);
  return h('time', { datetime: at, title: at }, `${at.slice(0, 10)} ${at.slice(11, 19)}`);
}

/** A hash with only its beginning shown; the rest is in its title. */
export function hash(value: string, characters = 12): HTMLElement {
  return h('code.hash', { title: value }, value.slice(0, characters), value.length > characters && '…');
}

export function words(status: string): string {
  return status.replaceAll('_', ' ');
}

/** Tabs as the ARIA practices want them: arrows move, Tab leaves. */
export function tabs(views: Readonly<Record<string, HTMLElement>>, chosen: (name: string) => void) {
  const ids = Object.keys(views);
  const id = (name: string) => name.toLowerCase();
  const buttons = ids.map((name, i) => {
    const props = { role: 'tab', id: `tab-${id(name)}`, 'aria-controls': `panel-${id(name)}` };
    const button = h('button', { ...props, click: () => choose(i) }, name);
    button.addEventListener('keydown', (event) => {
      const move = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: ids.length - 1 }[event.key];
      if (move === undefined) return;
      event.preventDefault();
      const next = (move + ids.length) % ids.length;
      choose(next);
      buttons[next]?.focus();
    });
    return button;
  });
  const panels = Object.entries(views).map(([name, view]) =>
    h('div', { id: `panel-${id(name)}`, role: 'tabpanel', 'aria-labelledby': `tab-${id(name)}` }, view),
  );

  function choose(index: number): void {
    buttons.forEach((button, i) => {
      button.setAttribute('aria-selected', String(i === index));
      button.tabIndex = i === index ? 0 : -1;
    });
    panels.forEach((panel, i) => {
      panel.hidden = i !== index;
    });
    chosen(ids[index] ?? '');
  }
  choose(0);
  return {
    elements: [h('div.scroll.tabs', { role: 'tablist', 'aria-label': 'Views' }, buttons), ...panels],
    show: (name: string) => choose(ids.indexOf(name)),
  };
}
