/// <reference lib="dom" />
import { verifyInclusion } from '../../../integrity/proof-verifier.ts';
import { leafHash } from '../../../integrity/tree.ts';
import type { Session } from '../protocol.ts';
import { type Child, h, hash, number, plural, replace, said, time } from './dom.ts';
import { treePicture } from './tree-picture.ts';
import { proofSteps, type TreeNode, treeOf } from './tree-shape.ts';

const LEAVES_SHOWN = 16;

/** Each session with its tree. Clicking a leaf lights its way to the root and computes it anew. */
export function sessionsView(
  sessions: readonly Session[],
  openPosition: (position: number) => void,
): HTMLElement {
  if (sessions.length === 0)
    return h(
      'p',
      { class: 'note' },
      'There are no sessions. An auditor opens one with audit_session_start and seals it with merkle_finalize.',
    );
  const detail = h('div', { class: 'session' });
  const choice = h('select', { id: 'session-choice' });
  sessions.forEach((session, i) => {
    const state = session.status === 'finalized' ? 'sealed' : 'open';
    choice.append(
      h(
        'option',
        { value: i },
        `${session.id} · ${session.task} · ${state} · ${plural(session.leaves.length, 'record')}`,
      ),
    );
  });
  const draw = () => {
    const session = sessions[Number(choice.value)];
    if (session !== undefined) replace(detail, ...sessionParts(session, openPosition));
  };
  choice.addEventListener('change', draw);
  // The one with most to see first.
  const sealed = sessions.findIndex(({ status, leaves }) => status === 'finalized' && leaves.length > 1);
  choice.value = String(Math.max(0, sealed));
  draw();
  return h(
    'div',
    { class: 'sessions' },
    h('div', { class: 'filters' }, h('label', { for: 'session-choice' }, h('span', {}, 'Session'), choice)),
    detail,
  );
}

function sessionParts(session: Session, openPosition: (position: number) => void): HTMLElement[] {
  const isPart = session.status === 'finalized' && session.leaves.length < session.sealed;
  // A tree over some of the records would be another tree.
  const root = isPart ? undefined : treeOf(session.leaves.map(({ hash: recordHash }) => recordHash));
  return [
    h('section', { class: 'card facts' }, sealState(session, root), facts(session, root)),
    root === undefined
      ? h('p', { class: 'note' }, isPart ? 'Not all of its records are here.' : 'It has no records.')
      : treeParts(session, root, openPosition),
  ];
}

function sealState(session: Session, root: TreeNode | undefined): HTMLElement {
  const { status, position, isWrong, leaves, sealed } = session;
  const say = (tone: string, text: string) => h('p', { class: 'seal', 'data-tone': tone }, text);
  if (isWrong) return say('bad', 'A finding speaks of this session. See Checks.');
  if (status !== 'finalized')
    return say('partly', 'Open: nothing is sealed yet; the root is the one so far.');
  if (leaves.length < sealed)
    return say(
      'partly',
      `Sealed by audit row ${number(position)}; ${number(leaves.length)} of its ${plural(sealed, 'record')} are here.`,
    );
  return root?.hash === session.root
    ? say('good', `The seal holds: audit row ${number(position)} names this very root.`)
    : say('bad', 'The seal does not fit the records that are here. See Checks.');
}

function facts(session: Session, root: TreeNode | undefined): HTMLElement {
  const rows: readonly (readonly [string, readonly Child[]])[] = [
    ['Task', [session.task]],
    ['Auditor', [said(session.auditor, 120)]],
    ['Reason', [session.reason === '' ? '–' : said(session.reason, 1_000)]],
    ['Scope', [said(session.scope, 20)]],
    ['Started', [time(session.startedAt), ' by ', said(session.startedBy, 60)]],
    ['Sealed', [session.finalizedAt === '' ? 'not yet' : time(session.finalizedAt)]],
    ['Records', [number(session.leaves.length)]],
    ['Root', [root === undefined && session.root === '' ? '–' : hash(root?.hash ?? session.root, 64)]],
  ];
  return h('dl', {}, ...rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, ...value)]));
}

