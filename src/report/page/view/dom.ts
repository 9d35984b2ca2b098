/// <reference lib="dom" />
/// <reference lib="dom.iterable" />

export type Child = Node | string | number | false | undefined;

type Listeners = { readonly [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

export interface Props {
  readonly class?: string;
  readonly on?: Listeners;
  readonly [attribute: string]: string | number | boolean | undefined | Listeners;
}

/** Makes an element. Text becomes text and never markup, whoever wrote it. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === 'on')
      for (const [event, listener] of Object.entries(value ?? {})) listen(element, event, listener);
    else setAttribute(element, name, value);
  }
  append(element, children);
  return element;
}

/** An element of a picture. */
export function svg(
  tag: string,
  props: Readonly<Record<string, string | number>> = {},
  ...children: Child[]
) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
  append(element, children);
  return element;
}

export function replace(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren();
  append(element, children);
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children)
    if (child !== undefined && child !== false) element.append(child instanceof Node ? child : String(child));
}

function setAttribute(element: Element, name: string, value: unknown): void {
  if (value === undefined || value === false) return;
  element.setAttribute(name, value === true ? '' : String(value));
}

function listen(element: Element, event: string, listener: unknown): void {
  if (typeof listener === 'function') element.addEventListener(event, (e) => listener(e));
}

// Characters that change the order of the text around them, or show nothing at all. Joiners stay: scripts and emoji need them.
const HIDDEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/u;

/**
 * What an agent or a client wrote. It stays inside a box of its own, so that no direction mark in it reaches the text
 * around it, and marks that nobody could see are shown by their number.
 */
export function said(text: string, charactersMax = Number.POSITIVE_INFINITY): HTMLElement {
  const box = h('bdi', { class: 'said', dir: 'auto' });
  const shown = text.length > charactersMax ? `${wellFormed(text.slice(0, charactersMax))}…` : text;
  for (const part of shown.split(new RegExp(`(${HIDDEN.source})`, 'u')))
    if (HIDDEN.test(part)) box.append(h('span', { class: 'hidden-mark' }, nameOf(part)));
    else if (part !== '') box.append(part);
  return box;
}

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Cutting may have split a pair of surrogates. */
function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udbff]$/, '');
}

export function number(value: number): string {
  return value.toLocaleString('en');
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** A time as the log has it, for people. Always UTC: everybody who looks sees the same. */
export function time(at: string): HTMLElement {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(at);
  if (!isTime) return said(at, 40);
  return h('time', { datetime: at, title: at }, `${at.slice(0, 10)} ${at.slice(11, 19)}`);
}

/** A hash with only its beginning shown; the whole is one click away. */
export function hash(value: string, characters = 12): HTMLElement {
  return h(
    'code',
    { class: 'hash', title: value },
    value.slice(0, characters),
    value.length > characters && '…',
  );
}

export function words(status: string): string {
  return status.replaceAll('_', ' ');
}
