import { RULES } from '../../../domains/rules.ts';
import { ERASED } from '../../../log/texts.ts';
import type { Source } from '../../../verify/source.ts';
import { isObject, isPosition, members } from '../../../verify/sources/forms.ts';

// How the worker reads what strangers wrote: fields that may be anything, and the texts behind digests.

/** An object by a stranger, whose fields may be anything. */
export type Fields = Readonly<Record<string, unknown>>;

export { isPosition, members as readJson };

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

const MISSING = '[missing]';

/** The text behind a digest, or why there is none; nothing for a field that was never given. */
export type ShowText = (digest: unknown) => string;

/** Fetches the texts that will be shown. `missing` are digests whose text is gone without having been erased. */
export async function loadTexts(
  source: Pick<Source, 'texts'>,
  digests: readonly unknown[],
  missing: ReadonlySet<string>,
): Promise<ShowText> {
  const found = await source.texts(digests.filter((digest) => typeof digest === 'string'));
  return (digest) => {
    if (typeof digest !== 'string') return '';
    return found.get(digest)?.text ?? (missing.has(digest) ? MISSING : ERASED);
  };
}

/** The arguments of a tool that are texts, as far as they were given. */
export function textFields(version: unknown, tool: unknown, args: Fields): readonly string[] {
  const rules = typeof version === 'number' ? RULES[version] : undefined;
  if (typeof tool !== 'string' || rules === undefined || !Object.hasOwn(rules, tool)) return [];
  return (rules[tool]?.texts ?? []).filter((field) => args[field] !== undefined);
}
