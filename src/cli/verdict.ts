import type { Config } from '../config.ts';
import { keyId } from '../trust/opening.ts';
import type { Finding } from '../verify/finding.ts';
import { type Anchoring, erasureLine, type Verdict } from '../verify/verdict.ts';
import type { Against } from './brought.ts';
import type { AnchorState } from './evidence.ts';
import type { Output } from './output.ts';

/** A file to verify, and what the user brings along. */
export interface ToVerify {
  readonly config: Config;
  readonly path: string;
  readonly out: Output;
  /** A verifier key in its text form. */
  readonly key?: string | undefined;
  readonly against?: Against | undefined;
  /** The certificate of a time-stamping authority. */
  readonly authority?: string | undefined;
}

/** What came of it, ready to be printed. */
export interface Verified {
  readonly what: 'database' | 'bundle' | 'proof';
  readonly findings: readonly Finding[];
  /** A file that proves a single thing has none. */
  readonly verdict?: Verdict;
  /** Anchors of a database, each as what it is. */
  readonly anchors?: readonly AnchorState[];
  /** Whether every row of the log was there to be read. */
  readonly whole?: boolean;
  readonly remarks?: readonly string[];
  /** Further members of the JSON. */
  readonly data?: object;
  /** Further lines for people. */
  readonly print?: () => void;
}

const FINDINGS_SHOWN_MAX = 20;

/** Prints what was found and answers the exit code. */
export function showVerified(verified: Verified, { path, out }: ToVerify): number {
  const { what, findings, verdict, whole = true, anchors = [], data, print } = verified;
  const ok = findings.length === 0;
  const remarks = [...(verified.remarks ?? []), ...(verdict?.remarks ?? [])];
  const against = verdict && comparisonIn(verdict);
  const count = findings.length === 1 ? 'One thing is wrong.' : `${findings.length} things are wrong.`;
  const printAll = () => {
    // A proof that does not hold proves nothing at all: that comes first.
    if (!ok && what === 'proof') {
      out.line(out.paint('red', `This file is not valid, so nothing in it is proved. ${count}`));
      out.line();
    }
    for (const { kind, record, message } of findings.slice(0, FINDINGS_SHOWN_MAX))
      out.line(`${out.paint('red', kind.padEnd(14))} ${record}  ${message}`, 15);
    const more = findings.length - FINDINGS_SHOWN_MAX;
    if (more > 0) out.line(`… and ${more} more; --json prints all of them.`);
    if (!ok) out.line();
    // What a proof shows comes before what it rests on.
    if (what === 'proof') print?.();
    if (verdict && (ok || what !== 'proof')) printRanges(verdict, whole, out);
    printPrepared(anchors, verdict?.anchoredThrough ?? 0, out);
    if (against) out.line(`against               ${against.verdict}: ${against.message}`);
    for (const erasure of verdict?.erased ?? []) out.line(erasureLine(erasure));
    if (what !== 'proof') print?.();
    for (const remark of remarks) out.line(out.paint('yellow', remark));
    if (ok) out.line(out.paint('green', 'Nothing is wrong.'));
    else if (what !== 'proof') out.line(out.paint('red', count));
  };
  const ranges = verdict && rangesIn(verdict, whole);
  return out.data(
    {
      ...{ ok, what, path, ...ranges },
      ...(verified.anchors && { anchors }),
      ...(against && { against }),
      ...{ ...data, remarks, findings },
    },
    printAll,
    ok,
  );
}

/** Of a part of a log, nothing can be said of all rows up to one. */
function rangesIn(verdict: Verdict, whole: boolean) {
  return {
    origin: verdict.origin,
    size: verdict.size,
    root: verdict.root,
    intact_through: whole ? verdict.intactThrough : null,
    replayed_through: whole ? verdict.replayedThrough : null,
    checkpointed_through: verdict.checkpointedThrough,
    checkpointed_by: verdict.checkpointed.map((one) => ({ ...one, known: true })),
    anchored_through: verdict.anchoredThrough,
    anchored_by: verdict.anchoredBy,
    unanchored_tail: whole ? verdict.unanchoredTail : null,
    erased: verdict.erased,
  };
}

/** How the checkpoint that the user brought compares. */
function comparisonIn({ judged }: Verdict) {
  const found = judged.find(({ source }) => source === 'against');
  if (found === undefined) return undefined;
  const { status, size, message } = found;
  const isOther = status === 'cut' || status === 'rewritten';
  const verdict = status === 'consistent' ? status : isOther ? 'inconsistent' : 'not comparable';
  return { verdict, size, message };
}

function printRanges(verdict: Verdict, whole: boolean, out: Output): void {
  const size = `of ${verdict.size.toLocaleString('en')} audit rows`;
  const keys = verdict.checkpointed.map(
    ({ key, vouched }) => `key ${keyId(key)}${vouched ? '' : ' (not vouched for)'}`,
  );
  const anchors = anchorReaches(verdict).map(({ source, through }) =>
    through < verdict.anchoredThrough
      ? `${ANCHOR_NAMES[source]} through ${through.toLocaleString('en')}`
      : ANCHOR_NAMES[source],
  );
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

/** How far each kind of anchor reaches, the furthest first. */
function anchorReaches({ anchoredBy, judged }: Verdict) {
  const reaches = anchoredBy.map((source) => {
    const own = judged.filter((one) => one.source === source && one.status === 'consistent');
    return { source, through: own.reduce((most, { size }) => Math.max(most, size), 0) };
  });
  return reaches.sort((a, b) => b.through - a.through);
}

/** The newest of what would reach further if it were more than prepared. */
function printPrepared(anchors: readonly AnchorState[], anchoredThrough: number, out: Output): void {
  for (const kind of ['git', 'tsr'] as const) {
    const waiting = anchors.filter((one) => one.kind === kind && one.state === 'prepared');
    const newest = waiting.reduce((most, one) => (one.size > most.size ? one : most), waiting[0] ?? NOTHING);
    if (newest.size <= anchoredThrough) continue;
    const name = kind === 'git' ? 'git: no remote is known to have it' : 'time stamp';
    out.line(`${'prepared through'.padEnd(22)}${newest.size.toLocaleString('en').padStart(12)}  ${name}`);
    if (newest.next !== undefined) out.line(out.paint('dim', `${' '.repeat(36)}${newest.next}`), 36);
  }
}

const NOTHING: AnchorState = { kind: 'git', state: 'prepared', size: 0, where: '' };

export const ANCHOR_NAMES: Readonly<Record<Anchoring, string>> = {
  git: 'git (pushed)',
  tsr: 'time stamp',
  file: 'a file you keep',
  against: 'the checkpoint you gave',
};
