import { sha256Hex } from '../integrity/digest.ts';
import { ProofError, verifyInclusion } from '../integrity/proof-verifier.ts';
import { leafHash } from '../integrity/tree.ts';
import { auditRow, type Finding, type Report } from './finding.ts';
import {
  claimedSize,
  type Evidence,
  type HeadsVerdict,
  judgeHeads,
  type Keyring,
  newestHead,
} from './rules/heads.ts';
import { DamagedSource, type Source, type SourceHead, type SourceNote, type SourceRow } from './source.ts';
import { rangesOf, type Verdict } from './verdict.ts';
import { Walk } from './walk.ts';

export interface VerifyOptions {
  /** Called for each finding as it is made. */
  readonly report: Report;
  /** Rows read so far and rows there are. */
  readonly onProgress?: (done: number, total: number) => void;
  /** The verifier's clock, in milliseconds. */
  readonly now: number;
  readonly keys: Keyring;
  /** Heads that are kept elsewhere. */
  readonly evidence?: readonly Evidence[];
  /** Called between slices, so that others get their turn. */
  readonly pause?: () => Promise<void>;
}

/**
 * Reads a log from wherever it lies and names everything that is wrong with it. The only verifier: the same rules over
 * every source give the same findings and ranges. It changes nothing.
 */
export async function verify(source: Source, options: VerifyOptions): Promise<Verdict> {
  const counted = new Counted(options.report);
  const { report } = counted;
  const origin = await guarded(report, undefined, () => source.origin());
  const heads: readonly SourceHead[] = await guarded(report, [], () => source.heads());
  const kept: readonly SourceNote[] = await guarded(report, [], () => source.kept());
  const evidence = options.evidence ?? [];
  const notes = [
    ...heads.map((head) => head.checkpoint),
    ...kept.map(({ note }) => note),
    ...evidence.map(({ note }) => note),
  ];
  const walk = new Walk(source, report, notes.map(claimedSize));
  const proofs = new Proofs(source, heads, report);

  await walkRows(source, walk, proofs, options, report);
  await guarded(report, undefined, () => walk.end(options.now));
  const size = source.whole ? walk.links.position : proofs.size;
  const log = {
    whole: source.whole,
    origin,
    size,
    marks: walk.links.marks,
    firstBreak: walk.links.firstBreak,
    acts: walk.acts,
  };
  const judged = judgeHeads(heads, kept, evidence, options.keys, log, report);
  await guarded(report, undefined, () => source.checkRest(walk.walked(counted.records), report));
  return verdictOf(source, walk, proofs, judged, counted, origin, size);
}

async function walkRows(
  source: Source,
  walk: Walk,
  proofs: Proofs,
  options: VerifyOptions,
  report: Report,
): Promise<void> {
  const total = await guarded(report, 0, () => source.count());
  try {
    for await (const page of source.rows()) {
      await walk.page(page);
      proofs.check(page);
      options.onProgress?.(walk.links.rows, total);
      await options.pause?.();
    }
  } catch (error) {
    if (!(error instanceof DamagedSource)) throw error;
    const position = walk.links.position + 1;
    walk.breakOff();
    report({ ...damageOf(error), position });
  }
}

function verdictOf(
  source: Source,
  walk: Walk,
  proofs: Proofs,
  heads: HeadsVerdict,
  counted: Counted,
  origin: string | undefined,
  size: number,
): Verdict {
  const { firstBad, findings } = counted;
  const { checkpointed, judged, remarks } = heads;
  const { firstUnreplayed } = walk;
  return {
    origin,
    size,
    root: source.whole ? walk.links.root() : proofs.root,
    ...rangesOf({ whole: source.whole, size, firstBad, firstUnreplayed, checkpointed, judged }),
    checkpointed,
    findings,
    erased: walk.texts.erased,
    judged,
    remarks,
  };
}

/** Counts what is reported and keeps the first position that is spoken of. */
class Counted {
  findings = 0;
  firstBad = Number.POSITIVE_INFINITY;
  readonly records = new Set<string>();
  readonly report: Report;

  constructor(report: Report) {
    this.report = (finding) => {
      this.findings += 1;
      if (finding.position !== undefined) this.firstBad = Math.min(this.firstBad, finding.position);
      this.records.add(finding.record);
      report(finding);
    };
  }
}

/** In a source that is not whole, each row is proved to be under its newest head. */
class Proofs {
  readonly size: number;
  readonly root: string;
  readonly #isNeeded: boolean;
  readonly #report: Report;

  constructor(source: Source, heads: readonly SourceHead[], report: Report) {
    const head = newestHead(heads);
    this.size = head?.size ?? 0;
    this.root = head?.root ?? '';
    this.#isNeeded = !source.whole && heads.length > 0;
    this.#report = report;
  }

  check(page: readonly SourceRow[]): void {
    if (this.#isNeeded) for (const row of page) this.#checkOne(row);
  }

  #checkOne({ position, text, proof }: SourceRow): void {
    const { size, root } = this;
    try {
      if (text === undefined || proof === undefined) throw new ProofError('there is none');
      verifyInclusion({ index: position - 1, size, root, proof, leafHash: leafHash(sha256Hex(text)) });
    } catch (error) {
      if (!(error instanceof ProofError)) throw error;
      const message = `Nothing proves that audit row ${position} is in the log of ${size} rows: ${error.message}.`;
      this.#report({ kind: 'unlinked', table: 'actions', record: auditRow(position), position, message });
    }
  }
}

/** Runs one part. What cannot be read is a finding. */
async function guarded<T>(report: Report, otherwise: T, part: () => Promise<T>): Promise<T> {
  try {
    return await part();
  } catch (error) {
    if (!(error instanceof DamagedSource)) throw error;
    report(damageOf(error));
    return otherwise;
  }
}

function damageOf({ table, message }: DamagedSource): Finding {
  return {
    kind: 'damaged',
    table,
    record: table,
    message: `A part of it is damaged and ${table} cannot be read: ${message}.`,
  };
}
