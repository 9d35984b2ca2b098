/** A text that keeps nothing else in memory: a piece of a longer text keeps all of it. */
export function ownText(text: string): string {
  return `${text} `.slice(0, -1);
}

const shared = new Map<string, string>();
const SHARED_MAX = 1_000;
const SHARED_CHARS_MAX = 128;

/** The same, of a name that is likely to come again: then there is one of it, whoever holds it. */
export function sharedText(text: string): string {
  const before = shared.get(text);
  if (before !== undefined) return before;
  const own = ownText(text);
  if (shared.size < SHARED_MAX && own.length <= SHARED_CHARS_MAX) shared.set(own, own);
  return own;
}
