/// <reference lib="dom" />
import type { VerdictView } from '../protocol.ts';
import { type Child, h, number, plural, replace, said, time } from './dom.ts';

type Tone = 'busy' | 'good' | 'partly' | 'bad' | 'idle';

const ICONS: Readonly<Record<Tone, string>> = { busy: '…', good: '✓', partly: '!', bad: '✕', idle: '?' };

/** The first thing anyone sees. It claims what was checked and nothing else. */
export function verdictBanner() {
  const icon = h('div', { class: 'verdict-icon', 'aria-hidden': true });
  const title = h('h1', { class: 'verdict-title' });
  const text = h('div', { class: 'verdict-text' });
  const bar = h('progress', { class: 'verdict-progress', 'aria-label': 'rows checked' });
  const ranges = h('div', { class: 'ranges' });
  const words = h('div', { class: 'verdict-words', role: 'status', 'aria-live': 'polite' }, title, text);
  const element = h('section', { class: 'verdict', 'aria-label': 'Verdict' }, icon, words, bar, ranges);

  function set(tone: Tone, heading: string, ...lines: readonly (Node | string)[]): void {
    element.dataset.tone = tone;
    icon.textContent = ICONS[tone];
    title.textContent = heading;
    replace(text, ...lines.map((line) => h('p', {}, line)));
    bar.hidden = tone !== 'busy';
    ranges.hidden = true;
  }

  return {
    element,
    idle() {
      set(
        'idle',
        'Nothing is open',
        'Give it a bundle or a certificate, and it says how far that can be relied on.',
      );
    },
    progress(done: number, total: number) {
      if (element.dataset.tone !== 'busy') set('busy', 'Checking…', '');
      bar.max = Math.max(1, total);
      bar.value = done;
      const line = total === 0 ? 'Opening it' : `${number(done)} of ${number(total)} audit rows checked`;
      replace(text, h('p', {}, line));
    },
    unreadable(message: string) {
      set('bad', 'This could not be checked', said(message));
    },
    conclude(verdict: VerdictView) {
      const { tone, heading, lines } = conclusion(verdict);
      set(tone, heading, ...lines);
      ranges.hidden = false;
      replace(ranges, ...rangeRows(verdict));
    },
  };
}

interface Conclusion {
  readonly tone: Tone;
  readonly heading: string;
  readonly lines: readonly (Node | string)[];
}

function conclusion(verdict: VerdictView): Conclusion {
  const { findings, rows, checkpointedThrough, isWhole, subject } = verdict;
  const [first] = findings;
  if (first !== undefined)
    return wrong(verdict, first.kind === 'damaged' && rows === 0, said(first.message, 400));
  if (rows === 0)
    return {
      tone: 'partly',
      heading: 'The log is empty',
      lines: ['There is nothing in it that could be checked.'],
    };
  const heading = isWhole ? `Intact through row ${number(verdict.intactThrough)}` : `Intact: ${subject}`;
  if (checkpointedThrough === 0)
    return {
      tone: 'partly',
      heading: 'Intact in itself, but not signed',
      lines: [agreement(verdict), 'Nothing in it is signed: whoever handed it over can have made all of it.'],
    };
  return {
    tone: 'good',
    heading,
    lines: [
      agreement(verdict),
      signedLine(verdict),
      anchorLine(verdict),
      verdict.keys.length === 1
        ? 'The key came with it. Before you rely on it, compare it under Checks with one you got another way.'
        : 'The keys came with it. Before you rely on them, compare them under Checks with those you got another way.',
    ],
  };
}

function wrong(
  { findingCount, intactThrough, size, isWhole }: VerdictView,
  isUnreadable: boolean,
  message: Node,
): Conclusion {
  if (isUnreadable) return { tone: 'bad', heading: 'This could not be checked', lines: [message] };
  const upTo = `Nothing is wrong up to row ${number(intactThrough)} of ${number(size)}. The first finding:`;
  return {
    tone: 'bad',
    heading: `Not intact: ${plural(findingCount, 'finding')}`,
    lines: [isWhole ? upTo : 'The first finding:', message],
  };
}

function agreement({ isWhole, rows, size, subject, replayedThrough, intactThrough }: VerdictView): string {
  if (!isWhole)
    return `${subject} comes with ${plural(rows, 'audit row')}, and each of them is in the log of ${number(size)} rows that the signed head names.`;
  const all = `All ${number(rows)} audit rows and every record they wrote agree with each other.`;
  return replayedThrough === intactThrough
    ? `${all} Every call, run again by the rules, gives what the log says.`
    : `${all} Calls up to row ${number(replayedThrough)}, run again by the rules, give what the log says.`;
}

function signedLine({ keys, checkpointedThrough, intactThrough, isWhole }: VerdictView): string {
  const by = keys.length === 1 ? 'one key' : `${number(keys.length)} keys`;
  return isWhole && checkpointedThrough < intactThrough
    ? `What ${by} signed agrees, and covers the first ${number(checkpointedThrough)}.`
    : `What ${by} signed agrees, and covers all of them.`;
}

/** Never that something is anchored: only that somebody says so, and how far it would reach. */
function anchorLine({ anchors }: VerdictView): string {
  const newest = anchors.at(-1);
  return newest === undefined
    ? 'No anchor comes with it: that the log was not made anew as a whole, only the owner of the key vouches for.'
    : `${anchors.length === 1 ? 'An anchor is' : 'Anchors are'} named for the first ${number(newest.size)} rows. This page has no network and did not look; the summary says how to.`;
}

/** Intact, replayed, checkpointed and anchored, each through a row, as bars of one length. */
function rangeRows(verdict: VerdictView): HTMLElement[] {
  const { size, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough, isWhole } = verdict;
  const rows: HTMLElement[] = [];
  if (isWhole) {
    rows.push(range('Intact through', intactThrough, size, 'intact'));
    rows.push(range('Replayed through', replayedThrough, size, 'intact'));
  }
  rows.push(range('Checkpointed through', checkpointedThrough, size, 'signed', ...signers(verdict)));
  rows.push(
    range(
      'Anchored through',
      anchoredThrough,
      size,
      'signed',
      'this page has no network and looks nothing up',
    ),
  );
  const named = verdict.anchors.at(-1);
  if (named !== undefined)
    rows.push(range('Named by an anchor, not checked here', named.size, size, 'unsigned'));
  return rows;
}

/** Which keys have signed, and when the last row was written that they cover. */
function signers({ keys, heads, checkpointedThrough }: VerdictView): Child[] {
  if (keys.length === 0) return [];
  const at = heads.findLast(({ size, isWrong }) => size === checkpointedThrough && !isWrong)?.at ?? '';
  const ids = keys.map(
    ({ id, through, isVouched }) => `${id} (${number(through)}${isVouched ? '' : ', unvouched'})`,
  );
  return [`by ${ids.join(', ')}`, ...(at === '' ? [] : ['; last covered row ', time(at)])];
}

function range(
  label: string,
  through: number,
  size: number,
  kind: string,
  ...note: readonly Child[]
): HTMLElement {
  const bar = h('span', { class: `range-fill ${kind}` });
  bar.style.setProperty('width', `${size === 0 ? 0 : (100 * through) / size}%`);
  return h(
    'div',
    { class: 'range' },
    h('span', { class: 'range-label' }, label),
    h('span', { class: 'range-bar', 'aria-hidden': true }, bar),
    h('span', { class: 'range-value' }, h('b', {}, number(through)), ` of ${number(size)}`),
    note.length > 0 && h('span', { class: 'range-at' }, ...note),
  );
}
