import { h } from './dom.ts';

/** Tabs as the ARIA practices want them: arrows move, Tab leaves. */
export function tabs(views: Readonly<Record<string, HTMLElement>>) {
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
  }
  choose(0);
  return {
    elements: [h('div.scroll.tabs', { role: 'tablist', 'aria-label': 'Views' }, buttons), ...panels],
    show: (name: string) => choose(ids.indexOf(name)),
  };
}
