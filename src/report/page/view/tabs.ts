/// <reference lib="dom" />
import { h } from './dom.ts';

export interface Tab {
  readonly id: string;
  readonly name: string;
  readonly panel: HTMLElement;
}

/** Tabs as the ARIA practices want them: arrows move, Tab leaves. */
export function tabs(list: readonly Tab[]) {
  const buttons = list.map(({ id, name }, i) =>
    h(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${id}`,
        'aria-controls': `panel-${id}`,
        on: {
          click: () => choose(i),
          keydown(event) {
            const move = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: list.length - 1 }[event.key];
            if (move === undefined) return;
            event.preventDefault();
            choose((move + list.length) % list.length);
            buttons[(move + list.length) % list.length]?.focus();
          },
        },
      },
      name,
    ),
  );
  for (const { id, panel } of list) {
    panel.id = `panel-${id}`;
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', `tab-${id}`);
  }

  function choose(index: number): void {
    buttons.forEach((button, i) => {
      button.setAttribute('aria-selected', String(i === index));
      button.tabIndex = i === index ? 0 : -1;
    });
    list.forEach(({ panel }, i) => {
      panel.hidden = i !== index;
    });
  }
  choose(0);
  return {
    element: h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views' }, ...buttons),
    show: (id: string) =>
      choose(
        Math.max(
          0,
          list.findIndex((tab) => tab.id === id),
        ),
      ),
  };
}