function treeParts(session: Session, root: TreeNode, openPosition: (position: number) => void): HTMLElement {
  const { leaves } = session;
  const picture = h('div', { class: 'tree-holder' });
  const records = h('ol', { class: 'records' });
  const proof = h('section', { class: 'card proof', 'aria-live': 'polite' });
  const place = h('span', {});
  const back = h('button', { type: 'button', on: { click: () => show(from - LEAVES_SHOWN) } }, '← Earlier');
  const on = h('button', { type: 'button', on: { click: () => show(from + LEAVES_SHOWN) } }, 'Later →');
  let from = 0;
  let chosen = 0;
  let light: (index: number) => void = () => undefined;

  function show(start: number): void {
    from = Math.max(0, Math.min(start, leaves.length - 1));
    const to = Math.min(leaves.length, from + LEAVES_SHOWN);
    const drawn = treePicture(root, leaves, { from, to }, choose);
    light = drawn.light;
    replace(picture, drawn.element);
    place.textContent = `Leaves ${number(from + 1)} to ${number(to)} of ${number(leaves.length)}`;
    back.disabled = from === 0;
    on.disabled = to === leaves.length;
    replace(records, ...leaves.slice(from, to).map((_, i) => record(from + i)));
    records.setAttribute('start', String(from + 1));
    choose(chosen >= from && chosen < to ? chosen : from);
  }

  function record(index: number): HTMLElement {
    const leaf = leaves[index];
    return h(
      'li',
      {},
      h(
        'button',
        { type: 'button', class: 'line', 'data-leaf': index, on: { click: () => choose(index) } },
        h('span', { class: 'id' }, leaf?.record ?? ''),
        h('span', { class: 'clip' }, said((leaf?.label ?? '').replace(/\s+/g, ' '), 160)),
      ),
    );
  }

  function choose(index: number): void {
    chosen = index;
    light(index);
    for (const button of records.querySelectorAll('[data-leaf]'))
      button.setAttribute('aria-pressed', String(button.getAttribute('data-leaf') === String(index)));
    replace(proof, ...proofParts(session, root, index, openPosition));
  }

  show(0);
  return h(
    'div',
    { class: 'tree' },
    h(
      'p',
      { class: 'legend' },
      h('span', { class: 'key path' }, 'the way to the root'),
      h('span', { class: 'key sibling' }, 'what the proof must bring along'),
      h('span', { class: 'key folded' }, 'leaves not drawn'),
    ),
    picture,
    h('div', { class: 'pager' }, back, place, on),
    h(
      'div',
      { class: 'columns' },
      h('section', { class: 'card' }, h('h2', {}, 'Records in order'), records),
      proof,
    ),
  );
}

function proofParts(
  session: Session,
  root: TreeNode,
  index: number,
  openPosition: (position: number) => void,
): Child[] {
  const leaf = session.leaves[index];
  if (leaf === undefined) return [];
  const steps = proofSteps(root, index);
  return [
    h('h2', {}, `Proof of ${leaf.record}`),
    h('p', { class: 'note' }, `Record hash `, hash(leaf.hash, 24)),
    h('p', { class: 'note' }, 'Leaf ', hash(leafHash(leaf.hash), 24)),
    h(
      'ol',
      { class: 'steps' },
      ...steps.map(({ sibling, side, parent }) =>
        h(
          'li',
          {},
          `with ${side} `,
          h('span', { class: 'sibling' }, hash(sibling.hash)),
          ' gives ',
          h('span', { class: 'path' }, hash(parent.hash)),
        ),
      ),
    ),
    outcome(
      session,
      root,
      index,
      leaf.hash,
      steps.map(({ sibling }) => sibling.hash),
    ),
    leaf.position > 0 &&
      h('button', { type: 'button', on: { click: () => openPosition(leaf.position) } }, 'Show the call'),
  ];
}

/** Says only what this very computation showed. */
function outcome(
  session: Session,
  root: TreeNode,
  index: number,
  recordHash: string,
  proof: readonly string[],
): HTMLElement {
  const sealed = session.status === 'finalized';
  const claimed = sealed ? session.root : root.hash;
  try {
    verifyInclusion({
      index,
      size: session.leaves.length,
      leafHash: leafHash(recordHash),
      root: claimed,
      proof,
    });
  } catch {
    return h('p', { class: 'seal', 'data-tone': 'bad' }, 'This does not lead to the sealed root.');
  }
  return sealed
    ? h(
        'p',
        { class: 'seal', 'data-tone': 'good' },
        `${plural(proof.length, 'step')} lead to the root in the session’s seal.`,
      )
    : h(
        'p',
        { class: 'seal', 'data-tone': 'partly' },
        'This leads to the root so far; the session is not sealed.',
      );
}
