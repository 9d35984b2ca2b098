import { canonicalJson } from '../../../integrity/canonical-json.ts';
import { exactText } from '../../../integrity/utf8.ts';

/** An object by a stranger, whose fields may be anything. */
export type Fields = Readonly<Record<string, unknown>>;

/** The object a line holds, or undefined unless the line is its canonical form. */
export function readCanonical(line: Uint8Array): Fields | undefined {
  try {
    const text = exactText(line);
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    return isFields(value) && canonicalJson(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

export function readJson(text: string | undefined): Fields {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : '';
}

export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

/** A number from 1 on, as every id and position is. */
export function isPosition(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

export function textsOf(json: unknown): string[] {
  try {
    const value: unknown = JSON.parse(textOf(json));
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
}
