import type { ServerAnchor, VerdictState } from '../../live/form.ts';
import type { LiveState } from '../worker/live-log.ts';
import { STATES as CHECK_STATES, compareBox } from './checks.ts';
import { type Child, h } from './dom.ts';
import { card, facts, findingItem, note, number, plural, said, table, time } from './parts.ts';
import type { Grounds } from './summary.ts';
import type { Conclusion, Range } from './verdict.ts';
import { redrawing } from './view.ts';

// What the page says of a log that it follows: what it checked itself, and what it only has from the server.

const CODE =
  'The code of this page came from the server that it checks. A dishonest server could send dishonest code, so this page cannot replace a verify.html from a source you trust. To be sure, export a bundle and open it there.';

/** The first thing anyone sees of a live log. */
export function liveConclusion(state: LiveState, isReachable: boolean): Conclusion {
  const { head, rows, alarm, reason, server } = state;
  const checked = checkedHere(state);
  if (alarm !== undefined)
    return ['bad', 'This is not the same log as before', said(alarm, 1_000), checked, CODE];
  if (!isReachable)
    return ['partly', 'The server does not answer', 'This page shows what it sent last.', checked, CODE];
  if (head === undefined)
    return ['partly', 'Nothing can be shown', said(reason ?? 'Nothing is signed.', 1_000), CODE];
  const [first] = server.verdict?.findings ?? [];
  const wrong = server.verdict?.findingCount ?? 0;
  if (first !== undefined)
    return [
      'bad',
      `The server found ${plural(wrong, 'thing')} wrong`,
      said(first.message, 400),
      checked,
      CODE,
    ];
  const unsigned = rows - head.size;
  const more = unsigned > 0 && `${plural(unsigned, 'newer row')} not signed, and not shown.`;
  const isJudged = server.verdict !== undefined && server.failed === undefined;
  return [
    isJudged && unsigned === 0 ? 'good' : 'partly',
    `Live: ${number(head.size)} signed rows`,
    checked,
    more,
    CODE,
  ];
}

function checkedHere({ head, firstSize, heads, proved }: LiveState): string | false {
  if (head === undefined) return false;
  const grown =
    heads > 1 && `; ${number(heads)} heads since row ${number(firstSize)} each extend the previous one`;
  return `Checked in this browser: ${plural(proved, 'row')} sent so far, each proved under a head signed by the key ${head.keyId}${grown || ''}.`;
}

/** The bars of a live log: one that is checked here, the others the server's word with their age. */
export function liveRanges({ head, server }: LiveState): readonly Range[] {
  const { verdict } = server;
  const size = Math.max(head?.size ?? 0, verdict?.size ?? 0);
  const claimed = (name: string, through: number, more = ''): Range => ({
    ...{ label: `${name} through (claimed by the server)`, through, size, more },
    isClaim: true,
  });
  return [
    ...(head === undefined ? [] : [{ label: 'Signed through (checked here)', through: head.size, size }]),
    ...(verdict === undefined
      ? [claimed('Replayed', 0, ageOf(server))]
      : [
          claimed('Intact', verdict.intactThrough),
          claimed('Replayed', verdict.replayedThrough, ageOf(server)),
          claimed('Anchored', verdict.anchoredThrough),
        ]),
  ];
}

/** When the server verified last, and what it does now. */
function ageOf({ verdict, ageMs = 0, running, runningMs = 0, failed }: VerdictState): string {
  const so = running === undefined ? '' : `verifying ${plural(running, 'row')}, for ${ago(runningMs)} so far`;
  const now = so === '' ? '' : ` It is now ${so}.`;
  if (failed !== undefined) return `The server could not verify the log: ${failed.slice(0, 400)}${now}`;
  if (verdict === undefined)
    return so === '' ? 'The server has not verified the log yet.' : `The server is ${so}.`;
  return `Verified ${ago(ageMs)} ago, at ${verdict.checkedAt.slice(11, 19)} UTC.${now}`;
}

function ago(ms: number): string {
  const [seconds, minutes] = [Math.floor(ms / 1_000), Math.floor(ms / 60_000)];
  if (seconds < 60) return plural(seconds, 'second');
  return minutes < 60 ? plural(minutes, 'minute') : plural(Math.floor(minutes / 60), 'hour');
}

export function liveGrounds({ alarm, server }: LiveState): Grounds {
  return {
    isWrong: alarm !== undefined || (server.verdict?.findingCount ?? 0) > 0,
    lines: [
      'This browser checked each task, thought and call it shows: the rows are under the signed head, and the texts match their digests.',
      'For the counts, which tasks are listed, and that nothing is missing or newer, you rely on the server.',
      'The key came with the log. Compare it under Checks with the key you got from its owner.',
      CODE,
    ],
  };
}

