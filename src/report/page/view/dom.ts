/// <reference lib="dom" />
import { splitActing } from '../../../untrusted.ts';

export type Child = Node | string | false | undefined;
/** Attributes, and listeners under the name of their event. */
export type Props = Readonly<Record<string, string | number | boolean | undefined | (() => void)>>;
export type Part = Child | readonly Child[] | Props;

type Tag = keyof HTMLElementTagNameMap;
type TagOf<S> = S extends `${infer T extends Tag}.${string}` ? T : S extends Tag ? S : never;

/** Makes an element from its name and classes: `p.note`. Text becomes text and never markup, whoever wrote it. */
export function h<S extends Tag | `${Tag}.${string}`>(
  spec: S,
  ...parts: readonly Part[]
): HTMLElementTagNameMap[TagOf<S>];
export function h(spec: string, ...parts: readonly Part[]): HTMLElement {
  const [tag = '', ...classes] = spec.split('.');
  return fill(document.createElement(tag), classes, parts);
}

/** The same for an element of a picture. */
export function svg(spec: string, ...parts: readonly Part[]): SVGElement {
  const [tag = '', ...classes] = spec.split('.');
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), classes, parts);
}

function fill<E extends Element>(element: E, classes: readonly string[], parts: readonly Part[]): E {
  if (classes.length > 0) element.setAttribute('class', classes.join(' '));
  for (const part of parts.flat())
    if (part instanceof Node) element.append(part);
    else if (typeof part === 'string') element.append(...splitActing(part).map(spell));
    else if (part !== undefined && part !== false) setProps(element, part);
  return element;
}

/** Every second piece of a text is a character that nobody could see: its number is shown instead. */
function spell(piece: string, i: number): Node | string {
  if (i % 2 === 0) return piece;
  const code = (piece.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return h('span.tag', { 'data-tone': 'partly' }, `U+${code}`);
}

function setProps(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props))
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== undefined && value !== false)
      element.setAttribute(name, value === true ? '' : String(value));
}

export function replace(element: Element, ...parts: readonly Part[]): void {
  element.replaceChildren();
  fill(element, [], parts);
}
