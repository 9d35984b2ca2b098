import { STATE_TABLES } from '../../../log/tables.ts';
import { keyId } from '../../../trust/opening.ts';
import { type Finding, OF_HEADS } from '../../../verify/finding.ts';
import type { Verdict } from '../../../verify/verdict.ts';
import type { Watched } from './open.ts';

/** What the page shows of the verifier's verdict. */
export type VerdictView = ReturnType<typeof verdictView>;

const FINDINGS_MAX = 1_000;

export function verdictView(verdict: Verdict, watched: Watched, stateRows: number) {
  const { findings, source, read } = watched;
  const { judged, checkpointed } = verdict;
  const good = new Set(judged.filter(({ status }) => status === 'consistent').map(({ note }) => note));
  const wrong = new Set(findings.map(checkOf));
  const looked = lookedAt(verdict, watched, stateRows);
  return {
    ...verdict,
    /** `log`, or what a certificate is about. */
    subject: source.subject,
    whole: source.whole,
    /** Audit rows that are here. */
    rows: read.size,
    keys: checkpointed.map((signed) => ({ ...signed, id: keyId(signed.key) })),
    /** What others may hold of checkpoints that the rows agree with, the oldest first. The page has no network to look. */
    anchors: source.anchors.filter(({ note }) => good.has(note)),
    checks: CHECKS.map(([name, what]) => {
      // Nothing counts as held that was not looked at.
      const state = wrong.has(name) ? 'wrong' : typeof looked[name] === 'string' ? 'unchecked' : 'holds';
      return { name, what, state, looked: looked[name] } as const;
    }),
    findingCount: findings.length,
    /** The first ones. */
    findings: findings.slice(0, FINDINGS_MAX),
  };
}

type CheckName = ReturnType<typeof checkOf>;

/** What is checked, in the order it is shown. */
const CHECKS: readonly (readonly [CheckName, what: string])[] = [
  ['rows', 'Each audit row is well formed and in its place, and begins or ends one call'],
  ['chain', 'Every row is linked to the previous one'],
  ['heads', 'The log’s keys have signed exactly these rows'],
  ['payloads', 'Arguments and results match the digests in the rows'],
  ['texts', 'Every text matches its digest, or its erasure is recorded'],
  ['state', 'Tasks, thoughts and sessions are exactly what the log last wrote'],
  ['replay', 'Every call, run again through the rules, gives what the log says'],
  [
    'anchors',
    'Each anchor is complete and names a checkpoint that is here; who has a copy is not checked here',
  ],
  ['files', 'Everything that belongs here is here, and nothing else'],
];

/** How many things each check was carried out on, or why it was not. */
function lookedAt(
  { judged, replayedThrough, intactThrough }: Verdict,
  { source: { whole, anchors }, walked, read }: Watched,
  stateRows: number,
): Readonly<Record<CheckName, readonly [number, string] | string>> {
  const partly = 'not every row of the log is here';
  const unreplayed = whole ? `rows after ${replayedThrough} could not be run again` : partly;
  const isReplayed = whole && replayedThrough === intactThrough;
  // The newest head of a key is often kept as well.
  const heads = new Set(judged.map(({ note }) => note)).size;
  return {
    rows: [read.size, 'row'],
    chain: whole ? [read.size, 'link'] : partly,
    heads: heads === 0 ? 'nothing here is signed' : [heads, 'checkpoint'],
    payloads: [walked?.payloads ?? 0, 'payload'],
    texts: [walked?.texts ?? 0, 'text'],
    state: [stateRows, 'record'],
    replay: isReplayed ? [replayedThrough, 'row'] : unreplayed,
    anchors: anchors.length === 0 ? 'there is none' : [anchors.length, 'anchor'],
    files: [0, ''],
  };
}

/** The check under which a finding is shown. */
function checkOf({ kind, table }: Finding) {
  if (kind === 'forbidden' || kind === 'newer-rules') return 'replay';
  if (kind === 'bad-anchor') return 'anchors';
  if (OF_HEADS.some((one) => one === kind)) return 'heads';
  if (table === 'actions') return kind === 'unlinked' ? 'chain' : 'rows';
  if (table === 'action_payloads') return 'payloads';
  if (table === 'texts') return 'texts';
  return STATE_TABLES.some(({ name }) => name === table) ? 'state' : 'files';
}
