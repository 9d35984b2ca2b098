import { howToCheck } from '../../../verify/sources/anchor-file.ts';
import type { Comparison } from '../worker/compare.ts';
import type { VerdictView } from '../worker/verdict.ts';
import { type Child, h, replace } from './dom.ts';
import { card, facts, findingItem, growing, note, number, plural, said, table, time } from './parts.ts';

export const STATES = { holds: '✓ holds', wrong: '✕ wrong', unchecked: '– not checked' };
const FINDINGS_STEP = 50;
const ANCHORS_MAX = 200;

type Compare = (text: string) => Promise<Comparison>;

/** Everything that was checked, one by one, with what could not be, and the findings. */
export function checksView(verdict: VerdictView, compare: Compare): HTMLElement {
  const remarks = verdict.remarks.map((remark) => note(said(remark, 400)));
  return h('div.grid', [
    card('What was checked here', table('Checks', ['Check', 'State'], verdict.checks.map(checkLine))),
    card(`Findings (${number(verdict.findingCount)})`, findings(verdict), remarks),
    card('Keys', h('div.grid', keyParts(verdict), compareBox(compare))),
    card('Anchors', anchors(verdict.anchors)),
  ]);
}

function checkLine({ name, what, state, looked }: VerdictView['checks'][number]): Child[] {
  const more = typeof looked === 'string' ? `: ${looked}` : looked[1] === '' ? '' : ` · ${plural(...looked)}`;
  return [what, h('span', { 'data-state': state, 'data-check': name }, `${STATES[state]}${more}`)];
}

function findings({ findings: all, findingCount }: VerdictView): Child[] {
  if (all.length === 0) return [note('None.')];
  const left = findingCount - all.length;
  return [
    ...growing(h('ol.findings'), all, FINDINGS_STEP, findingItem),
    left > 0 && note(`${number(left)} more are not listed; "colibri verify" lists all.`),
  ];
}

function keyParts({ keys, origin }: VerdictView): Child[] {
  if (keys.length === 0) return [note('No key has signed what is here.')];
  const lines = keys.map(({ id, key, through, vouched }) => ({
    [`Key ${id}`]: `signed through row ${number(through)}${vouched ? '' : ', joined automatically'}`,
    'Its text': h('code.break', key),
  }));
  return [
    facts({ Log: said(origin ?? '', 200) }, ...lines),
    note('The keys came with it. Compare them with keys that you got from their owner in another way.'),
  ];
}

export function compareBox(compare: Compare): HTMLElement {
  const placeholder = 'Paste a key (name+id+key) or a signed checkpoint you kept';
  const input = h('textarea', { id: 'compare', rows: 4, spellcheck: 'false', placeholder });
  const answer = h('p.seal', { role: 'status', 'aria-live': 'polite', hidden: true });
  const button = h('button', { click: () => void ask() }, 'Compare');
  const ask = async () => {
    button.disabled = true;
    const { tone, message } = await compare(input.value).catch(
      (error): Comparison => ({ tone: 'partly', message: String(error) }),
    );
    button.disabled = false;
    answer.hidden = false;
    answer.dataset.tone = tone;
    replace(answer, said(message));
  };
  return h('div.grid.compare', [
    h('label', { for: 'compare' }, 'Compare with a key or checkpoint you kept'),
    input,
    button,
    answer,
  ]);
}

/** What an anchor is, as far as this page can tell: nobody here knows whether a commit was pushed, or who signed a time stamp. */
export function anchorState({
  kind,
  size,
  time: claimed,
}: Pick<VerdictView['anchors'][number], 'kind' | 'size' | 'time'>): string {
  const of = `the head over ${plural(size, 'row')}`;
  return kind === 'git'
    ? `Prepared: a git commit holds ${of}. It protects you once a remote has it, which this page cannot check.`
    : `Prepared: a time stamp claims that ${of} existed at ${claimed ?? 'a time it does not name'}. It protects you once its authority is checked, which this page cannot do.`;
}

/** What others may hold, the newest first. Whether they do is for the reader to find out. */
function anchors(all: VerdictView['anchors']): Child[] {
  const none =
    'It names no usable anchor. If you kept a checkpoint elsewhere, compare it here: it shows that nothing before it was rewritten.';
  if (all.length === 0) return [note(none)];
  const rows = all
    .slice(-ANCHORS_MAX)
    .reverse()
    .map((anchor) => [
      number(anchor.size),
      anchor.kind === 'git' ? 'git commit' : 'time stamp',
      'prepared',
      time(anchor.time ?? '–'),
      howToCheck(anchor),
    ]);
  const left = all.length - ANCHORS_MAX;
  return [
    table('Anchors', ['Rows', 'Kind', 'State', 'Claims', 'Not checked here; to check it'], rows),
    note(
      'Prepared: this page cannot check whether a remote has a commit, or which authority signed a time stamp.',
    ),
    left > 0 && note(`and ${number(left)} older ones`),
  ];
}
