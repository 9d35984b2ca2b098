import { LIMITS } from '../limits.ts';

/** What is wrong with a value whatever its schema says, and where. */
export type Objection = NonNullable<ReturnType<typeof firstObjection>>;

/**
 * Finds what could not be stored and read back the same, or would break something recursive later: nesting beyond the
 * limit, more values than any schema takes, ill-formed Unicode, numbers JSON cannot carry exactly. Walks with a list of
 * its own, so no depth overflows it.
 */
export function firstObjection(value: unknown) {
  const open: { value: unknown; path: readonly (string | number)[] }[] = [{ value, path: [] }];
  let seen = 0;
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    seen += 1;
    // Before the list of its children is made, which for a million of them is the cost itself.
    const ahead = Array.isArray(item.value) ? item.value.length : 0;
    if (seen + ahead > LIMITS.argumentValuesMax)
      return { path: [], message: `more than ${LIMITS.argumentValuesMax} values` };
    const message = objectionTo(item.value, item.path.length);
    if (message !== undefined) return { path: item.path, message };
    if (typeof item.value !== 'object' || item.value === null) continue;
    for (const [key, child] of Object.entries(item.value)) {
      if (key === '__proto__') return { path: [...item.path, key], message: 'this name is not allowed' };
      if (!key.isWellFormed()) return { path: item.path, message: 'a field name is not well-formed Unicode' };
      open.push({ value: child, path: [...item.path, Array.isArray(item.value) ? Number(key) : key] });
    }
  }
  return undefined;
}

function objectionTo(value: unknown, depth: number): string | undefined {
  if (typeof value === 'object' && value !== null && depth >= LIMITS.depthMax) {
    return `nested deeper than ${LIMITS.depthMax} levels`;
  }
  if (typeof value === 'string' && value.includes('\0')) return 'U+0000 cannot be stored; leave it out';
  if (typeof value === 'string' && !value.isWellFormed()) return 'not well-formed Unicode (a lone surrogate)';
  if (typeof value === 'number' && !Number.isFinite(value)) return 'a number too large to be stored';
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return 'an integer beyond 2^53 cannot be stored exactly; send it as a string';
  }
  return undefined;
}
