import type { CertificateView } from '../worker/certificate.ts';
import type { Session, Thought } from '../worker/records.ts';
import type { VerdictView } from '../worker/verdict.ts';
import { anchorState } from './checks.ts';
import { historyList, taskFacts, thoughtFacts } from './detail.ts';
import { type Child, h } from './dom.ts';
import { card, facts, hash, note, number, plural, said, seal, tag, time } from './parts.ts';

const FINDINGS_MAX = 5;

/** A certificate as a person reads it. Of one that is wrong, nothing is shown as proved. */
export function certificateView(view: CertificateView, verdict: VerdictView): HTMLElement {
  const { findings, findingCount } = verdict;
  if (findingCount === 0) return h('div.grid.certificate', parts(view), rests(verdict));
  const count = plural(findingCount, 'finding');
  const left = findingCount - FINDINGS_MAX;
  return h('div.grid.certificate', [
    seal('bad', `This certificate is not valid: ${count}. Nothing in it is proved.`),
    h(
      'ol.findings',
      findings
        .slice(0, FINDINGS_MAX)
        .map(({ kind, record, message }) =>
          h('li', tag(kind, 'bad'), ' ', said(record, 200), h('p', said(message, 2_000))),
        ),
    ),
    left > 0 && note(`${number(left)} more; Checks lists them.`),
    h('details', h('summary', 'What the file says (not proved)'), h('div.grid', parts(view))),
  ]);
}

function parts(view: CertificateView): Child[] {
  const { subject, task, thought, session, steps, reasons, seals, skills } = view;
  return [
    h('section.card.grid', { 'aria-label': 'Subject' }, [
      h('h2.big', `${subject} `, said(task?.title ?? '')),
      task !== undefined && taskFacts(task),
      task !== undefined && task.description !== '' && h('pre', said(task.description)),
      thought !== undefined && h('pre', said(thought.content)),
    ]),
    steps.length > 0 && card('What was done, and by whom', names(), historyList(steps, [])),
    card('The reasons, in order', reasonList(reasons)),
    task !== undefined && session === undefined && card('The gate', gate(view)),
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

/** What the rules asked before the task could be finished, and what met it. */
function gate({ task, steps, reasons, seals }: CertificateView): Child[] {
  const end = steps.findLast(({ to }) => to.toLowerCase() === 'done');
  const refused = steps.filter(({ kind }) => kind === 'failure').length;
  if (end === undefined)
    return [
      h(
        'p',
        'It is not finished. Finishing it needs a thought',
        task?.isProofGrade === true && ', and a sealed session',
        '.',
      ),
    ];
  const last = reasons.findLast(({ position }) => position < end.exit);
  return [
    h('p', 'Finished by ', said(end.actor, 128), ', ', time(end.at), ' (audit row ', String(end.exit), ').'),
    h(
      'p',
      'A task can be finished only after a thought about it',
      last !== undefined && ': here ',
      last?.id,
      '.',
    ),
    task?.isProofGrade === true &&
      h(
        'p',
        'It is proof-grade, so it also needed a sealed session',
        seals[0] !== undefined && ': ',
        seals[0]?.id,
        '.',
      ),
    refused > 0 &&
      h('p', `${plural(refused, 'call')} on it ${refused === 1 ? 'was' : 'were'} refused on the way.`),
  ];
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
