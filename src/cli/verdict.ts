import type { Finding } from '../verify/finding.ts';
import type { Anchoring, Checkpointed, Verdict } from '../verify/verdict.ts';
import { EXIT } from './command.ts';
import type { Output } from './output.ts';
import { printable } from './text.ts';

/** A verification of one file, ready to be printed. */
export interface Verified {
  readonly what: 'database' | 'bundle' | 'proof';
  readonly path: string;
  /** Whether every row of the log was there to be read. */
  readonly whole: boolean;
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  /** Things worth knowing that are not wrong, those of the verdict included. */
  readonly remarks: readonly string[];
  /** Further members of the JSON. */
  readonly data?: object;
  /** Further lines for people, after the ranges. */
  readonly print?: (out: Output) => void;
}

/** Prints a verdict and answers the exit code. */
export function showVerified(verified: Verified, out: Output): number {
  const { verdict, findings, remarks, whole } = verified;
  const ok = findings.length === 0;
  out.data(dataOf(verified), () => {
    printFindings(findings, out);
    if (!ok) out.line();
    printRanges(verdict, whole, out);
    verified.print?.(out);
    for (const remark of remarks) out.line(out.paint('yellow', printable(remark)));
    printConclusion(findings, out);
  });
  return ok ? EXIT.fine : EXIT.found;
}

function dataOf({ what, path, whole, verdict, findings, remarks, data }: Verified): object {
  return {
    ok: findings.length === 0,
    what,
    path,
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
    ...data,
    remarks,
    findings,
  };
}

const FINDINGS_SHOWN_MAX = 20;

/** One finding per line, the first ones, and how many there are. */
export function printFindings(findings: readonly Finding[], out: Output): void {
  for (const { kind, record, message } of findings.slice(0, FINDINGS_SHOWN_MAX))
    out.line(`${out.paint('red', kind.padEnd(14))} ${printable(record)}  ${printable(message)}`, 15);
  const more = findings.length - FINDINGS_SHOWN_MAX;
  if (more > 0) out.line(`… and ${more} more; --json prints all of them.`);
}

export function printConclusion(findings: readonly Finding[], out: Output): void {
  const count = findings.length === 1 ? 'One thing is wrong.' : `${findings.length} things are wrong.`;
  out.line(findings.length === 0 ? out.paint('green', 'Nothing is wrong.') : out.paint('red', count));
}

function printRanges(verdict: Verdict, whole: boolean, out: Output): void {
  const rows = (count: number) => count.toLocaleString('en').padStart(12);
  const anchors = verdict.anchoredBy.map((source) => ANCHOR_NAMES[source]).join(', ');
  const keys = verdict.checkpointed
    .filter(({ known }) => known)
    .map(nameOf)
    .join(', ');
  const by = (names: string) => (names === '' ? '' : `  by ${names}`);
  if (whole) {
    out.line(
      `intact through        ${rows(verdict.intactThrough)} of ${verdict.size.toLocaleString('en')} audit rows`,
    );
    out.line(`replayed through      ${rows(verdict.replayedThrough)}`);
  }
  out.line(`checkpointed through  ${rows(verdict.checkpointedThrough)}${by(keys)}`);
  out.line(`anchored through      ${rows(verdict.anchoredThrough)}${by(anchors)}`);
  if (whole) out.line(`unanchored tail       ${rows(verdict.unanchoredTail)}`);
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
