/** How many arrays and objects may be nested. */
export const CANONICAL_DEPTH_MAX = 64;

export class CanonicalJsonError extends Error {
  override readonly name = 'CanonicalJsonError';
}

/**
 * The RFC 8785 text of a plain JSON value: one text per value, whatever the order of its keys. What that text could not
 * carry unchanged is refused instead of being dropped or rounded, so that two different values never share a digest.
 */
export function canonicalJson(value: unknown): string {
  return writeValue(value, 0);
}

/** The RFC 8785 text of any finite number. `canonicalJson` alone knows which numbers a record may hold. */
export function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new CanonicalJsonError(`${value} has no JSON text`);
  // ECMAScript's own conversion is the one the RFC names; it writes negative zero as 0.
  return String(value);
}

/** Whether languages disagree on it as a whole number: beyond 2^53, and below 1e21, where its text gets an exponent. */
export function isInexactInteger(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21;
}

// The depth is counted before each descent: no input, cyclic ones included, can exhaust the stack.
function writeValue(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return writeString(value);
    case 'number':
      if (isInexactInteger(value)) throw new CanonicalJsonError(`${value} is an integer beyond 2^53 - 1`);
      return canonicalNumber(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth === CANONICAL_DEPTH_MAX) {
        throw new CanonicalJsonError(`nested deeper than ${CANONICAL_DEPTH_MAX}`);
      }
      return Array.isArray(value) ? writeArray(value, depth + 1) : writeObject(value, depth + 1);
    default:
      throw new CanonicalJsonError(`${typeof value} has no JSON text`);
  }
}

// Keys, ids, hashes and most words: nothing in them is escaped, and asking costs a third of JSON.stringify.
const PLAIN = /^[ !#-[\]-~]*$/;
const PLAIN_CHARS_MAX = 128;

function writeString(text: string): string {
  if (text.length <= PLAIN_CHARS_MAX && PLAIN.test(text)) return `"${text}"`;
  if (!text.isWellFormed()) throw new CanonicalJsonError('a string holds a lone surrogate');
  // On well-formed text JSON.stringify escapes exactly what RFC 8785 3.2.2.2 wants escaped.
  return JSON.stringify(text);
}

function writeArray(items: readonly unknown[], depth: number): string {
  let text = '';
  // Counting, not iterating: a hole must be met as undefined and refused.
  for (let i = 0; i < items.length; i += 1) {
    text += (i === 0 ? '' : ',') + writeValue(items[i], depth);
  }
  return `[${text}]`;
}

function writeObject(members: object, depth: number): string {
  if (!isPlain(members)) throw new CanonicalJsonError('only plain objects and arrays have a JSON text');
  let text = '';
  for (const key of sortedKeys(members)) {
    text += (text === '' ? '{' : ',') + (labels.get(key) ?? labelOf(key)) + writeValue(members[key], depth);
  }
  return text === '' ? '{}' : `${text}}`;
}

/** What stands before a value, by its name: most names are met again and again. A stranger's do not push out ours. */
const labels = new Map<string, string>();
const LABELS_MAX = 500;

function labelOf(key: string): string {
  const label = `${writeString(key)}:`;
  if (labels.size < LABELS_MAX && key.length <= PLAIN_CHARS_MAX) labels.set(key, label);
  return label;
}

/** Above this, the sort that is built in is faster. */
const FEW_KEYS = 32;

/** Most objects have few members, often in their order already: each is put in its place among those before it. */
function sortedKeys(members: object): string[] {
  const keys = Object.keys(members);
  // The default sort compares UTF-16 code units, as `<` does: that is the order of RFC 8785 3.2.3.
  if (keys.length > FEW_KEYS) return keys.sort();
  for (let i = 1; i < keys.length; i += 1) {
    const key = keys[i]!;
    let at = i;
    for (; at > 0 && keys[at - 1]! > key; at -= 1) keys[at] = keys[at - 1]!;
    keys[at] = key;
  }
  return keys;
}

// A Date, a Map or a Buffer would otherwise be written as something it is not; toJSON is never called.
function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
