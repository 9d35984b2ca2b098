import { verifyInclusion } from '../../../integrity/proof-verifier.ts';
import { leafHash } from '../../../integrity/tree.ts';
import { EVERYTHING, SESSIONS_PAGE } from '../../filter.ts';
import type { Session } from '../../records.ts';
import type { Log, SessionLine } from '../worker/log.ts';
import { type Child, h, replace } from './dom.ts';
import { card, columns, facts, field, hash, lineButton, note, number, plural, seal } from './parts.ts';
import { proofOf, type TreeNode, treeOf, treePicture } from './tree.ts';
import { redrawing, type View } from './view.ts';

const LEAVES_SHOWN = 16;

/** Opens the call of an audit row. */
type OpenPosition = (position: number) => void;

/** Each session with its tree. Clicking a leaf lights its path to the root and computes the root again. */
export function sessionsView(log: Pick<Log, 'sessions' | 'session'>, openId: (id: string) => void) {
  const detail = h('div.grid');
  const select = h('select', { id: 'session-choice', change: () => void draw() });
  const place = h('span.note', { role: 'status', 'aria-live': 'polite' });
  const newer = h('button', { click: () => void turn(-SESSIONS_PAGE) }, '← Newer');
  const older = h('button', { click: () => void turn(SESSIONS_PAGE) }, 'Older →');
  const chooser = h('div.row.filters', field('Session', select), newer, older, place);
  const none = note(
    'There are no sessions. An agent opens one with audit_session_start and seals it with merkle_finalize.',
  );
  const redrawList = redrawing(select);
  const redrawDetail = redrawing(detail);
  let [from, filter, wanted] = [0, EVERYTHING, ''];

  async function list(): Promise<void> {
    const { sessions, total } = await log.sessions(filter, from);
    none.hidden = total > 0;
    chooser.hidden = total === 0;
    newer.disabled = from === 0;
    older.disabled = from + sessions.length >= total;
    replace(
      place,
      `${number(from + Math.min(1, total))} to ${number(from + sessions.length)} of ${number(total)}`,
    );
    const before = wanted || select.value;
    const here = sessions.some(({ id }) => id === before);
    redrawList([before, here, sessions], () => [
      ...(before !== '' && !here ? [h('option', { value: before }, before)] : []),
      ...sessions.map(sessionOption),
    ]);
    // The one with most to see first.
    const [first] = [...sessions.filter(({ isSealed, sealed }) => isSealed && sealed > 1), ...sessions];
    select.value = before || (first?.id ?? '');
    wanted = '';
    await draw();
  }

  async function draw(): Promise<void> {
    const id = select.value;
    const session = id === '' ? undefined : await log.session(id);
    if (select.value !== id) return;
    redrawDetail(session ?? id, () =>
      session === undefined
        ? [id !== '' && note(`There is no session ${id} here.`)]
        : sessionParts(session, (position) => openId(`row-${position}`)),
    );
  }

  async function turn(by: number): Promise<void> {
    from = Math.max(0, from + by);
    select.value = '';
    await list();
  }

  const view: View = {
    element: h('div', none, chooser, detail),
    async refresh(now) {
      if (JSON.stringify(now) !== JSON.stringify(filter)) from = 0;
      filter = now;
      await list();
      return {};
    },
  };
  return {
    ...view,
    /** The session that is shown next. */
    choose(id: string): void {
      wanted = id;
    },
  };
}

function sessionOption({ id, task, isSealed, sealed }: SessionLine): HTMLElement {
  const state = isSealed ? `sealed · ${plural(sealed, 'record')}` : 'open';
  return h('option', { value: id }, `${id} · ${task} · ${state}`);
}

function sessionParts(session: Session, openPosition: OpenPosition): Child[] {
  const { leaves, isSealed, sealed } = session;
  const isPart = isSealed && leaves.length < sealed;
  // A tree over some of the records would be another tree.
  const root = isPart || leaves.length === 0 ? undefined : treeOf(leaves.map((leaf) => leaf.hash));
  const rootHash = root?.hash ?? session.merkle_root;
  return [
    h('section.card', [
      sealState(session, root),
      facts(
        columns(session, 'task', 'auditor_id', 'reason', 'scope', 'started_at', 'started_by', 'finalized_at'),
        { records: number(leaves.length), root: rootHash !== '' && hash(rootHash, 64) },
      ),
    ]),
    root === undefined
      ? note(isPart ? 'Not all of its records are here.' : 'It has no records.')
      : treeParts(session, root, openPosition),
  ];
}