/** Everything that is known about the checks, on both sides. */
export function liveChecks(compare: Parameters<typeof compareBox>[0]) {
  const [here, server, keys, anchors] = ['here', 'server', 'keys', 'anchors'].map(() => h('div.grid'));
  if (!here || !server || !keys || !anchors) throw new Error('four parts');
  const draw = {
    here: redrawing(here),
    server: redrawing(server),
    keys: redrawing(keys),
    anchors: redrawing(anchors),
  };
  const element = h('div.grid', [
    card('Checked in this browser', here),
    card('Claimed by the server', server),
    card('Keys', h('div.grid', keys, compareBox(compare))),
    card('Anchors', anchors),
  ]);
  return {
    element,
    update(state: LiveState): void {
      const { head, server: said } = state;
      draw.here([state.proved, state.heads, head, state.alarm], () => hereParts(state));
      draw.server([said.verdict, said.running, said.failed, said.verdict ? 0 : said.runningMs], () =>
        serverParts(said),
      );
      draw.keys(head?.key, () => [keyFacts(state)]);
      draw.anchors(said.verdict?.anchors, () => [anchorTable(said.verdict?.anchors ?? [])]);
    },
  };
}

function hereParts({ proved, heads, head, alarm }: LiveState): Child[] {
  const state = alarm !== undefined ? 'wrong' : proved === 0 ? 'unchecked' : 'holds';
  const held = h('span', { 'data-state': state }, CHECK_STATES[state]);
  const rows = [
    ['Every row sent is under the newest signed head', held, number(proved)],
    ['Every head is signed and extends the previous one', held.cloneNode(true), number(heads)],
    ['Payloads, texts and records match the digests in their rows', held.cloneNode(true), ''],
  ];
  return [
    head === undefined
      ? note('Nothing is signed, so nothing was checked.')
      : table('Checks', ['Check', 'State', 'How many'], rows),
    note(CODE),
  ];
}

function serverParts(state: VerdictState): Child[] {
  const { verdict } = state;
  const intro = note(
    'A full verification reads every row, which this page does not. The server runs “colibri verify”; this is what it says.',
  );
  if (verdict === undefined) return [intro, h('p', ageOf(state))];
  const { findings, findingCount, remarks } = verdict;
  return [
    intro,
    h(
      'p',
      { 'data-age': true },
      `Verified at ${verdict.checkedAt.slice(0, 19).replace('T', ' ')} UTC, ${plural(verdict.size, 'row')}.`,
    ),
    facts({
      'Intact through': number(verdict.intactThrough),
      'Replayed through': number(verdict.replayedThrough),
      'Checkpointed through': number(verdict.checkpointedThrough),
      'Anchored through': number(verdict.anchoredThrough),
    }),
    findingCount === 0 ? note('No findings.') : h('b', plural(findingCount, 'finding')),
    h('ol.findings', findings.map(findingItem)),
    findingCount > findings.length && note('“colibri verify” lists all of them.'),
    ...remarks.slice(0, 20).map((remark) => note(said(remark, 400))),
  ];
}

function keyFacts({ head }: LiveState): HTMLElement {
  if (head === undefined) return note('No key has signed this log.');
  const whose = head.isCreator
    ? 'the key that created the log; the log’s name is derived from it'
    : 'not the key that created the log; the server’s verification says whether it is trusted';
  return facts({ Key: head.keyId, Which: whose, 'Its text': h('code.break', head.key) });
}

const STATES: Readonly<Record<ServerAnchor['state'], string>> = {
  prepared: 'prepared: only on this machine, as far as it knows',
  pushed: 'pushed: a remote is known to have it',
  'time-stamped': 'time-stamped: by an authority that the owner named',
  kept: 'kept in a file',
  wrong: 'wrong: not what it claims to be',
};

function anchorTable(anchors: readonly ServerAnchor[]): HTMLElement {
  if (anchors.length === 0)
    return note(
      'The server says that there is none. An anchor outside this machine shows that nothing before it was rewritten.',
    );
  return h('div', [
    note('As the server sees them; not checked here.'),
    table(
      'Anchors',
      ['Rows', 'State', 'Time', 'Where'],
      anchors.map(({ size, state, time: at, where }) => [
        number(size),
        STATES[state],
        time(at ?? '–'),
        said(where, 300),
      ]),
    ),
  ]);
}
