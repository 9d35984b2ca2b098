/// <reference lib="dom" />
import { STATE_TABLES } from '../../../log/tables.ts';
import type { Finding, FindingKind } from '../../../verify/finding.ts';
import type { SourceRow } from '../../../verify/source.ts';
import { type CarriedAnchor, commitAlgorithm, commitPreimage } from '../../../verify/sources/anchor-file.ts';
import { members } from '../../../verify/sources/forms.ts';
import type { Verdict } from '../../../verify/verdict.ts';
import { textOf } from '../../telling.ts';
import type { Watched } from './open.ts';

/** What the page shows of the verifier's verdict. */
export type VerdictView = Awaited<ReturnType<typeof verdictView>>;
export type CheckView = VerdictView['checks'][number];
export type HeadView = VerdictView['heads'][number];
export type AnchorView = VerdictView['anchors'][number];
export type KeyView = VerdictView['keys'][number];

export async function verdictView(verdict: Verdict, watched: Watched, findings: Findings, stateRows: number) {
  const { size, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough } = verdict;
  const { source, read } = watched;
  const heads = headsOf(verdict, read);
  return {
    ...{ size, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough },
    /** `log`, or what a certificate is about. */
    subject: source.subject,
    isWhole: source.whole,
    origin: verdict.origin ?? '',
    /** Audit rows that are here. */
    rows: read.size,
    keys: verdict.checkpointed
      .filter(({ known }) => known)
      .map(({ key, through, vouched }) => ({ id: keyId(key), text: key, through, isVouched: vouched })),
    heads,
    anchors: await anchorsOf(verdict, source.anchors, read),
    checks: checksOf(lookedAt(verdict, watched, heads.length, stateRows), findings.checks),
    remarks: verdict.remarks,
    findingCount: findings.count,
    /** The first ones. */
    findings: findings.first,
  };
}

/** A verifier key is `name+id+key`. */
function keyId(key: string): string {
  return key.split('+')[1] ?? '';
}

/** What to say of a checkpoint; one of any other status is wrong. */
const AGREES: Readonly<Record<string, string>> = {
  consistent: 'yes',
  unchecked: 'not checked',
  nothing: 'says nothing',
  'given-up': 'no, and the owner accepted it',
};

/** Each checkpoint once, the smallest first: the newest of a key is often kept as well. */
function headsOf({ judged }: Verdict, rows: ReadonlyMap<number, SourceRow>) {
  const heads = new Map(judged.map((head) => [head.note, head]));
  return [...heads.values()]
    .sort((a, b) => a.size - b.size)
    .map(({ size, root, key, status }) => ({
      ...{ size, root, key: keyId(key ?? '') },
      isConsistent: status === 'consistent',
      agrees: AGREES[status] ?? 'no',
      isWrong: !(status in AGREES),
      /** Time of the last row it covers, or nothing. */
      at: timeAt(rows, size),
    }));
}

function timeAt(rows: ReadonlyMap<number, SourceRow>, position: number): string {
  return textOf(members(rows.get(position)?.text).at);
}

/** What others may hold of checkpoints that the rows agree with, the oldest first. The page has no network to look. */
async function anchorsOf(
  { judged }: Verdict,
  anchors: readonly CarriedAnchor[],
  rows: ReadonlyMap<number, SourceRow>,
) {
  const good = new Set(judged.filter(({ status }) => status === 'consistent').map(({ note }) => note));
  const views = anchors
    .filter(({ note }) => good.has(note))
    .sort((a, b) => a.size - b.size)
    .map(async ({ kind, bytes, size, ref = '', time: claims = '' }) => {
      const commit = kind === 'git' ? await commitId(bytes) : '';
      return { kind, size, at: timeAt(rows, size), commit, ref, claims };
    });
  return await Promise.all(views);
}

/** Git names commits by SHA-1, which only the browser has, and not on every page. */
async function commitId(bytes: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined) return '';
  const digest = await subtle.digest(commitAlgorithm(bytes), commitPreimage(bytes));
  return Buffer.from(new Uint8Array(digest)).toString('hex');
}

