import { STATE_TABLES } from '../../../log/tables.ts';
import type { Finding, FindingKind } from '../../../verify/finding.ts';
import type { Verdict } from '../../../verify/verdict.ts';
import type { Watched } from './open.ts';

/** What the page shows of the verifier's verdict. */
export type VerdictView = ReturnType<typeof verdictView>;

export function verdictView(verdict: Verdict, watched: Watched, findings: Findings, stateRows: number) {
  const { subject, whole, anchors } = watched.source;
  const good = new Set(
    verdict.judged.filter(({ status }) => status === 'consistent').map(({ note }) => note),
  );
  // The newest head of a key is often kept as well.
  const heads = new Set(verdict.judged.map(({ note }) => note)).size;
  return {
    ...verdict,
    /** `log`, or what a certificate is about. */
    subject,
    whole,
    /** Audit rows that are here. */
    rows: watched.read.size,
    keys: verdict.checkpointed
      .filter(({ known }) => known)
      .map((signed) => ({ ...signed, id: keyId(signed.key) })),
    /** What others may hold of checkpoints that the rows agree with, the oldest first. The page has no network to look. */
    anchors: anchors.filter(({ note }) => good.has(note)),
    checks: checksOf(verdict, watched, heads, stateRows, findings.checks),
    findingCount: findings.count,
    /** The first ones. */
    findings: findings.first,
  };
}

/** A verifier key is `name+id+key`. */
function keyId(key: string): string {
  return key.split('+')[1] ?? '';
}

/** What is checked, in the order it is shown, and how many things it was carried out on or why it was not. */
function checksOf(
  { replayedThrough, intactThrough }: Verdict,
  { source: { whole, anchors }, walked, read }: Watched,
  heads: number,
  stateRows: number,
  wrong: ReadonlySet<CheckName>,
) {
  const partly = 'not every row of the log is here';
  const unreplayed = whole ? `rows after ${replayedThrough} could not be run again` : partly;
  const isReplayed = whole && replayedThrough === intactThrough;
  const checks: readonly (readonly [CheckName, what: string, looked: readonly [number, string] | string])[] =
    [
      ['rows', 'Each audit row has its form and place, and begins or ends one call', [read.size, 'row']],
      ['chain', 'Every row continues the one before it', whole ? [read.size, 'link'] : partly],
      [
        'heads',
        'The rows are those that the log’s keys have signed',
        heads === 0 ? 'nothing here is signed' : [heads, 'checkpoint'],
      ],
      [
        'payloads',
        'What calls were given and answered is what the rows say',
        [walked?.payloads ?? 0, 'payload'],
      ],
      ['texts', 'Every text fits its digest, or was erased on the record', [walked?.texts ?? 0, 'text']],
      ['state', 'Tasks, thoughts and sessions are exactly what the log last wrote', [stateRows, 'record']],
      [
        'replay',
        'Every call, run again by the rules, gives what the log says',
        isReplayed ? [replayedThrough, 'row'] : unreplayed,
      ],
      [
        'anchors',
        'Each anchor is whole and names a checkpoint that is here; who holds it is not checked here',
        anchors.length === 0 ? 'there is none' : [anchors.length, 'anchor'],
      ],
      ['files', 'Everything that belongs here is here, and nothing else', [0, '']],
    ];
  return checks.map(([name, what, looked]) => {
    // Nothing counts as held that was not looked at.
    const state = wrong.has(name) ? 'wrong' : typeof looked === 'string' ? 'unchecked' : 'holds';
    return { name, what, state, looked } as const;
  });
}

type CheckName = ReturnType<typeof checkOf>;

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
function checkOf({ kind, table }: Finding) {
  if (kind === 'forbidden' || kind === 'newer-rules') return 'replay';
  if (kind === 'bad-anchor') return 'anchors';
  if (OF_HEADS.has(kind)) return 'heads';
  if (table === 'actions') return kind === 'unlinked' ? 'chain' : 'rows';
  if (table === 'action_payloads') return 'payloads';
  if (table === 'texts') return 'texts';
  return STATE_TABLES.some(({ name }) => name === table) ? 'state' : 'files';
}
