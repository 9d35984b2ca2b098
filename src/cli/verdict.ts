import type { Finding } from '../verify/finding.ts';
import type { HeadStatus } from '../verify/rules/heads.ts';
import type { Anchoring, Checkpointed, Verdict } from '../verify/verdict.ts';
import type { Output } from './output.ts';
import { printable } from './text.ts';

/** A verification of one file, ready to be printed. */
export interface Verified {
  readonly what: 'database' | 'bundle' | 'proof';
  readonly path: string;
  readonly findings: readonly Finding[];
  /** Further members of the JSON. */
  readonly data: object;
  /** Lines for people, after the findings. */
  readonly print: (out: Output) => void;
}

const FINDINGS_SHOWN_MAX = 20;

/** Prints what was found and answers the exit code. */
export function showVerified({ what, path, findings, data, print }: Verified, out: Output): number {
  const ok = findings.length === 0;
  const printAll = () => {
    for (const { kind, record, message } of findings.slice(0, FINDINGS_SHOWN_MAX))
      out.line(`${out.paint('red', kind.padEnd(14))} ${printable(record)}  ${printable(message)}`, 15);
    const more = findings.length - FINDINGS_SHOWN_MAX;
    if (more > 0) out.line(`… and ${more} more; --json prints all of them.`);
    if (!ok) out.line();
    print(out);
    const count = findings.length === 1 ? 'One thing is wrong.' : `${findings.length} things are wrong.`;
    out.line(ok ? out.paint('green', 'Nothing is wrong.') : out.paint('red', count));
  };
  return out.data({ ok, what, path, ...data, findings }, printAll, ok);
}

/** What a verdict comes to, with what else is to be said about this file. */
export function describeVerdict(
  verdict: Verdict,
  /** Whether every row of the log was there to be read. */
  whole: boolean,
  more: Partial<Verified> & { readonly remarks?: readonly string[] },
): Pick<Verified, 'data' | 'print'> {
  const remarks = [...(more.remarks ?? []), ...verdict.remarks];
  const compared = verdict.judged.find(({ source }) => source === 'against');
  const against = compared && {
    verdict: COMPARISONS.find(([, statuses]) => statuses.includes(compared.status))?.[0] ?? 'not comparable',
    size: compared.size,
    message: compared.message,
  };
  return {
    data: {
      origin: verdict.origin,
      size: verdict.size,
      root: verdict.root,
      // Of a part of a log, nothing can be said of all rows up to one.
      intact_through: whole ? verdict.intactThrough : null,
      replayed_through: whole ? verdict.replayedThrough : null,
      checkpointed_through: verdict.checkpointedThrough,
      checkpointed_by: verdict.checkpointed,
      anchored_through: verdict.anchoredThrough,
      anchored_by: verdict.anchoredBy,
      unanchored_tail: whole ? verdict.unanchoredTail : null,
      erased: verdict.erased,
      ...(against && { against }),
      ...more.data,
      remarks,
    },
    print(out) {
      printRanges(verdict, whole, out);
      if (against) out.line(`against               ${against.verdict}: ${printable(against.message)}`);
      more.print?.(out);
      for (const remark of remarks) out.line(out.paint('yellow', printable(remark)));
    },
  };
}

const COMPARISONS: readonly (readonly [verdict: string, statuses: readonly HeadStatus[]])[] = [
  ['consistent', ['consistent']],
  ['inconsistent', ['cut', 'rewritten']],
];

function printRanges(verdict: Verdict, whole: boolean, out: Output): void {
  const size = `of ${verdict.size.toLocaleString('en')} audit rows`;
  const keys = verdict.checkpointed.filter(({ known }) => known).map(nameOf);
  const anchors = verdict.anchoredBy.map((source) => ANCHOR_NAMES[source]);
  const by = (names: readonly string[]) => (names.length === 0 ? '' : ` by ${names.join(', ')}`);
  const lines: readonly (readonly [label: string, rows: number, more: string, ofPart: boolean])[] = [
    ['intact through', verdict.intactThrough, size, false],
    ['replayed through', verdict.replayedThrough, '', false],
    ['checkpointed through', verdict.checkpointedThrough, by(keys), true],
    ['anchored through', verdict.anchoredThrough, by(anchors), true],
    ['unanchored tail', verdict.unanchoredTail, '', false],
  ];
  for (const [label, rows, more, ofPart] of lines)
    if (whole || ofPart)
      out.line(`${label.padEnd(22)}${rows.toLocaleString('en').padStart(12)} ${more}`.trimEnd());
}

function nameOf({ key, vouched }: Checkpointed): string {
  return `key ${keyId(key)}${vouched ? '' : ' (not vouched for)'}`;
}

/** The short name of a key in its text form. It may come from a stranger's file. */
export function keyId(key: string): string {
  return printable(key.split('+')[1] ?? '');
}

export const ANCHOR_NAMES: Readonly<Record<Anchoring, string>> = {
  git: 'git',
  tsr: 'time stamp',
  file: 'a file you keep',
  against: 'the checkpoint you gave',
};
