/// <reference lib="dom" />
import type { SourceRow } from '../../../verify/source.ts';
import { commitAlgorithm, commitPreimage } from '../../../verify/sources/anchor-file.ts';
import type { CarriedAnchor } from '../../../verify/sources/carried.ts';
import type { Verdict } from '../../../verify/verdict.ts';
import type { AnchorView, CheckName, HeadView, VerdictView } from '../protocol.ts';
import { checksOf, type Looked } from './checks.ts';
import { readJson, textOf } from './fields.ts';
import type { Findings } from './findings.ts';
import type { WatchedSource } from './source.ts';

/** What the verifier said, in the form in which the page shows it. */
export async function verdictView(
  verdict: Verdict,
  source: WatchedSource,
  findings: Findings,
  stateRows: number,
): Promise<VerdictView> {
  const { size, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough } = verdict;
  return {
    ...{ size, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough },
    subject: source.subject,
    isWhole: source.whole,
    origin: verdict.origin ?? '',
    rows: source.read.size,
    keys: verdict.checkpointed
      .filter(({ known }) => known)
      .map(({ key, through, vouched }) => ({ id: keyId(key), text: key, through, isVouched: vouched })),
    heads: headsOf(verdict, source.read),
    anchors: await anchorsOf(verdict, source),
    checks: checksOf(lookedAt(verdict, source, stateRows), findings.checks),
    remarks: verdict.remarks,
    findingCount: findings.count,
    findings: findings.first,
  };
}

/** A verifier key is `name+id+key`. */
function keyId(key: string): string {
  return key.split('+')[1] ?? '';
}

const WRONG: ReadonlySet<string> = new Set(['cut', 'rewritten', 'other-log', 'foreign-key', 'malformed']);

/** Each checkpoint once: the newest of a key is often kept as well. */
function headsOf({ judged }: Verdict, rows: ReadonlyMap<number, SourceRow>): HeadView[] {
  const heads = new Map<string, HeadView>();
  for (const { note, where, size, root, key, status } of judged) {
    const at = timeAt(rows, size);
    heads.set(note, { where, size, root, key: keyId(key ?? ''), status, isWrong: WRONG.has(status), at });
  }
  return [...heads.values()].sort((a, b) => a.size - b.size);
}

function timeAt(rows: ReadonlyMap<number, SourceRow>, position: number): string {
  return textOf(readJson(rows.get(position)?.text).at);
}

/** Those that speak of a head the rows agree with. */
async function anchorsOf({ judged }: Verdict, { anchors, read }: WatchedSource): Promise<AnchorView[]> {
  const good = new Set(judged.filter(({ status }) => status === 'consistent').map(({ note }) => note));
  const views = anchors.filter(({ note }) => good.has(note)).map((anchor) => anchorView(anchor, read));
  return (await Promise.all(views)).sort((a, b) => a.size - b.size);
}

async function anchorView(
  { kind, bytes, size, ref = '', time = '' }: CarriedAnchor,
  rows: ReadonlyMap<number, SourceRow>,
): Promise<AnchorView> {
  const commit = kind === 'git' ? await commitId(bytes) : '';
  return { kind, size, at: timeAt(rows, size), commit, ref, claims: time };
}

/** Git names commits by SHA-1, which only the browser has, and not on every page. */
async function commitId(bytes: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined) return '';
  const digest = new Uint8Array(await subtle.digest(commitAlgorithm(bytes), commitPreimage(bytes)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function lookedAt(verdict: Verdict, source: WatchedSource, stateRows: number): Record<CheckName, Looked> {
  const { whole, walked, read, anchors } = source;
  const partly = { reason: 'not every row of the log is here' };
  const { replayedThrough } = verdict;
  const heads = headsOf(verdict, read).length;
  const isReplayed = whole && replayedThrough === verdict.intactThrough;
  return {
    rows: { count: read.size, unit: 'row' },
    chain: whole ? { count: read.size, unit: 'link' } : partly,
    heads: heads === 0 ? { reason: 'nothing here is signed' } : { count: heads, unit: 'checkpoint' },
    payloads: { count: walked?.payloads ?? 0, unit: 'payload' },
    texts: { count: walked?.texts ?? 0, unit: 'text' },
    state: { count: stateRows, unit: 'record' },
    replay: isReplayed
      ? { count: replayedThrough, unit: 'row' }
      : whole
        ? { reason: `rows behind ${replayedThrough} could not be run again` }
        : partly,
    anchors: anchors.length === 0 ? { reason: 'there is none' } : { count: anchors.length, unit: 'anchor' },
    files: { count: 0, unit: '' },
  };
}
