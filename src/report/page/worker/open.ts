import type { Evidence } from '../../../verify/rules/heads.ts';
import type { Verdict } from '../../../verify/verdict.ts';
import { verify } from '../../../verify/verify.ts';
import type { Comparison, Given, Opened } from '../protocol.ts';
import { Findings } from './findings.ts';
import { compareKey, comparisonOf } from './questions.ts';
import { openGiven, WatchedSource } from './source.ts';
import { digestsIn, pairRows, tellCalls } from './story.ts';
import { Texts } from './texts.ts';
import { verdictView } from './verdict.ts';
import { digestsInState, readState, sessionsOf, tasksOf } from './views.ts';

/** Something that was checked: everything that later questions are answered from. */
export interface OpenedSource {
  readonly given: Given;
  readonly source: WatchedSource;
  readonly verdict: Verdict;
  readonly findings: Findings;
  readonly texts: Texts;
}

export type OnProgress = (done: number, total: number) => void;

/** Lets the verifier check what was handed over. */
export async function openSource(given: Given, onProgress: OnProgress): Promise<OpenedSource> {
  const source = new WatchedSource(await openGiven(given));
  const findings = new Findings();
  const verdict = await judge(source, (finding) => findings.add(finding), onProgress);
  return { given, source, verdict, findings, texts: new Texts(source, findings.missingTexts) };
}

async function judge(
  source: WatchedSource,
  report: Parameters<typeof verify>[1]['report'],
  onProgress: OnProgress,
  evidence: readonly Evidence[] = [],
): Promise<Verdict> {
  // Nobody has told this page whom to trust. It says so, and which keys have signed.
  return await verify(source, { report, onProgress, now: Date.now(), keys: { trusted: [] }, evidence });
}

/** All that the page shows of it at once. */
export async function viewsOf({ source, verdict, findings, texts }: OpenedSource): Promise<Opened> {
  const told = pairRows(source.read.values());
  const state = await readState(source, told);
  await texts.load([...told.flatMap(digestsIn), ...digestsInState(state)]);
  const calls = tellCalls(told, texts, findings.positions);
  const shown = { state, texts, calls, rows: source.read, wrong: findings.records };
  const stateRows = [...state.values()].reduce((sum, { size }) => sum + size, 0);
  return {
    verdict: await verdictView(verdict, source, findings, stateRows),
    calls,
    tasks: tasksOf(shown),
    sessions: sessionsOf(shown),
  };
}

const KEY = /^[^\s+]+\+[0-9a-f]{8}\+\S+$/;

/** Holds a key or a checkpoint that somebody kept elsewhere against what was opened. */
export async function compare(
  opened: OpenedSource,
  given: string,
  onProgress: OnProgress,
): Promise<Comparison> {
  const text = given.trim();
  if (KEY.test(text)) return compareKey(opened, text);
  if (!text.includes('\n'))
    return {
      state: 'unknown',
      message: 'This is neither a key (name+id+key) nor a checkpoint of several lines.',
    };
  if (!opened.source.whole)
    return { state: 'unknown', message: 'Only a bundle of the whole log can be compared with a checkpoint.' };
  // The verifier is asked again, with the checkpoint: what it makes of one is not for this page to decide.
  const note: Evidence = { source: 'against', where: 'Your checkpoint', note: `${text}\n` };
  const source = new WatchedSource(await openGiven(opened.given));
  const { judged } = await judge(source, () => undefined, onProgress, [note]);
  const own = judged.find((one) => one.source === 'against');
  return own === undefined ? { state: 'unknown', message: 'Nothing could be compared.' } : comparisonOf(own);
}
