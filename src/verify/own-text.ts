/** A text that keeps nothing else in memory: a piece of a longer text keeps all of it. */
export function ownText(text: string): string {
  return `${text} `.slice(0, -1);
}

const known = new Map<string, string>();
const KNOWN_MAX = 10_000;

/** The same, of a text that is likely to come again: then there is one of it, whoever holds it. */
export function sharedText(text: string): string {
  const before = known.get(text);
  if (before !== undefined) return before;
  const own = ownText(text);
  if (known.size < KNOWN_MAX) known.set(own, own);
  return own;
}