function sealState(session: Session, root: TreeNode | undefined): HTMLElement {
  const { isSealed, isWrong, isDoubtful, leaves, sealed } = session;
  const row = `audit row ${number(session.position)}`;
  if (isWrong) return seal('bad', 'A finding names this session. See Checks.');
  if (!isSealed) return seal('partly', 'Open: nothing is sealed yet. This is the root so far.');
  if (leaves.length < sealed)
    return seal(
      'partly',
      `Sealed by ${row}; ${number(leaves.length)} of its ${plural(sealed, 'record')} are here.`,
    );
  if (root?.hash !== session.merkle_root)
    return seal('bad', 'The seal does not match the records that are here. See Checks.');
  return isDoubtful
    ? seal('partly', 'The root matches the records, but other findings may concern the seal. See Checks.')
    : seal('good', `The seal is valid: ${row} names this root.`);
}

function treeParts(session: Session, root: TreeNode, openPosition: OpenPosition): HTMLElement {
  const { leaves } = session;
  const picture = h('div');
  const records = h('ol.records');
  const proof = h('section.card.grid.proof', { 'aria-live': 'polite' });
  const place = h('span');
  const back = h('button', { click: () => show(from - LEAVES_SHOWN) }, '← Earlier');
  const on = h('button', { click: () => show(from + LEAVES_SHOWN) }, 'Later →');
  let from = 0;
  let light: (index: number) => void = () => undefined;

  function show(start: number): void {
    from = start;
    const to = Math.min(leaves.length, from + LEAVES_SHOWN);
    const shown = leaves.slice(from, to);
    const drawn = treePicture(root, leaves, { from, to }, choose);
    light = drawn.light;
    replace(picture, drawn.element);
    place.textContent = `Leaves ${number(from + 1)} to ${number(to)} of ${number(leaves.length)}`;
    back.disabled = from === 0;
    on.disabled = to === leaves.length;
    const lines = shown.map(({ record, label }, i) =>
      h('li', lineButton(record, label, { click: () => choose(from + i) })),
    );
    replace(records, { start: from + 1 }, lines);
    choose(from);
  }

  function choose(index: number): void {
    light(index);
    records.querySelectorAll('button').forEach((button, i) => {
      button.setAttribute('aria-pressed', String(from + i === index));
    });
    replace(proof, proofParts(session, root, index, openPosition));
  }

  show(0);
  return h('div.grid', [
    note('Filled: the path to the root. Dashed edge: a hash in the proof. Dashed box: leaves not drawn.'),
    picture,
    h('div.row.apart.note.pager', back, place, on),
    h('div.grid.columns', card('Records in order', records), proof),
  ]);
}

function proofParts(session: Session, root: TreeNode, index: number, openPosition: OpenPosition): Child[] {
  const leaf = session.leaves[index];
  if (leaf === undefined) return [];
  const { record, position } = leaf;
  const proof = proofOf(root, index).map(({ hash }) => hash);
  return [
    h('h2', `Proof of ${record}`),
    facts({ Record: hash(leaf.hash, 24), Leaf: hash(leafHash(leaf.hash), 24) }),
    h('ol', ...proof.map((sibling) => h('li', 'with ', h('span.sibling', hash(sibling, 24))))),
    outcome(session, root, index, proof),
    position > 0 && h('button', { click: () => openPosition(position) }, 'Show the call'),
  ];
}

/** Says only what this very computation showed. */
function outcome(session: Session, root: TreeNode, index: number, proof: readonly string[]): HTMLElement {
  const { leaves, isSealed } = session;
  const claim = { index, size: leaves.length, root: isSealed ? session.merkle_root : root.hash, proof };
  try {
    verifyInclusion({ ...claim, leafHash: leafHash(leaves[index]?.hash ?? '') });
  } catch {
    return seal('bad', 'This does not lead to the sealed root.');
  }
  return isSealed
    ? seal('good', `${plural(proof.length, 'step')} lead to the root in the session’s seal.`)
    : seal('partly', 'This leads to the root so far; the session is not sealed.');
}
