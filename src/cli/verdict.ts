import type { Judged, Source } from '../log/verify/evidence.ts';
import type { Finding } from '../log/verify/finding.ts';
import type { Verified } from '../log/verify/verify.ts';
import type { Output } from './output.ts';
import { printable } from './text.ts';

/** How far each kind of trust reaches, counted in audit rows. */
export interface Ranges {
  /** Nothing is wrong up to here. */
  readonly intactThrough: number;
  /** A checkpoint of a known key covers it. */
  readonly checkpointedThrough: number;
  /** A checkpoint that is kept elsewhere covers it. */
  readonly anchoredThrough: number;
  readonly anchoredBy: readonly Anchoring[];
  /** Rows that only this machine vouches for. Normal for the newest ones. */
  readonly unanchoredTail: number;
}

export type AgainstVerdict = 'consistent' | 'inconsistent' | 'not comparable';

type Anchoring = Extract<Source, 'git' | 'tsr' | 'file' | 'against'>;

const ANCHORS: readonly Anchoring[] = ['git', 'tsr', 'file', 'against'];
const FINDINGS_SHOWN_MAX = 20;

export function rangesOf(verified: Verified, judged: readonly Judged[]): Ranges {
  const consistent = judged.filter(({ status }) => status === 'consistent');
  const through = (heads: readonly Judged[]) => Math.max(0, ...heads.map(({ size }) => size));
  // Between the last head that agrees and the first that does not, something was changed.
  const doubtful = judged.filter(({ status }) => status === 'rewritten').map(({ size }) => size);
  const firstDoubtful = Math.min(Number.POSITIVE_INFINITY, ...doubtful);
  const agreed = through(consistent.filter(({ size }) => size < firstDoubtful));
  const intactThrough =
    doubtful.length === 0 ? verified.intactThrough : Math.min(verified.intactThrough, agreed);
  const anchors = consistent.filter(({ source }) => ANCHORS.some((kind) => kind === source));
  const anchoredThrough = Math.min(intactThrough, through(anchors));
  return {
    intactThrough,
    checkpointedThrough: Math.min(intactThrough, through(consistent)),
    anchoredThrough,
    anchoredBy: ANCHORS.filter((source) => anchors.some((anchor) => anchor.source === source)),
    unanchoredTail: intactThrough - anchoredThrough,
  };
}

/** What a head that disagrees means, as a finding. Undefined where it is none. */
export function findingOf(head: Judged, leftovers: boolean, size: number): Finding | undefined {
  const base = { table: 'checkpoint', record: head.where, message: head.message };
  switch (head.status) {
    case 'cut':
      return leftovers
        ? { ...base, kind: 'cut-tail', message: `${head.message} The newest rows were cut off.` }
        : {
            ...base,
            kind: 'older-copy',
            message: `${head.message} An older copy was put back, or rows ${size + 1} to ${head.size} were cut off without a trace.`,
          };
    case 'rewritten':
      return { ...base, kind: 'rewritten', expected: head.root };
    case 'other-log':
      return { ...base, kind: 'replaced' };
    case 'foreign-key':
      return { ...base, kind: 'foreign-key' };
    case 'malformed':
      return { ...base, kind: 'bad-checkpoint' };
    default:
      return undefined;
  }
}

export function againstVerdict({ status }: Judged): AgainstVerdict {
  if (status === 'consistent') return 'consistent';
  return status === 'cut' || status === 'rewritten' ? 'inconsistent' : 'not comparable';
}

export function countOf(findings: readonly Finding[]): string {
  return findings.length === 1 ? 'One thing is wrong.' : `${findings.length} things are wrong.`;
}

/** Findings for people: one a line, the first ones, and how many there are. */
export function printFindings(findings: readonly Finding[], out: Output): void {
  for (const { kind, record, message } of findings.slice(0, FINDINGS_SHOWN_MAX))
    out.line(`${out.paint('red', kind.padEnd(14))} ${printable(record)}  ${printable(message)}`, 15);
  const more = findings.length - FINDINGS_SHOWN_MAX;
  if (more > 0) out.line(`… and ${more} more; --json prints all of them.`);
}

export function printRanges(ranges: Ranges, size: number, out: Output): void {
  const by = ranges.anchoredBy.map((source) => ANCHOR_NAMES[source]).join(', ');
  const rows = (count: number) => count.toLocaleString('en').padStart(12);
  out.line(`intact through        ${rows(ranges.intactThrough)} of ${size.toLocaleString('en')} audit rows`);
  out.line(`checkpointed through  ${rows(ranges.checkpointedThrough)}`);
  out.line(`anchored through      ${rows(ranges.anchoredThrough)}${by === '' ? '' : `  by ${by}`}`);
  out.line(`unanchored tail       ${rows(ranges.unanchoredTail)}`);
}

export const ANCHOR_NAMES: Readonly<Record<Anchoring, string>> = {
  git: 'git',
  tsr: 'time stamp',
  file: 'a file you keep',
  against: 'the checkpoint you gave',
};
