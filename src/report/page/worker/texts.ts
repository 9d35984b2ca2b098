import { RULES } from '../../../domains/rules.ts';
import { ERASED } from '../../../log/texts.ts';
import type { Source, SourceText } from '../../../verify/source.ts';
import type { Fields } from './fields.ts';

const MISSING = '[missing]';

/** The texts that stand behind digests. */
export class Texts {
  readonly #source: Pick<Source, 'texts'>;
  readonly #missing: ReadonlySet<string>;
  readonly #found = new Map<string, SourceText>();

  /** `missing` are digests whose text is gone without having been erased. */
  constructor(source: Pick<Source, 'texts'>, missing: ReadonlySet<string>) {
    this.#source = source;
    this.#missing = missing;
  }

  /** Fetches what `shown` is going to be asked for. */
  async load(digests: readonly unknown[]): Promise<void> {
    const wanted = digests.filter((digest) => typeof digest === 'string');
    for (const [digest, text] of await this.#source.texts(wanted)) this.#found.set(digest, text);
  }

  /** The text, or why there is none; nothing for a field that was never given. */
  shown(digest: unknown): string {
    if (typeof digest !== 'string') return '';
    return this.#found.get(digest)?.text ?? (this.#missing.has(digest) ? MISSING : ERASED);
  }

  /** Arguments as the caller gave them. */
  restored(args: Fields, fields: readonly string[]): Fields {
    const given = fields.filter((field) => args[field] !== undefined);
    if (given.length === 0) return args;
    return { ...args, ...Object.fromEntries(given.map((field) => [field, this.shown(args[field])])) };
  }
}

/** The arguments of a tool that are texts. */
export function textFields(version: unknown, tool: unknown): readonly string[] {
  const rules = typeof version === 'number' ? RULES[version] : undefined;
  return typeof tool === 'string' && rules !== undefined && Object.hasOwn(rules, tool)
    ? (rules[tool]?.texts ?? [])
    : [];
}
