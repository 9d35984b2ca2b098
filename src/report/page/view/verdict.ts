import type { VerdictView } from '../worker/verdict.ts';
import { type Child, h, replace } from './dom.ts';
import { number, plural, said, type Tone } from './parts.ts';

const ICONS: Readonly<Record<Tone, string>> = { busy: '…', good: '✓', partly: '!', bad: '✕', idle: '?' };
const UNREADABLE = 'This could not be checked';

/** How far something reaches. Only what was checked here has the colour of something good. */
export interface Range {
  readonly label: string;
  readonly through: number;
  readonly size: number;
  readonly more?: string;
  readonly isClaim?: boolean;
}

export type Conclusion = readonly [tone: Tone, heading: string, ...lines: readonly Child[]];

/** The first thing anyone sees. It claims what was checked and nothing else. */
export function verdictBanner() {
  const icon = h('div.verdict-icon', { 'aria-hidden': true });
  const title = h('h1.verdict-title');
  const text = h('div');
  const bar = h('progress', { 'aria-label': 'rows checked' });
  const ranges = h('div.grid.columns.ranges');
  const words = h('div', { role: 'status', 'aria-live': 'polite' }, title, text);
  const element = h('section.card.grid.verdict', { 'aria-label': 'Verdict' }, icon, words, bar, ranges);

  let told = '';

  function set([tone, heading, ...lines]: Conclusion, ...rows: readonly Child[]): void {
    element.dataset.tone = tone;
    icon.textContent = ICONS[tone];
    title.textContent = heading;
    replace(text, ...lines.filter((line) => line !== false).map((line) => h('p', line)));
    bar.hidden = tone !== 'busy';
    ranges.hidden = rows.length === 0;
    replace(ranges, rows);
  }

  return {
    element,
    idle() {
      const line = 'Open a bundle or a certificate, and this page shows how far you can rely on it.';
      set(['idle', 'Nothing is open', line]);
    },
    progress(done: number, total: number) {
      const line = total === 0 ? 'Opening it' : `${number(done)} of ${number(total)} audit rows checked`;
      if (element.dataset.tone !== 'busy') set(['busy', 'Checking…']);
      replace(text, h('p', line));
      bar.max = Math.max(1, total);
      bar.value = done;
    },
    unreadable: (message: string) => set(['bad', UNREADABLE, said(message)]),
    conclude: (verdict: VerdictView) =>
      set(conclusion(verdict), ...(isVoid(verdict) ? [] : rangeRows(verdict))),
    /** The same for a log that is followed. Only what differs is drawn, so that a screen reader does not repeat the rest. */
    live(now: Conclusion, bars: readonly Range[]) {
      const said = JSON.stringify(now.map((part) => (part instanceof Node ? part.textContent : part)));
      if (said !== told) set(now, false);
      told = said;
      ranges.hidden = bars.length === 0;
      replace(ranges, bars.map(range));
    },
  };
}

/** A certificate that is not valid proves nothing, so no range of it is shown. */
function isVoid({ whole, findingCount }: VerdictView): boolean {
  return !whole && findingCount > 0;
}

function conclusion(verdict: VerdictView): Conclusion {
  const { findingCount, rows, size, intactThrough, checkpointedThrough, whole, subject } = verdict;
  const [first] = verdict.findings;
  if (first !== undefined) {
    const message = said(first.message, 400);
    if (first.kind === 'damaged' && rows === 0) return ['bad', UNREADABLE, message];
    const upTo = whole ? `Nothing is wrong up to row ${number(intactThrough)} of ${number(size)}. ` : '';
    return ['bad', `Not intact: ${plural(findingCount, 'finding')}`, `${upTo}The first finding:`, message];
  }
  if (rows === 0) return ['partly', 'The log is empty', 'There is nothing in it to check.'];
  if (checkpointedThrough === 0) {
    const unsigned = 'Nothing in it is signed: the person who gave it to you could have made all of it up.';
    return ['partly', 'Consistent, but not signed', agreement(verdict), unsigned];
  }
  const heading = whole ? `Intact through row ${number(intactThrough)}` : `Intact: ${subject}`;
  const [those, them] = verdict.keys.length === 1 ? ['The key', 'it'] : ['The keys', 'them'];
  const keys = `${those} came with it. Before you rely on ${them}, compare ${them} under Checks with what you got from another source.`;
  return ['good', heading, agreement(verdict), signedLine(verdict), anchorLine(verdict), keys];
}

function agreement({ whole, rows, size, subject, replayedThrough, intactThrough }: VerdictView): string {
  if (!whole)
    return `${subject} comes with ${plural(rows, 'audit row')}, and each of them is in the log of ${number(size)} rows that the signed head covers.`;
  const all = `All ${number(rows)} audit rows and every record they wrote agree with each other.`;
  return replayedThrough === intactThrough
    ? `${all} Every call, run again through the rules, gives what the log says.`
    : `${all} Calls up to row ${number(replayedThrough)}, run again through the rules, give what the log says.`;
}

function signedLine({ keys, checkpointedThrough, intactThrough, whole }: VerdictView): string {
  const by = keys.length === 1 ? 'one key' : `${number(keys.length)} keys`;
  const isPart = whole && checkpointedThrough < intactThrough;
  return `The checkpoints signed by ${by} agree with them and cover ${isPart ? `the first ${number(checkpointedThrough)}` : 'all of them'}.`;
}

/** Never that something is anchored: only that somebody says so, and how far it would reach. */
function anchorLine({ anchors }: VerdictView): string {
  const newest = anchors.at(-1);
  return newest === undefined
    ? 'It contains no anchor: only the key’s owner vouches that the whole log was not recreated.'
    : `${anchors.length === 1 ? 'An anchor is' : 'Anchors are'} named for the first ${number(newest.size)} rows. This page uses no network and did not check them; Checks says how to.`;
}

/** Intact, replayed, checkpointed and anchored, each through a row, as bars of one length. */
function rangeRows(verdict: VerdictView): Child[] {
  const { size, whole, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough } = verdict;
  const named = verdict.anchors.at(-1);
  const signers = verdict.keys.map(
    ({ id, through, vouched }) => `${id} (${number(through)}${vouched ? '' : ', unvouched'})`,
  );
  const by = signers.length > 0 ? `by ${signers.join(', ')}` : '';
  const unchecked = 'not checked: this page uses no network';
  return [
    whole && range({ label: 'Intact through', through: intactThrough, size }),
    whole && range({ label: 'Replayed through', through: replayedThrough, size }),
    range({ label: 'Checkpointed through', through: checkpointedThrough, size, more: by }),
    range({ label: 'Anchored through', through: anchoredThrough, size, more: unchecked }),
    named !== undefined &&
      range({ label: 'Named by an anchor, not checked here', through: named.size, size, isClaim: true }),
  ];
}

/** A bar under its name. */
function range({ label, through, size, more = '', isClaim }: Range): HTMLElement {
  const tone = isClaim ? 'idle' : 'good';
  const bar = h('meter', {
    'aria-hidden': true,
    'data-tone': tone,
    max: Math.max(1, size),
    value: through,
  });
  const value = h('span', h('b', number(through)), ` of ${number(size)}`);
  return h('div.grid.range', h('span', label), value, bar, more !== '' && h('small', more));
}
