import { type Carrier, isTextOf } from '../../domains/owner/rules.ts';
import { digestUnder, isHash } from '../../integrity/digest.ts';
import { TASKS } from '../../log/tables.ts';
import { type Finding, type Report, rowFinding } from '../finding.ts';
import { NamedTexts } from '../named.ts';
import type { SourceText } from '../source.ts';
import type { JsonObject } from './payloads.ts';
import type { ReadRow } from './row-form.ts';

/** What the owner has erased, and where that is on the record. */
export interface Erasure {
  /** A record by its id, or a call by its enter row: `#12`. */
  readonly record: string;
  /** The exit row that says so. */
  readonly position: number;
  readonly at: string;
  readonly by: string;
  /** Undefined where the reason itself is not there. */
  readonly because: string | undefined;
  readonly texts: readonly ErasedText[];
}

export interface ErasedText {
  readonly digest: string;
  /** The enter row of the call that carried it. */
  readonly position: number;
  readonly field: string;
}

/** An owner_erase that went well. */
export interface Erasing {
  readonly exit: ReadRow;
  readonly args: JsonObject;
  readonly digests: readonly string[];
}

/** A call of which a text is absent. Once it has ended, `of` tells whose texts it carried. */
interface Lacking {
  of: Carrier | undefined;
  end: number;
}

interface Absent extends ErasedText {
  readonly call: Lacking;
}

/** Each text of the arguments has the digest that stands in its place, or was erased by the owner later on. */
export class Texts {
  /** Texts that the rows name and that are there. */
  present = 0;
  readonly erased: Erasure[] = [];
  /** The exit row that erased each. */
  readonly erasedBy = new Map<string, { readonly position: number; readonly task: string | undefined }>();
  /** Digests of texts that are missing or are not what was said. */
  readonly bad = new Set<string>();
  /** Texts that are not there and that no later row has erased yet. */
  readonly #absent = new Map<string, Absent>();
  /** Calls that have not ended and of which a text is absent, by their enter rows. None in a log without erasures. */
  readonly #lacking = new Map<number, Lacking>();
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

  /** A call has ended: whose texts it carried is known now. */
  end(exit: ReadRow, args: JsonObject | undefined): void {
    if (this.#lacking.size === 0) return;
    const { sequence_no: position, tool, outcome, effects } = exit;
    const call = this.#lacking.get(position);
    if (call === undefined) return;
    this.#lacking.delete(position);
    const wrote = outcome === 'ok' ? effects[0]?.id : undefined;
    const named = args?.task_id ?? (tool === TASKS.createdBy ? wrote : undefined);
    call.end = exit.position;
    call.of = { position, tool, wrote, task: typeof named === 'string' ? named : undefined };
  }

  /**
   * What an owner_erase says it erased must be gone, and a call before it must have carried it for what was erased. `found`
   * are those that are still there, and the reason. `isStrict`: every call before it was seen.
   */
  erase({ exit, args, digests }: Erasing, found: ReadonlyMap<string, SourceText>, isStrict: boolean): void {
    const { position, at, actor: by } = exit;
    const record = String(args.record);
    const erasable = { record, task_id: typeof args.task_id === 'string' ? args.task_id : undefined };
    const texts: ErasedText[] = [];
    let hasStrangers = false;
    for (const digest of digests) {
      this.erasedBy.set(digest, { position, task: erasable.task_id });
      const absent = this.#absent.get(digest);
      this.#absent.delete(digest);
      const message = `Audit row ${position} says that this text of ${record} was erased, but it is still there.`;
      if (found.has(digest)) this.#tell('stray', position, message, { record: digest });
      else if (absent?.call.of === undefined) hasStrangers ||= isStrict;
      else if (!isTextOf(erasable, absent.call.of) || absent.call.end > position) hasStrangers = true;
      else texts.push({ digest, position: absent.position, field: absent.field });
    }
    if (hasStrangers) {
      const message = `Audit row ${position} says that a text of ${record} was erased which no call before it carried for ${record}.`;
      this.#report(rowFinding('forbidden', position, message, { columns: ['digests'] }));
    }
    const because = typeof args.reason === 'string' ? found.get(args.reason)?.text : undefined;
    this.erased.push({ record, position, at, by, because, texts });
  }

  /** After the last row: texts that are gone without an erasure. */
  finish(): void {
    for (const position of this.#named.repeated()) {
      this.present -= 1;
      const message = `Audit row ${position} names a text that was named before, but each call has its own texts.`;
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
    if (kept === undefined) this.#miss({ digest, position, field });
    else {
      this.present += 1;
      this.bad.add(digest);
      const columns = actual === undefined ? ['salt'] : ['salt', 'text'];
      const message = `The ${field} of audit row ${position} is not what its digest says.`;
      this.#tell('altered', position, message, { columns, expected: digest, actual: actual ?? '' });
    }
    return false;
  }

  #miss(text: ErasedText): void {
    const call = this.#lacking.get(text.position) ?? { of: undefined, end: 0 };
    this.#lacking.set(text.position, call);
    this.#absent.set(text.digest, { ...text, call });
  }

  #tell(kind: Finding['kind'], position: number, message: string, more: Partial<Finding>): void {
    this.#report(rowFinding(kind, position, message, { table: 'texts', ...more }));
  }
}
