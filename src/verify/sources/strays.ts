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
  if (walked.texts === undefined || there.count === walked.texts || !walked.isComplete) return;
  const named = new Set<string>();
  for await (const body of there.bodies())
    for (const [digest] of body.matchAll(/[0-9a-f]{64}/g)) named.add(digest);
  const unnamed: string[] = [];
  for await (const digest of there.digests())
    if (!named.has(digest) && unnamed.length < NAMED_MAX) unnamed.push(digest);
  // A text that is missing may be there under another digest: that it is missing was said.
  if (unnamed.length > 0 && unnamed.length <= walked.badTexts.size) return;
  for (const digest of unnamed) {
    // What stands there need not be a digest, and is printed.
    const record = /^[0-9a-f]{16}/.exec(digest)?.[0] ?? 'without a digest';
    report({ kind: 'stray', table: 'texts', record, message: `The text ${record} belongs to no call.` });
  }
  if (unnamed.length > 0) return;
  const message = `${walked.texts} texts are named by calls, but ${there.count} are there: one is named twice, or was inserted where no search finds it.`;
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
