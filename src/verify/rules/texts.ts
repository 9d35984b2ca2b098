import { isHash } from '../../integrity/digest.ts';
import { isSalt, saltedDigest } from '../../integrity/salted.ts';
import type { AuditRow } from '../../log/row.ts';
import { auditRow, type Report } from '../finding.ts';
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

interface Named {
  readonly position: number;
  readonly field: string;
}

/** Each text of the arguments has the digest that stands in its place, or was erased by the owner later on. */
export class Texts {
  /** Texts that the rows speak of and that are there. */
  present = 0;
  readonly erased: ErasedText[] = [];
  /** Digests of texts that are missing or are not what was said. */
  readonly bad = new Set<string>();
  /** Texts that are not there and that no later row has erased yet. */
  readonly #absent = new Map<string, Named>();
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  /** Answers whether every text of these arguments is what was said. */
  check(
    row: AuditRow,
    args: JsonObject,
    fields: readonly string[],
    found: ReadonlyMap<string, SourceText>,
  ): boolean {
    let isWhole = true;
    for (const field of fields) {
      const digest = args[field];
      if (digest === undefined) continue;
      if (typeof digest !== 'string' || !isHash(digest)) this.#tellOpen(row.position, field);
      else if (this.#checkOne({ position: row.position, field }, digest, found.get(digest))) continue;
      isWhole = false;
    }
    return isWhole;
  }

  /** What an owner_erase says it erased must be gone. `found` are those of them that are still there. */
  erase(exit: AuditRow, digests: readonly string[], found: ReadonlyMap<string, SourceText>): void {
    for (const digest of digests) {
      if (found.has(digest)) {
        const message = `Audit row ${exit.position} says that this text was erased, and it is still there.`;
        this.#report({ kind: 'stray', table: 'texts', record: digest, position: exit.position, message });
      }
      const named = this.#absent.get(digest);
      if (named === undefined) continue;
      this.#absent.delete(digest);
      this.erased.push({ digest, ...named, erasedAt: exit.position, by: exit.actor });
    }
  }

  /** After the last row: texts that are gone without an erasure. */
  end(): void {
    for (const [digest, { position, field }] of this.#absent) {
      this.bad.add(digest);
      const message = `The ${field} of audit row ${position} is missing, and no row says that it was erased.`;
      this.#report({
        kind: 'missing',
        table: 'texts',
        record: auditRow(position),
        position,
        columns: [field],
        message,
        expected: digest,
        actual: '',
      });
    }
  }

  #checkOne(named: Named, digest: string, text: SourceText | undefined): boolean {
    if (text === undefined) {
      this.#absent.set(digest, named);
      return false;
    }
    this.present += 1;
    const actual = isSalt(text.salt) ? saltedDigest(text.salt, text.text) : '';
    if (actual === digest) return true;
    this.bad.add(digest);
    const { position, field } = named;
    const columns = isSalt(text.salt) ? ['salt', 'text'] : ['salt'];
    const message = `The ${field} of audit row ${position} is not what its digest says.`;
    this.#report({
      kind: 'altered',
      table: 'texts',
      record: auditRow(position),
      position,
      columns,
      message,
      expected: digest,
      actual,
    });
    return false;
  }

  #tellOpen(position: number, field: string): void {
    const message = `In the place of ${field}, audit row ${position} does not keep the digest of a text.`;
    this.#report({
      kind: 'malformed',
      table: 'action_payloads',
      record: auditRow(position),
      position,
      columns: [field],
      message,
    });
  }
}

/** The digests of the texts in these arguments, as far as they have the form of one. */
export function textDigests(args: JsonObject, fields: readonly string[]): string[] {
  return fields
    .map((field) => args[field])
    .filter((value) => typeof value === 'string' && isHash(value)) as string[];
}

/** The digests that the exit of an owner_erase lists. */
export function erasedDigests(body: JsonObject): string[] {
  const listed = isObject(body.outside) ? body.outside.digests : undefined;
  return Array.isArray(listed) ? listed.filter((digest) => typeof digest === 'string') : [];
}
