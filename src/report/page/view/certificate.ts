import type { ToldCertificate } from '../../certificate.ts';
import type { Session, Thought } from '../../records.ts';
import type { VerdictView } from '../worker/verdict.ts';
import { anchorState } from './checks.ts';
import { historyList, taskFacts, thoughtFacts } from './detail.ts';
import { type Child, h } from './dom.ts';
import { card, facts, findingItem, hash, note, number, plural, said, seal, time } from './parts.ts';

const FINDINGS_MAX = 5;

/** A certificate as a person reads it. Of one that is wrong, nothing is shown as proved. */
export function certificateView(view: ToldCertificate, verdict: VerdictView): HTMLElement {
  const { findings, findingCount } = verdict;
  if (findingCount === 0) return h('div.grid.certificate', parts(view), rests(verdict));
  const count = plural(findingCount, 'finding');
  const left = findingCount - FINDINGS_MAX;
  return h('div.grid.certificate', [
    seal('bad', `This certificate is not valid: ${count}. Nothing in it is proved.`),
    h('ol.findings', findings.slice(0, FINDINGS_MAX).map(findingItem)),
    left > 0 && note(`${number(left)} more; Checks lists them.`),
    h('details', h('summary', 'What the file says (not proved)'), h('div.grid', parts(view))),
  ]);
}

function parts(view: ToldCertificate): Child[] {
  const { subject, task, thought, steps, reasons, gate, seals, skills } = view;
  return [
    h('section.card.grid', { 'aria-label': 'Subject' }, [
      h('h2.big', `${subject} `, said(task?.title ?? '')),
      task !== undefined && taskFacts(task),
      task !== undefined && task.description !== '' && h('pre', said(task.description)),
      thought !== undefined && h('pre', said(thought.content)),
    ]),
    steps.length > 0 && card('What was done, and by whom', names(), historyList(steps, [])),
    card('The reasons, in order', reasonList(reasons)),
    gate.length > 0 && card('The gate', ...gate.map((sentence) => h('p', said(sentence)))),
    card('The seal', ...sealParts(seals)),
    skills.length > 0 && card('Skills in force', h('p', said(skills.join(', '), 4_000))),
  ];
}

function names(): HTMLElement {
  return note('Names are what each client called itself; they are not proved. Times are in UTC.');
}

function reasonList(reasons: readonly Thought[]): HTMLElement {
  if (reasons.length === 0) return note('It contains no thought.');
  return h(
    'ol.history',
    reasons.map((thought) =>
      h('li', [
        h('div.row', h('span.verb', { 'data-kind': 'thought' }, said(thought.type, 30)), h('b', thought.id)),
        h('div.text', said(thought.content)),
        h(
          'details',
          h('summary', said(thought.recorded_by, 128), ' · ', time(thought.recorded_at)),
          thoughtFacts(thought),
        ),
      ]),
    ),
  );
}

function sealParts(seals: readonly Session[]): Child[] {
  if (seals.length === 0) return [note('No session is sealed.')];
  return seals.map(({ id, sealed, finalized_at, finalized_by, auditor_id, merkle_root, position }) =>
    facts(
      { session: id, records: number(sealed), auditor: said(auditor_id, 128) },
      { sealed: [time(finalized_at), ' by ', said(finalized_by, 128), ` in audit row ${number(position)}`] },
      { root: hash(merkle_root, 64) },
    ),
  );
}

/** What was checked, under what, and what that does not show. */
function rests({ rows, size, keys, anchors, subject }: VerdictView): HTMLElement {
  const [key] = keys;
  return card(
    'What the proof rests on',
    h('ul.grounds', [
      h(
        'li',
        `${plural(rows, 'audit row')} in this file: each is proved to be under one signed head of ${number(size)} rows, checked in this browser.`,
      ),
      h('li', 'Every text, argument, result and record matches the digests in those rows.'),
      key !== undefined &&
        h(
          'li',
          'The head is signed by the key ',
          h('code', key.id),
          '. The key came with the file: compare it under Checks with the one its owner gave you.',
        ),
      ...anchors.map((anchor) => h('li', anchorState(anchor))),
      anchors.length === 0 &&
        h('li', 'It contains no anchor: only the key’s owner vouches that the log was not recreated.'),
      h(
        'li',
        `It proves that this is in the log, but not that nothing was left out${/^[TA]/.test(subject) ? ' elsewhere' : ''}. A bundle of the whole log proves both.`,
      ),
    ]),
  );
}
