/// <reference lib="dom" />
import type { Verdict } from '../protocol.ts';
import { h, number, plural, replace, said, time } from './dom.ts';

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
      set('idle', 'Nothing is open', 'Give it a bundle, and it says how far the log in it can be relied on.');
    },
    progress(done: number, total: number) {
      if (element.dataset.tone !== 'busy') set('busy', 'Checking…', '');
      bar.max = Math.max(1, total);
      bar.value = done;
      const line =
        total === 0 ? 'Unpacking the bundle' : `${number(done)} of ${number(total)} audit rows hashed`;
      replace(text, h('p', {}, line));
    },
    unreadable(message: string) {
      set('bad', 'This could not be checked', said(message));
    },
    conclude(verdict: Verdict) {
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

function conclusion(verdict: Verdict): Conclusion {
  const { findings, findingCount, intactThrough, size, rows, checkpointedThrough, scope } = verdict;
  const first = findings[0];
  if (first !== undefined)
    return {
      tone: 'bad',
      heading: `Not intact: ${plural(findingCount, 'finding')}`,
      lines: [
        `Nothing is wrong up to row ${number(intactThrough)} of ${number(size)}. The first finding:`,
        said(first.message, 400),
      ],
    };
  const whole =
    scope === 'log'
      ? `All ${number(rows)} audit rows and every record they wrote agree with each other.`
      : `All ${number(rows)} audit rows of ${scope} are in the log of ${number(size)} rows that the checkpoint names.`;
  if (rows === 0)
    return {
      tone: 'partly',
      heading: 'The log is empty',
      lines: ['There is nothing in it that could be checked.'],
    };
  if (checkpointedThrough === 0)
    return {
      tone: 'partly',
      heading: 'Intact in itself, signature not checked',
      lines: [
        whole,
        'This browser has no Ed25519: whether the checkpoints are signed by the key was not checked.',
      ],
    };
  const through = scope === 'log' ? `through row ${number(intactThrough)}` : `: ${scope}`;
  const tail = scope === 'log' ? intactThrough - checkpointedThrough : 0;
  return {
    tone: 'good',
    heading: scope === 'log' ? `Intact ${through}` : `Intact${through}`,
    lines: [
      whole,
      tail === 0
        ? 'A signed checkpoint covers all of them, and it agrees.'
        : `A signed checkpoint covers the first ${number(checkpointedThrough)}, and it agrees; the newest ${plural(tail, 'row')} ${tail === 1 ? 'is' : 'are'} not signed yet.`,
      anchorLine(verdict),
      'The key came with the bundle. Before you rely on it, compare it under Checks with one you got another way.',
    ],
  };
}

/** Never that something is anchored: only that somebody says so, and how far it would reach. */
function anchorLine({ anchors }: Verdict): string {
  const newest = anchors.at(-1);
  return newest === undefined
    ? 'No anchor comes with it: that the log was not made anew as a whole, only the owner of the key vouches for.'
    : `${anchors.length === 1 ? 'An anchor is' : 'Anchors are'} named for the first ${number(newest.size)} rows. This page has no network and did not look; the summary says how to.`;
}

/** Intact through p, checkpointed through q, named by an anchor through r, as bars of one length. */
function rangeRows(verdict: Verdict): HTMLElement[] {
  const { size, intactThrough, checkpointedThrough, unsignedThrough, heads, scope } = verdict;
  const newest = heads.findLast(
    ({ agrees, signature, size: covered }) =>
      agrees === true && signature === 'valid' && covered === checkpointedThrough,
  );
  const rows: HTMLElement[] = [];
  if (scope === 'log') rows.push(range('Intact through', intactThrough, size, 'intact'));
  rows.push(range('Checkpointed through', checkpointedThrough, size, 'signed', newest?.at));
  const named = verdict.anchors.at(-1);
  if (named !== undefined)
    rows.push(range('Named by an anchor, not checked here', named.size, size, 'unsigned'));
  if (unsignedThrough > 0)
    rows.push(range('Under a checkpoint, signature not checked', unsignedThrough, size, 'unsigned'));
  return rows;
}

function range(label: string, through: number, size: number, kind: string, at?: string): HTMLElement {
  const bar = h('span', { class: `range-fill ${kind}` });
  bar.style.setProperty('width', `${size === 0 ? 0 : (100 * through) / size}%`);
  return h(
    'div',
    { class: 'range' },
    h('span', { class: 'range-label' }, label),
    h('span', { class: 'range-bar', 'aria-hidden': true }, bar),
    h('span', { class: 'range-value' }, h('b', {}, number(through)), ` of ${number(size)}`),
    at !== undefined && at !== '' && h('span', { class: 'range-at' }, 'last covered row ', time(at)),
  );
}
