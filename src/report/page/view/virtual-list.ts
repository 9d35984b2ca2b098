/// <reference lib="dom" />
import { h } from './dom.ts';

/** Of a row, in pixels. */
const HEIGHT = 64;
/** Rows drawn above and below what is seen. */
const MARGIN_ROWS = 6;
/** Browsers stop drawing somewhat above 30 million pixels. */
const PIXELS_MAX = 16_000_000;

/**
 * A list of any length of which only what is seen exists. To a keyboard and a screen reader it is a list box: arrows,
 * Page, Home and End move, Enter opens.
 */
export function virtualList(options: {
  readonly label: string;
  readonly draw: (index: number) => readonly Node[];
  readonly open: (index: number) => void;
}) {
  const body = h('div.list-body', { role: 'presentation' });
  const element = h('div.list', { role: 'listbox', tabindex: 0, 'aria-label': options.label }, body);
  const rows = new Map<number, HTMLElement>();
  let count = 0;
  let active = 0;

  /** Draws the rows in view, all of them anew where there are others. */
  function draw(isAnew = false): void {
    const { scrollTop, clientHeight } = element;
    const first = Math.max(0, Math.floor(scrollTop / HEIGHT) - MARGIN_ROWS);
    const last = Math.ceil((scrollTop + clientHeight) / HEIGHT) + MARGIN_ROWS;
    const end = Math.min(count, last, Math.floor(PIXELS_MAX / HEIGHT));
    for (const [index, row] of rows)
      if (isAnew || index < first || index >= end) {
        row.remove();
        rows.delete(index);
      }
    for (let index = first; index < end; index += 1) if (!rows.has(index)) place(index);
    mark();
  }

  function place(index: number): void {
    const click = () => {
      active = index;
      mark();
      options.open(index);
    };
    const position = { id: `row-${index}`, 'aria-posinset': index + 1, 'aria-setsize': count };
    const row = h('div.list-row', { role: 'option', ...position, click }, options.draw(index));
    row.style.setProperty('top', `${index * HEIGHT}px`);
    row.style.setProperty('height', `${HEIGHT}px`);
    rows.set(index, row);
    body.append(row);
  }

  function mark(): void {
    for (const [index, row] of rows) row.setAttribute('aria-selected', String(index === active));
    if (rows.has(active)) element.setAttribute('aria-activedescendant', `row-${active}`);
    else element.removeAttribute('aria-activedescendant');
  }

  function moveTo(index: number): void {
    active = Math.max(0, Math.min(count - 1, index));
    const top = active * HEIGHT;
    const lowest = top + HEIGHT - element.clientHeight;
    element.scrollTop = Math.max(lowest, Math.min(top, element.scrollTop));
    draw();
  }

  const page = () => Math.max(1, Math.floor(element.clientHeight / HEIGHT) - 1);
  const moves: Readonly<Record<string, () => number>> = {
    ArrowDown: () => active + 1,
    ArrowUp: () => active - 1,
    PageDown: () => active + page(),
    PageUp: () => active - page(),
    Home: () => 0,
    End: () => count - 1,
  };
  element.addEventListener('keydown', (event) => {
    const move = moves[event.key];
    if (move !== undefined) moveTo(move());
    else if (event.key === 'Enter' && count > 0) options.open(active);
    else return;
    event.preventDefault();
  });
  element.addEventListener('scroll', () => draw(), { passive: true });
  new ResizeObserver(() => draw()).observe(element);

  return {
    element,
    /** Shows other items, from the top. */
    show(newCount: number): void {
      count = newCount;
      body.style.setProperty('height', `${Math.min(PIXELS_MAX, count * HEIGHT)}px`);
      active = 0;
      element.scrollTop = 0;
      draw(true);
    },
  };
}
