/**
 * Arguments that were refused, as text to be hashed. They may be nested too deep for anything recursive or hold text that
 * has no canonical form, so this writes plain JSON with a list of its own in place of the stack.
 */
export function textOfRefused(args: unknown): string {
  const parts: string[] = [];
  const open: ({ readonly value: unknown } | { readonly text: string })[] = [{ value: args ?? null }];
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
