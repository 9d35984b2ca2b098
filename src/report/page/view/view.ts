import type { Filter } from '../../filter.ts';
import type { Choices } from '../worker/log.ts';
import { h, type Part, replace } from './dom.ts';
import { choice, field, option, searchField } from './parts.ts';

/** One tab of the page. It draws what the log answers, and draws it again when something has changed. */
export interface View {
  readonly element: HTMLElement;
  /** `isNews` where nobody asked for it: rows have arrived. */
  refresh(filter: Filter, isNews?: boolean): Promise<Refreshed>;
}

export interface Refreshed {
  /** Whether the reader has gone on in a list, so that new rows are only announced. */
  readonly waits?: boolean;
}

/** Draws again only what differs from what was drawn last, and leaves the focus where it was. */
export function redrawing(element: HTMLElement) {
  let drawn = '';
  return (data: unknown, parts: () => readonly Part[]): void => {
    const text = JSON.stringify(data);
    if (text === drawn) return;
    drawn = text;
    const { activeElement } = document;
    const key = element.contains(activeElement) ? activeElement?.getAttribute('data-key') : undefined;
    replace(element, ...parts());
    if (key != null) element.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
  };
}

/** The filters that all views share. */
export function filterBar(choices: Choices, change: () => void) {
  let timer = 0;
  /** After the last key. Until then the bar says that what is shown is not yet what it asks for. */
  const soon = () => {
    window.clearTimeout(timer);
    element.dataset.waits = '';
    timer = window.setTimeout(() => {
      delete element.dataset.waits;
      change();
    }, 120);
  };
  const project = choice('filter-project', 'All projects', new Set(choices.projects), change);
  const agent = choice('filter-agent', 'Everyone', new Set(choices.agents), change);
  const [since, until] = ['filter-since', 'filter-until'].map((id) =>
    h('input', { id, type: 'date', change }),
  );
  const words = searchField('filter-words', 'Words, T-0001, Θ-0001, #12', soon);
  const clear = () => {
    for (const control of [project, agent, since, until, words])
      if (control !== undefined) control.value = '';
    change();
  };
  const element = h('div.row.filters', { role: 'search', 'aria-label': 'Filters' }, [
    field('Search', words),
    field('Project', project),
    field('Agent', agent),
    ...(since === undefined || until === undefined ? [] : [field('From', since), field('To', until)]),
    h('button', { click: clear }, 'Clear'),
  ]);
  return {
    element,
    value: (): Filter => ({
      project: project.value,
      agent: agent.value,
      since: since?.value ?? '',
      until: until?.value ?? '',
      words: words.value,
    }),
    /** What can be chosen now; what is chosen stays. */
    offer({ projects, agents }: Choices): void {
      for (const [control, values] of [
        [project, projects],
        [agent, agents],
      ] as const) {
        const known = new Set([...control.options].map(({ value }) => value));
        for (const value of values) if (!known.has(value)) control.append(option(value));
      }
    },
    /** Shows only this. */
    search(text: string): void {
      for (const control of [project, agent, since, until]) if (control !== undefined) control.value = '';
      words.value = text;
      change();
    },
  };
}
