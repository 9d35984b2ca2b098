import type { Finding, Report } from '../finding.ts';
import type { Walked } from '../source.ts';

// What is there and no row of the log speaks of, in the same words wherever it lies.

/** As many strays of one kind are named. */
export const NAMED_MAX = 1_000;

/** What a source has of texts and of what may name them. */
export interface TextsThere {
  readonly count: number;
  readonly digests: () => AsyncIterable<string> | Iterable<string>;
  /** The bodies of all payloads. */
  readonly bodies: () => AsyncIterable<string>;
}

/** Each text is named by the arguments of one call. Which ones are not is looked up only where the numbers differ. */
export async function reportStrayTexts(there: TextsThere, walked: Walked, report: Report): Promise<void> {
  if (walked.texts === undefined || !walked.isComplete) return;
  const tooMany = there.count - walked.texts;
  if (tooMany === 0) return;
  const named = new Set<string>();
  for await (const body of there.bodies())
    for (const [digest] of body.matchAll(/[0-9a-f]{64}/g)) named.add(digest);
  // What was erased, no call names any more.
  for (const digest of walked.erasedTexts.keys()) named.delete(digest);
  const stray: string[] = [];
  // Once it was met, a digest is named no more.
  for await (const digest of there.digests())
    if (!named.delete(digest) && stray.length < NAMED_MAX) stray.push(digest);
  for (const digest of stray) {
    // What stands there need not be a digest, and is printed.
    const record = /^[0-9a-f]{16}/.exec(digest)?.[0] ?? 'without a digest';
    report({
      kind: 'stray',
      table: 'texts',
      record,
      message: `The text ${record} belongs to no call, or is there twice.`,
    });
  }
  // A text that is missing may be there under another id or digest: that it is missing was said.
  if (stray.length > 0 || (tooMany > 0 && tooMany <= walked.missingTexts)) return;
  const message = `${walked.texts} texts are named by calls, but ${there.count} are there: one was inserted where no search finds it.`;
  report({ kind: 'stray', table: 'texts', record: 'rows', message });
}

export function strayPayload(position: number | string): Finding {
  const message = `There is a payload at position ${position} that no audit row names.`;
  return { kind: 'stray', table: 'action_payloads', record: `#${position}`, message };
}

export function strayState(table: string, record: string): Finding {
  const message = `${record} is in ${table}, but no audit row wrote it.`;
  return { kind: 'unexplained', table, record, columns: ['id'], message };
}
