import { CANONICAL_DEPTH_MAX, isInexactInteger } from './canonical-json.ts';
import { exactText } from './digest.ts';

export class StrictJsonError extends Error {
  override readonly name = 'StrictJsonError';
}

/**
 * Reads JSON written by strangers and refuses every text that JSON.parse would silently change: a repeated
 * name, a number that overflows or is rounded to another integer, a lone surrogate, bytes that are not UTF-8.
 * What it returns, `canonicalJson` accepts.
 */
export function readStrictJson(input: Uint8Array | string): unknown {
  const text = exactText(input);
  if (text === undefined) throw new StrictJsonError('not well-formed Unicode');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new StrictJsonError('not JSON');
  }
  requireExact(text);
  return value;
}

/** A bracket, a string (with the colon that makes it a name), or a number. The text is known to be JSON. */
const TOKEN = /[{}[\]]|"[^"\\]*(?:\\.[^"\\]*)*"(?=\s*(:)|)|-?\d[\d.eE+-]*/g;

function requireExact(text: string): void {
  /** The names seen so far in each object around the token; for an array none. */
  const open: Set<string>[] = [];
  for (const { 0: token, 1: colon, index } of text.matchAll(TOKEN)) {
    const fault = faultOf(token, colon === undefined ? undefined : open.at(-1), open.length);
    if (fault !== undefined) throw new StrictJsonError(`${fault} (at character ${index + token.length})`);
    if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
  }
}

function faultOf(token: string, names: Set<string> | undefined, depth: number): string | undefined {
  if (token === '}' || token === ']') return undefined;
  if (token === '{' || token === '[')
    return depth === CANONICAL_DEPTH_MAX ? `nested deeper than ${CANONICAL_DEPTH_MAX}` : undefined;
  if (!token.startsWith('"')) return numberFault(token);
  const text = token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
  // The raw text is well-formed, so only an escape can have brought in half a pair.
  if (!text.isWellFormed()) return 'a string holds a lone surrogate';
  if (names?.has(text)) return `the name ${JSON.stringify(text.slice(0, 64))} is repeated`;
  names?.add(text);
  return undefined;
}

function numberFault(token: string): string | undefined {
  const value = Number(token);
  if (!Number.isFinite(value)) return 'a number is too large';
  const isWhole = /^-?\d+$/.test(token);
  return isInexactInteger(value) || (isWhole && !Number.isSafeInteger(value))
    ? 'an integer is beyond 2^53 - 1'
    : undefined;
}