/** What is checked, in the order it is shown. Every finding is shown under one of them. */
const CHECKS = [
  ['rows', 'Each audit row is as Colibri writes it, in its place, and begins or ends one call'],
  ['chain', 'Every row continues the one before it'],
  ['heads', 'The rows are those that the log’s keys have signed'],
  ['payloads', 'What calls were given and answered is what the rows say'],
  ['texts', 'Every text is the one whose digest the rows hold, or was erased on the record'],
  ['state', 'Tasks, thoughts and sessions are exactly what the log last wrote'],
  ['replay', 'Every call, run again by the rules, gives what the log says'],
  ['anchors', 'Each anchor is whole and names a checkpoint that is here; who holds it is not checked here'],
  ['files', 'Everything that belongs here is here, and nothing else'],
] as const;
type CheckName = (typeof CHECKS)[number][0];

/** How many things a check was carried out on and one of them, or why it was not carried out. */
type Looked = readonly [count: number, unit: string] | string;

/** Nothing counts as held that was not looked at. */
function checksOf(looked: Readonly<Record<CheckName, Looked>>, wrong: ReadonlySet<CheckName>) {
  return CHECKS.map(([name, what]) => {
    const isUnchecked = typeof looked[name] === 'string';
    const state = wrong.has(name) ? 'wrong' : isUnchecked ? 'unchecked' : 'holds';
    return { name, what, state, looked: looked[name] } as const;
  });
}

function lookedAt(
  { replayedThrough, intactThrough }: Verdict,
  { source: { whole, anchors }, walked, read }: Watched,
  heads: number,
  stateRows: number,
): Readonly<Record<CheckName, Looked>> {
  const partly = 'not every row of the log is here';
  const unreplayed = whole ? `rows after ${replayedThrough} could not be run again` : partly;
  return {
    rows: [read.size, 'row'],
    chain: whole ? [read.size, 'link'] : partly,
    heads: heads === 0 ? 'nothing here is signed' : [heads, 'checkpoint'],
    payloads: [walked?.payloads ?? 0, 'payload'],
    texts: [walked?.texts ?? 0, 'text'],
    state: [stateRows, 'record'],
    replay: whole && replayedThrough === intactThrough ? [replayedThrough, 'row'] : unreplayed,
    anchors: anchors.length === 0 ? 'there is none' : [anchors.length, 'anchor'],
    files: [0, ''],
  };
}

const KEPT_MAX = 1_000;

/** What the verifier found, as far as the page shows it: there may be as many findings as rows. */
export class Findings {
  /** The first ones. */
  readonly first: Finding[] = [];
  count = 0;
  /** Positions and records that findings name. */
  readonly positions = new Set<number>();
  readonly records = new Set<string>();
  /** Digests of texts that are gone without having been erased. */
  readonly missingTexts = new Set<string>();
  readonly checks = new Set<CheckName>();

  add(finding: Finding): void {
    const { kind, table, record, position, expected } = finding;
    this.count += 1;
    if (this.first.length < KEPT_MAX) this.first.push(finding);
    if (position !== undefined) this.positions.add(position);
    this.records.add(record);
    this.checks.add(checkOf(finding));
    if (table === 'texts' && kind === 'missing' && expected !== undefined) this.missingTexts.add(expected);
  }
}

const OF_HEADS: ReadonlySet<FindingKind> = new Set<FindingKind>([
  ...(['foreign', 'bad-head', 'cut-tail', 'older-copy', 'rewritten'] as const),
  ...(['replaced', 'foreign-key', 'bad-checkpoint', 'lost-key', 'lost-memory'] as const),
]);

/** The check under which a finding is shown. */
function checkOf({ kind, table }: Finding): CheckName {
  if (kind === 'forbidden' || kind === 'newer-rules') return 'replay';
  if (kind === 'bad-anchor') return 'anchors';
  if (OF_HEADS.has(kind)) return 'heads';
  if (table === 'actions') return kind === 'unlinked' ? 'chain' : 'rows';
  if (table === 'action_payloads') return 'payloads';
  if (table === 'texts') return 'texts';
  return STATE_TABLES.some(({ name }) => name === table) ? 'state' : 'files';
}
