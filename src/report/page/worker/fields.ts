import { isObject, members } from '../../../verify/sources/forms.ts';

/** An object by a stranger, whose fields may be anything. */
export type Fields = Readonly<Record<string, unknown>>;

export const readJson: (text: string | undefined) => Fields = members;

export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
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
