import { type Carrier, isTextOf } from '../../domains/owner/rules.ts';
import { digestUnder, isHash } from '../../integrity/digest.ts';
import { TASKS } from '../../log/tables.ts';
import { callOfText, type NamedText, textId } from '../../storage/text-ids.ts';
import { type Finding, type Report, rowFinding } from '../finding.ts';
import { NamedTexts } from '../named.ts';
import type { Source, SourceText } from '../source.ts';
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
  readonly because: string | undefined;
}

/** A call of which a text is absent. Once it has ended, `of` tells whose texts it carried. */
interface Lacking {
  of: Carrier | undefined;
}

interface Absent extends ErasedText {
  readonly call: Lacking;
}

/** Texts of a call by field. */
export type Said = Readonly<Record<string, string>>;

/** Each text of the arguments has the digest that stands in its place, or was erased by the owner later on. */
export class Texts {
  /** Texts that the rows name and that are there. */
  present = 0;
  readonly erased: Erasure[] = [];
  /** The exit row that erased each. */
  readonly erasedBy = new Map<string, { readonly position: number; readonly task: string | undefined }>();
  /** Texts that are gone without an erasure. */
  missing = 0;
  /** Digests of texts that are missing or are not what was said. */
  readonly bad = new Set<string>();
  /** Texts that are not there and that no later row has erased yet. */
  readonly #absent = new Map<string, Absent>();
  /** Calls that have not ended and of which a text is absent, by their enter rows. None in a log without erasures. */
  readonly #lacking = new Map<number, Lacking>();
  readonly #named = new NamedTexts();
  /** Texts that were there when their calls were read, and that a later row has erased. */
  readonly #wasThere: (NamedText & Pick<Erasure, 'position' | 'record'>)[] = [];
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  /** Answers the texts of these arguments, by field, that are there and are what was said. */
  check(
    position: number,
    args: JsonObject,
    fields: readonly string[],
    found: ReadonlyMap<number, SourceText>,
  ): Said {
    const said: Record<string, string> = {};
    let number = 0;
    for (const field of fields) {
      if (args[field] === undefined) continue;
      const id = textId(position, number);
      const text = this.#checkText(id, field, args[field], found.get(id));
      if (text !== undefined) said[field] = text;
      number += 1;
    }
    return said;
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
    call.of = { position, tool, wrote, task: typeof named === 'string' ? named : undefined };
  }

  /**
   * What an owner_erase says it erased must be gone, and a call before it must have carried it for what was erased.
   * `isStrict`: every call before it was seen.
   */
  erase({ exit, args, digests, because }: Erasing, isStrict: boolean): void {
    const { position, at, actor: by } = exit;
    const record = String(args.record);
    const erasable = { record, task_id: typeof args.task_id === 'string' ? args.task_id : undefined };
    const texts: ErasedText[] = [];
    let hasStrangers = false;
    for (const digest of digests) {
      const isErased = this.erasedBy.has(digest);
      this.erasedBy.set(digest, { position, task: erasable.task_id });
      const absent = this.#absent.get(digest);
      this.#absent.delete(digest);
      const call = absent === undefined && !isErased ? this.#named.positionOf(digest) : undefined;
      if (call !== undefined) this.#wasThere.push({ call, digest, position, record });
      else if (absent?.call.of === undefined) hasStrangers ||= isStrict;
      else if (!isTextOf(erasable, absent.call.of)) hasStrangers = true;
      else texts.push({ digest, position: absent.position, field: absent.field });
    }
    if (hasStrangers) {
      const message = `Audit row ${position} says that a text of ${record} was erased which no call before it carried for ${record}.`;
      this.#report(rowFinding('forbidden', position, message, { columns: ['digests'] }));
    }
    this.erased.push({ record, position, at, by, because, texts });
  }

  /** After the last row: a text that was there may have been erased while the others were read. */
  async lookAgain(source: Pick<Source, 'texts'>): Promise<void> {
    if (this.#wasThere.length === 0) return;
    const found = new Set([...(await source.texts(this.#wasThere)).values()].map(({ digest }) => digest));
    for (const { digest, position, record } of this.#wasThere) {
      const message = `Audit row ${position} says that this text of ${record} was erased, but it is still there.`;
      if (found.has(digest)) this.#tell('stray', position, message, { record: digest });
      else this.present -= 1;
    }
  }

  /** After the last row: texts that are gone without an erasure. That one came before the text was said already. */
  finish(isStrict: boolean): void {
    const repeating = new Set(this.#named.repeated());
    for (const position of repeating) {
      const message = `Audit row ${position} names a text that was named before, but each call has its own texts.`;
      this.#tell('malformed', position, message, { table: 'action_payloads' });
    }
    for (const [digest, { position, field }] of this.#absent) {
      this.bad.add(digest);
      if (repeating.has(position) || (isStrict && this.erasedBy.has(digest))) continue;
      this.missing += 1;
      const message = `The ${field} of audit row ${position} is missing, and no row says that it was erased.`;
      this.#tell('missing', position, message, { columns: [field], expected: digest, actual: '' });
    }
  }

  #checkText(id: number, field: string, digest: unknown, kept: SourceText | undefined): string | undefined {
    const position = callOfText(id);
    const actual = kept === undefined ? undefined : digestUnder(kept.salt, kept.text);
    if (typeof digest !== 'string' || (digest !== actual && !isHash(digest))) {
      const message = `In the place of ${field}, audit row ${position} does not keep the digest of a text.`;
      this.#tell('malformed', position, message, { table: 'action_payloads', columns: [field] });
      return undefined;
    }
    this.#named.add(digest, position);
    if (kept === undefined) {
      this.#miss({ digest, position, field });
      return undefined;
    }
    this.present += 1;
    if (digest === actual && digest === kept.digest) return kept.text;
    this.bad.add(digest);
    const columns = [
      ...(digest === kept.digest ? [] : ['digest']),
      ...(digest === actual ? [] : actual === undefined ? ['salt'] : ['salt', 'text']),
    ];
    const message = `The ${field} of audit row ${position} is not what its digest says.`;
    this.#tell('altered', position, message, { columns, expected: digest, actual: actual ?? '' });
    return undefined;
  }

  #miss(text: ErasedText): void {
    const call = this.#lacking.get(text.position) ?? { of: undefined };
    this.#lacking.set(text.position, call);
    this.#absent.set(text.digest, { ...text, call });
  }

  #tell(kind: Finding['kind'], position: number, message: string, more: Partial<Finding>): void {
    this.#report(rowFinding(kind, position, message, { table: 'texts', ...more }));
  }
}
