/// <reference lib="dom" />
import {
  type AnchorView,
  CHECKS,
  type CheckView,
  type Comparison,
  type FindingView,
  type HeadView,
  type Verdict,
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
export function checksView(verdict: Verdict, compare: (text: string) => Promise<Comparison>): HTMLElement {
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
    ),
    h('section', { class: 'card' }, h('h2', {}, 'Key'), ...keyParts(verdict), compareBox(compare)),
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
      state === 'unchecked' ? `${word}: ${reason ?? ''}` : `${word} · ${plural(count, unit)}`,
    ),
  );
}

function findings({ findings: all, findingCount }: Verdict): HTMLElement {
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

function findingLine({ kind, record, message }: FindingView): HTMLElement {
  return h(
    'li',
    {},
    h('span', { class: 'wrong-tag' }, kind),
    ' ',
    said(record, 80),
    h('p', {}, said(message, 600)),
  );
}

function keyParts({ key, origin }: Verdict): HTMLElement[] {
  if (key === undefined)
    return [
      h('p', { class: 'note' }, 'The bundle holds no key that could be used: no signature was checked.'),
    ];
  return [
    h(
      'dl',
      {},
      h('dt', {}, 'Log'),
      h('dd', {}, said(origin, 200)),
      h('dt', {}, 'Key id'),
      h('dd', {}, h('code', {}, key.id)),
      h('dt', {}, 'Key'),
      h('dd', {}, h('code', { class: 'break' }, key.text)),
    ),
    h(
      'p',
      { class: 'note' },
      'The key came with the bundle. Compare it with the one its owner gave you another way.',
    ),
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
  const ask = async () => {
    const { state, message } = await compare(input.value);
    answer.hidden = false;
    answer.dataset.tone = { agrees: 'good', disagrees: 'bad', unknown: 'partly' }[state];
    replace(answer, said(message));
  };
  return h(
    'div',
    { class: 'compare' },
    h('label', { for: 'compare' }, 'Hold it against something you kept'),
    input,
    h('button', { type: 'button', on: { click: () => void ask() } }, 'Compare'),
    answer,
  );
}

const SIGNATURES: Readonly<Record<HeadView['signature'], string>> = {
  valid: 'valid',
  unchecked: 'not checked',
  invalid: 'not valid',
};

function heads(all: readonly HeadView[]): HTMLElement {
  if (all.length === 0) return h('p', { class: 'note' }, 'There is none that could be used.');
  return newestFirst(
    'Checkpoints',
    ['Rows', 'Last row covered', 'Root', 'Signature', 'Agrees'],
    all,
    ({ size, at, root, signature, agrees }) => [
      h('td', {}, number(size)),
      h('td', {}, at === '' ? '–' : time(at)),
      h('td', {}, hash(root)),
      h('td', {}, SIGNATURES[signature]),
      h(
        'td',
        { class: agrees === false ? 'error' : '' },
        agrees === undefined ? 'not checked' : agrees ? 'yes' : 'no',
      ),
    ],
  );
}

/** What others may hold. That they do is for whoever reads this to find out. */
function anchors(all: readonly AnchorView[]): HTMLElement {
  if (all.length === 0) return h('p', { class: 'note' }, 'The bundle names none that could be used.');
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
