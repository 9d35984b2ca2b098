import type { Judged } from './rules/heads.ts';
import type { Erasure } from './rules/texts.ts';

/** What a verification comes to. Every range is counted in audit rows: through row n, n included. */
export interface Verdict {
  /** The name the log gives itself; undefined where nothing was ever signed. */
  readonly origin: string | undefined;
  /** Audit rows there are, as far as they were read; of a source that is not whole, those under its newest head. */
  readonly size: number;
  /** RFC 6962 root over their content hashes. */
  readonly root: string;
  /** No finding speaks of a position up to here. 0 for a source that is not whole. */
  readonly intactThrough: number;
  /** Up to here every call was run again and gave what the log says. 0 for a source that is not whole. */
  readonly replayedThrough: number;
  /** How far the consistent heads of each key reach. */
  readonly checkpointed: readonly Checkpointed[];
  /** As far as a known key's consistent head reaches. */
  readonly checkpointedThrough: number;
  /** As far as a consistent head that is kept elsewhere reaches, and where. */
  readonly anchoredThrough: number;
  readonly anchoredBy: readonly Anchoring[];
  /** Intact rows behind that. Normal for the newest ones. */
  readonly unanchoredTail: number;
  readonly findings: number;
  /** What the owner has erased, in the order in which that was done. */
  readonly erased: readonly Erasure[];
  readonly judged: readonly Judged[];
  /** Things worth knowing that are not wrong. */
  readonly remarks: readonly string[];
}

export interface Checkpointed {
  readonly key: string;
  readonly through: number;
  /** False for a machine's key that joined by itself and that nobody has vouched for. */
  readonly vouched: boolean;
}

/** What was erased, by whom and why, in a sentence. All of it is a stranger's. */
export function erasureLine({ record, by, at, because, texts }: Erasure): string {
  const count = `${texts.length} ${texts.length === 1 ? 'text' : 'texts'}`;
  return `${record} was erased by ${by} at ${at} (${count}) because: ${because ?? '[missing]'}`;
}

const ANCHORS = ['git', 'tsr', 'file', 'against'] as const;
export type Anchoring = (typeof ANCHORS)[number];

/** The one definition of ranges. `firstBad` is the first position that a finding names, `firstUnreplayed` that could not be replayed. */
export function rangesOf(
  walked: { whole: boolean; size: number; firstBad: number; firstUnreplayed: number },
  { checkpointed, judged }: Pick<Verdict, 'checkpointed' | 'judged'>,
) {
  const { whole, size } = walked;
  const intactThrough = whole ? Math.min(size, walked.firstBad - 1) : 0;
  const reach = whole ? intactThrough : size;
  const consistent = judged.filter(({ status }) => status === 'consistent');
  const anchors = consistent.filter(({ source }) => ANCHORS.some((kind) => kind === source));
  const anchoredThrough = Math.min(reach, largest(anchors.map((anchor) => anchor.size)));
  return {
    intactThrough,
    replayedThrough: whole ? Math.min(intactThrough, walked.firstUnreplayed - 1) : 0,
    checkpointedThrough: Math.min(reach, largest(checkpointed.map(({ through }) => through))),
    anchoredThrough,
    anchoredBy: ANCHORS.filter((kind) => anchors.some(({ source }) => source === kind)),
    unanchoredTail: reach - anchoredThrough,
  };
}

function largest(sizes: readonly number[]): number {
  return sizes.reduce((most, size) => Math.max(most, size), 0);
}
