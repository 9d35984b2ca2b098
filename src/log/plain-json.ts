/**
 * A value as JSON in the order of its keys, for what has no canonical text: arguments that were refused may be nested too
 * deep for anything recursive, or hold half a character. Has a list of its own in place of the stack.
 */
export function plainJson(root: unknown): string {
  const parts: string[] = [];
  const open: ({ readonly value: unknown } | { readonly text: string })[] = [{ value: root ?? null }];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    if ('text' in item) parts.push(item.text);
    else if (typeof item.value !== 'object' || item.value === null)
      parts.push(JSON.stringify(item.value) ?? 'null');
    else open.push(...childrenOf(item.value).reverse());
  }
  return parts.join('');
}

function childrenOf(value: object): ({ readonly value: unknown } | { readonly text: string })[] {
  const isList = Array.isArray(value);
  const children = Object.entries(value).flatMap(([key, child], i) => [
    { text: `${i === 0 ? '' : ','}${isList ? '' : `${JSON.stringify(key)}:`}` },
    { value: child as unknown },
  ]);
  return [{ text: isList ? '[' : '{' }, ...children, { text: isList ? ']' : '}' }];
}
