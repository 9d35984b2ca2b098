import { CANONICAL_DEPTH_MAX, isInexactInteger } from './canonical-json.ts';
import { exactText } from './utf8.ts';

export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError';
}

/**
 * Reads JSON written by strangers and refuses every text that JSON.parse would silently change: a repeated
 * name, a number that overflows or is rounded to another integer, a lone surrogate, bytes that are no UTF-8.
 * What it returns, `canonicalJson` accepts.
 */
export function readStrictJson(input: Uint8Array | string): unknown {
  const text = exactText(input);
  if (text === undefined) throw new StrictJsonError('not well-formed Unicode');
  const cursor: Cursor = { text, at: 0 };
  const value = readValue(cursor, 0);
  skipSpace(cursor);
  if (cursor.at < text.length) fail(cursor, 'unexpected text after the value');
  return value;
}

interface Cursor {
  readonly text: string;
  at: number;
}

const LITERALS = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const;

function readValue(cursor: Cursor, depth: number): unknown {
  skipSpace(cursor);
  const first = cursor.text[cursor.at];
  if (first === '"') return readString(cursor);
  if (first === '{' || first === '[') {
    if (depth === CANONICAL_DEPTH_MAX) fail(cursor, `nested deeper than ${CANONICAL_DEPTH_MAX}`);
    cursor.at += 1;
    return first === '{' ? readObject(cursor, depth + 1) : readArray(cursor, depth + 1);
  }
  for (const [word, value] of LITERALS) {
    if (!cursor.text.startsWith(word, cursor.at)) continue;
    cursor.at += word.length;
    return value;
  }
  return readNumber(cursor);
}

function readObject(cursor: Cursor, depth: number): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  if (take(cursor, '}')) return members;
  do {
    skipSpace(cursor);
    const name = readString(cursor);
    if (Object.hasOwn(members, name))
      fail(cursor, `the name ${JSON.stringify(name.slice(0, 64))} is repeated`);
    expect(cursor, ':');
    setMember(members, name, readValue(cursor, depth));
  } while (take(cursor, ','));
  expect(cursor, '}');
  return members;
}

// Assigning to __proto__ would change the prototype; here it is a name like any other.
function setMember(members: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') members[name] = value;
  else Object.defineProperty(members, name, { value, writable: true, enumerable: true, configurable: true });
}

function readArray(cursor: Cursor, depth: number): unknown[] {
  const items: unknown[] = [];
  if (take(cursor, ']')) return items;
  do items.push(readValue(cursor, depth));
  while (take(cursor, ','));
  expect(cursor, ']');
  return items;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function readString(cursor: Cursor): string {
  const { text, at } = cursor;
  if (text.charCodeAt(at) !== QUOTE) fail(cursor, 'expected a string');
  let end = at + 1;
  let escaped = false;
  for (let code = text.charCodeAt(end); code !== QUOTE; code = text.charCodeAt(end)) {
    // Past the end the code is NaN, which fails this comparison too.
    if (!(code >= 0x20)) fail(cursor, 'a string is not closed or holds a control character');
    if (code === BACKSLASH) escaped = true;
    end += code === BACKSLASH ? 2 : 1;
  }
  cursor.at = end + 1;
  return escaped ? decodeEscapes(cursor, text.slice(at, end + 1)) : text.slice(at + 1, end);
}

function decodeEscapes(cursor: Cursor, quoted: string): string {
  const text = parseQuoted(quoted);
  if (text === undefined) return fail(cursor, 'a string holds an unknown escape');
  // The raw text is well-formed, so only an escape can have brought in half a pair.
  return text.isWellFormed() ? text : fail(cursor, 'a string holds a lone surrogate');
}

function parseQuoted(quoted: string): string | undefined {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return undefined;
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;

function readNumber(cursor: Cursor): number {
  NUMBER.lastIndex = cursor.at;
  const match = NUMBER.exec(cursor.text);
  if (match === null) return fail(cursor, 'expected a value');
  const [text, fraction, exponent] = match;
  const value = Number(text);
  if (!Number.isFinite(value)) fail(cursor, 'a number is too large');
  const whole = fraction === undefined && exponent === undefined;
  if (isInexactInteger(value) || (whole && !Number.isSafeInteger(value))) {
    fail(cursor, 'an integer is beyond 2^53 - 1');
  }
  cursor.at = NUMBER.lastIndex;
  return value;
}

function skipSpace(cursor: Cursor): void {
  while (isSpace(cursor.text.charCodeAt(cursor.at))) cursor.at += 1;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function take(cursor: Cursor, mark: string): boolean {
  skipSpace(cursor);
  if (cursor.text[cursor.at] !== mark) return false;
  cursor.at += 1;
  return true;
}

function expect(cursor: Cursor, mark: string): void {
  if (!take(cursor, mark)) fail(cursor, `expected ${mark}`);
}

function fail(cursor: Cursor, reason: string): never {
  throw new StrictJsonError(`${reason} (at character ${cursor.at})`);
}
