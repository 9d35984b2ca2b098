import { sha256Hex } from '../integrity/digest.ts';
import { ProofError, verifyInclusion } from '../integrity/proof-verifier.ts';
import type { VerifierKey } from '../integrity/signed-note.ts';
import { leafHash } from '../integrity/tree.ts';
import { headIn } from '../trust/opening.ts';
import { type Report, rowFinding } from './finding.ts';
import { type Evidence, judgeHeads, newestHead } from './rules/heads.ts';
import {
  damageOf,
  guarded,
  type Source,
  type SourceHead,
  type SourceNote,
  type SourceRow,
} from './source.ts';
import { rangesOf, type Verdict } from './verdict.ts';
import { Walk } from './walk.ts';

export interface VerifyOptions {
  /** Called for each finding as it is made. */
  readonly report: Report;
  /** Rows read so far, and rows that the newest head says there are. */
  readonly onProgress?: (done: number, total: number) => void;
  /** The verifier's clock, in milliseconds. */
  readonly now: number;
  /** The keys that the reader decided to trust. */
  readonly keys: { readonly trusted: readonly VerifierKey[] };
  /** Heads that are kept elsewhere. */
  readonly evidence?: readonly Evidence[];
  /** Called between slices, so that others get their turn. */
  readonly pause?: () => Promise<void>;
}

/**
 * Reads a log from wherever it is and names everything that is wrong with it. The only verifier: the same rules over
 * every source give the same findings and ranges. It changes nothing.
 */
export async function verify(source: Source, options: VerifyOptions): Promise<Verdict> {
  let [findings, firstBad] = [0, Number.POSITIVE_INFINITY];
  const records = new Set<string>();
  const report: Report = (finding) => {
    findings += 1;
    firstBad = Math.min(firstBad, finding.position ?? firstBad);
    records.add(finding.record);
    options.report(finding);
  };
  const origin = await guarded(report, undefined, () => source.origin());
  let heads: readonly SourceHead[] = await guarded(report, [], () => source.heads());
  let kept = await guarded<readonly SourceNote[] | undefined>(report, undefined, () => source.kept());
  const { evidence = [], keys } = options;
  // What they claim is not believed yet: it is where the walk computes a root.
  const sizes = () =>
    [...heads, ...(kept ?? []), ...evidence].flatMap(({ note }) => headIn(note)?.size ?? []);
  const walk = new Walk(source, report, sizes());
  const { whole } = source;
  // In a source that is not whole, each row is proved to be under its newest head.
  const head = whole || heads.length === 0 ? undefined : (newestHead(heads) ?? { size: 0, root: '' });

  const total = whole ? (newestHead(heads)?.size ?? 0) : 0;
  const walkRows = async () => {
    for await (const page of source.rows()) {
      await walk.page(page);
      if (head !== undefined) for (const row of page) checkProof(row, head, report);
      options.onProgress?.(walk.links.rows, total && Math.max(walk.links.rows, total));
      await options.pause?.();
    }
  };
  try {
    await walkRows();
    if (source.catchUp !== undefined) {
      await source.catchUp();
      [heads, kept] = [await source.heads(), await source.kept()];
      walk.links.want(sizes());
      await walkRows();
    }
  } catch (error) {
    const finding = { ...damageOf(error), position: walk.links.position + 1 };
    walk.breakOff();
    report(finding);
  }
  await guarded(report, undefined, () => walk.end(options.now));
  const { links, acts, transfer, firstUnreplayed, texts } = walk;
  const size = whole ? links.position : (head?.size ?? 0);
  const { isShared } = source;
  const log = {
    whole,
    origin,
    size,
    marks: links.marks,
    firstBreak: links.firstBreak,
    acts,
    filings: kept && walk.filings,
    transfer,
    isShared,
  };
  const judged = judgeHeads(heads, kept ?? [], evidence, keys.trusted, log, report);
  await guarded(report, undefined, () => source.checkRest(walk.walked(records), report));
  return {
    origin,
    size,
    root: whole ? links.root() : (head?.root ?? ''),
    ...rangesOf({ whole, size, firstBad, firstUnreplayed }, judged),
    ...judged,
    findings,
    erased: texts.erased,
  };
}

function checkProof(
  { position, text, proof }: SourceRow,
  { size, root }: { readonly size: number; readonly root: string },
  report: Report,
): void {
  try {
    if (text === undefined || proof === undefined) throw new ProofError('there is none');
    verifyInclusion({ index: position - 1, size, root, proof, leafHash: leafHash(sha256Hex(text)) });
  } catch (error) {
    if (!(error instanceof ProofError)) throw error;
    const message = `Nothing proves that audit row ${position} is in the log of ${size} rows: ${error.message}.`;
    report(rowFinding('unlinked', position, message));
  }
}
