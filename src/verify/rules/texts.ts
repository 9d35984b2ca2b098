import { digestUnder, isHash } from '../../integrity/digest.ts';
import type { AuditRow } from '../../log/row.ts';
import { type Finding, type Report, rowFinding } from '../finding.ts';
import { NamedTexts } from '../named.ts';
import type { SourceText } from '../source.ts';
import { isObject, type JsonObject } from './payloads.ts';

/** A text that the owner has erased, and where that is on the record. */
export interface ErasedText {
  readonly digest: string;
  /** The call that carried it. */
  readonly position: number;
  readonly field: string;
  readonly erasedAt: number;
  readonly by: string;
}

/** Each text of the arguments has the digest that stands in its place, or was erased by the owner later on. */
export class Texts {
  /** Texts that the rows name and that are there. */
  present = 0;
  readonly erased: ErasedText[] = [];
  /** Digests of texts that are missing or are not what was said. */
  readonly bad = new Set<string>();
  /** Texts that are not there and that no later row has erased yet. */
  readonly #absent = new Map<string, Pick<ErasedText, 'position' | 'field'>>();
  readonly #named = new NamedTexts();
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  /** Answers whether every text of these arguments is what was said. */
  check(
    position: number,
    args: JsonObject,
    fields: readonly string[],
    found: ReadonlyMap<string, SourceText>,
  ): boolean {
    let isWhole = true;
    for (const field of fields)
      if (args[field] !== undefined && !this.#isThere(position, field, args[field], found)) isWhole = false;
    return isWhole;
  }

  /** What an owner_erase says it erased must be gone. `found` are those of them that are still there. */
  erase(
    { position, actor }: AuditRow,
    digests: readonly string[],
    found: ReadonlyMap<string, unknown>,
  ): void {
    for (const digest of digests) {
      const message = `Audit row ${position} says that this text was erased, and it is still there.`;
      if (found.has(digest)) this.#tell('stray', position, message, { record: digest });
      const named = this.#absent.get(digest);
      if (named === undefined) continue;
      this.#absent.delete(digest);
      this.erased.push({ digest, ...named, erasedAt: position, by: actor });
    }
  }

  /** After the last row: texts that are gone without an erasure. */
  end(): void {
    for (const position of this.#named.repeated()) {
      this.present -= 1;
      const message = `Audit row ${position} names a text that was named before, and each call has texts of its own.`;
      this.#tell('malformed', position, message, { table: 'action_payloads' });
    }
    for (const [digest, { position, field }] of this.#absent) {
      this.bad.add(digest);
      const message = `The ${field} of audit row ${position} is missing, and no row says that it was erased.`;
      this.#tell('missing', position, message, { columns: [field], expected: digest, actual: '' });
    }
  }

  #isThere(
    position: number,
    field: string,
    digest: unknown,
    found: ReadonlyMap<string, SourceText>,
  ): boolean {
    const kept = typeof digest === 'string' ? found.get(digest) : undefined;
    const actual = kept === undefined ? undefined : digestUnder(kept.salt, kept.text);
    if (typeof digest !== 'string' || (digest !== actual && !isHash(digest))) {
      const message = `In the place of ${field}, audit row ${position} does not keep the digest of a text.`;
      this.#tell('malformed', position, message, { table: 'action_payloads', columns: [field] });
      return false;
    }
    this.#named.add(digest, position);
    if (digest === actual) {
      this.present += 1;
      return true;
    }
    if (kept === undefined) this.#absent.set(digest, { position, field });
    else {
      this.present += 1;
      this.bad.add(digest);
      const columns = actual === undefined ? ['salt'] : ['salt', 'text'];
      const message = `The ${field} of audit row ${position} is not what its digest says.`;
      this.#tell('altered', position, message, { columns, expected: digest, actual: actual ?? '' });
    }
    return false;
  }

  #tell(kind: Finding['kind'], position: number, message: string, more: Partial<Finding>): void {
    this.#report(rowFinding(kind, position, message, { table: 'texts', ...more }));
  }
}

/** The digests that the exit of an owner_erase lists. */
export function erasedDigests(body: JsonObject): string[] {
  const listed = isObject(body.outside) ? body.outside.digests : undefined;
  return Array.isArray(listed) ? listed.filter((digest) => typeof digest === 'string') : [];
}
