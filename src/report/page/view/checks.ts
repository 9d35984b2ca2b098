/// <reference lib="dom" />
import type { Finding } from '../../../verify/finding.ts';
import {
  type AnchorView,
  CHECKS,
  type CheckView,
  type Comparison,
  type HeadView,
  type KeyView,
  type VerdictView,
} from '../protocol.ts';
import { h, hash, number, plural, replace, said, time } from './dom.ts';

const STATES: Readonly<Record<CheckView['state'], readonly [mark: string, word: string]>> = {
  holds: ['✓', 'holds'],
  wrong: ['✕', 'wrong'],
  unchecked: ['–', 'not checked'],
};
const FINDINGS_STEP = 50;
const HEADS_MAX = 200;

/** Everything that was checked, one by one, with what could not be, and the findings. */
export function checksView(
  verdict: VerdictView,
  compare: (text: string) => Promise<Comparison>,
): HTMLElement {
  return h(
    'div',
    { class: 'checks' },
    h(
      'section',
      { class: 'card' },
      h('h2', {}, 'What was checked here'),
      h('ul', { class: 'check-list' }, ...verdict.checks.map(checkLine)),
    ),
    h(
      'section',
      { class: 'card' },
      h('h2', {}, `Findings (${number(verdict.findingCount)})`),
      findings(verdict),
      ...verdict.remarks.map((remark) => h('p', { class: 'note' }, said(remark, 400))),
    ),
    h('section', { class: 'card' }, h('h2', {}, 'Keys'), ...keyParts(verdict), compareBox(compare)),
    h('section', { class: 'card' }, h('h2', {}, 'Checkpoints'), heads(verdict.heads)),
    h('section', { class: 'card' }, h('h2', {}, 'Anchors'), anchors(verdict.anchors)),
  );
}

function checkLine({ name, state, count, unit, reason }: CheckView): HTMLElement {
  const [mark, word] = STATES[state];
  return h(
    'li',
    { 'data-state': state, 'data-check': name },
    h('span', { class: 'mark', 'aria-hidden': true }, mark),
    h('span', { class: 'check-what' }, CHECKS[name]),
    h(
      'span',
      { class: 'check-state' },
      state === 'unchecked'
        ? `${word}: ${reason ?? ''}`
        : `${word}${unit === '' ? '' : ` · ${plural(count, unit)}`}`,
    ),
  );
}

function findings({ findings: all, findingCount }: VerdictView): HTMLElement {
  if (all.length === 0) return h('p', { class: 'note' }, 'None.');
  const list = h('ol', { class: 'findings' });
  const more = h('button', { type: 'button', class: 'more', on: { click: () => extend() } }, 'Show more');
  let shown = 0;
  function extend(): void {
    for (const finding of all.slice(shown, shown + FINDINGS_STEP)) list.append(findingLine(finding));
    shown += FINDINGS_STEP;
    more.hidden = shown >= all.length;
  }
  extend();
  const left = findingCount - all.length;
  return h(
    'div',
    {},
    list,
    more,
    left > 0 && h('p', { class: 'note' }, `${number(left)} more are not listed; "colibri verify" lists all.`),
  );
}

function findingLine({ kind, record, message }: Finding): HTMLElement {
  return h(
    'li',
    {},
    h('span', { class: 'wrong-tag' }, kind),
    ' ',
    said(record, 200),
    h('p', {}, said(message, 2_000)),
  );
}

function keyParts({ keys, origin }: VerdictView): HTMLElement[] {
  if (keys.length === 0) return [h('p', { class: 'note' }, 'No key has signed what is here.')];
  return [
    h('dl', {}, h('dt', {}, 'Log'), h('dd', {}, said(origin, 200)), ...keys.flatMap(keyLines)),
    h(
      'p',
      { class: 'note' },
      'The keys came with it. Compare them with what their owner gave you another way.',
    ),
  ];
}

function keyLines({ id, text, through, isVouched }: KeyView): HTMLElement[] {
  const reach = `signed through row ${number(through)}${isVouched ? '' : ', joined by itself'}`;
  return [
    h('dt', {}, 'Key ', said(id, 20)),
    h('dd', {}, reach),
    h('dt', {}, 'Its text'),
    h('dd', {}, h('code', { class: 'break' }, text)),
  ];
}

function compareBox(compare: (text: string) => Promise<Comparison>): HTMLElement {
  const input = h('textarea', {
    id: 'compare',
    rows: 4,
    spellcheck: 'false',
    placeholder: 'Paste a key (name+id+key) or a signed checkpoint you kept',
  });
  const answer = h('p', { class: 'seal', role: 'status', 'aria-live': 'polite', hidden: true });
  const button = h('button', { type: 'button', on: { click: () => void ask() } }, 'Compare');
  const ask = async () => {
    button.disabled = true;
    button.textContent = 'Comparing…';
    const { state, message } = await compare(input.value);
    button.disabled = false;
    button.textContent = 'Compare';
    answer.hidden = false;
    answer.dataset.tone = { agrees: 'good', disagrees: 'bad', unknown: 'partly' }[state];
    replace(answer, said(message));
  };
  return h(
    'div',
    { class: 'compare' },
    h('label', { for: 'compare' }, 'Hold it against something you kept'),
    input,
    button,
    answer,
  );
}

const AGREES: Readonly<Record<string, string>> = {
  consistent: 'yes',
  unchecked: 'not checked',
  nothing: 'says nothing',
  'given-up': 'no, and the owner accepted it',
};

function heads(all: readonly HeadView[]): HTMLElement {
  if (all.length === 0) return h('p', { class: 'note' }, 'There is none.');
  return newestFirst(
    'Checkpoints',
    ['Rows', 'Last row covered', 'Root', 'Signed by', 'Agrees'],
    all,
    ({ size, at, root, key, status, isWrong }) => [
      h('td', {}, number(size)),
      h('td', {}, at === '' ? '–' : time(at)),
      h('td', {}, hash(root)),
      h('td', {}, key === '' ? '–' : h('code', {}, key)),
      h('td', { class: isWrong ? 'error' : '' }, AGREES[status] ?? 'no'),
    ],
  );
}

/** What others may hold. That they do is for whoever reads this to find out. */
function anchors(all: readonly AnchorView[]): HTMLElement {
  if (all.length === 0) return h('p', { class: 'note' }, 'It names none that could be used.');
  return newestFirst(
    'Anchors',
    ['Rows', 'Kind', 'Claims', 'Id', 'Looked up'],
    all,
    ({ size, kind, claims, commit }) => [
      h('td', {}, number(size)),
      h('td', {}, kind === 'git' ? 'git commit' : 'time stamp'),
      h('td', {}, claims === '' ? '–' : time(claims)),
      h('td', {}, commit === '' ? '–' : hash(commit)),
      h('td', {}, 'not here'),
    ],
  );
}

function newestFirst<T>(
  label: string,
  names: readonly string[],
  all: readonly T[],
  cells: (one: T) => HTMLElement[],
): HTMLElement {
  const rows = all
    .slice(-HEADS_MAX)
    .reverse()
    .map((one) => h('tr', {}, ...cells(one)));
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': label },
    h(
      'table',
      {},
      h('thead', {}, h('tr', {}, ...names.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, ...rows),
    ),
    all.length > HEADS_MAX &&
      h('p', { class: 'note' }, `and ${number(all.length - HEADS_MAX)} older ones, treated alike`),
  );
}
