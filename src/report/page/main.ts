import { erasureLine } from '../../verify/verdict.ts';
import { type Embedded, embeddedBundle, isLive, openDropped, openFiles } from './given.ts';
import { boardView } from './view/board.ts';
import { certificateView } from './view/certificate.ts';
import { checksView } from './view/checks.ts';
import { detailBox } from './view/detail.ts';
import { h, replace } from './view/dom.ts';
import { liveChecks, liveConclusion, liveGrounds, liveRanges } from './view/live.ts';
import { note, number, plural, said, tabs } from './view/parts.ts';
import { sessionsView } from './view/sessions.ts';
import { type Grounds, summaryView } from './view/summary.ts';
import { trailView } from './view/trail.ts';
import { verdictBanner } from './view/verdict.ts';
import { filterBar, type View } from './view/view.ts';
import type { Known } from './worker/held-log.ts';
import type { LiveState } from './worker/live-log.ts';
import type { Choices, Log } from './worker/log.ts';
import type { Given } from './worker/open.ts';
import type { VerdictView } from './worker/verdict.ts';
import type { Message, Opened, Questions } from './worker/worker.ts';

/** The source of the worker, put in by the build. */
declare const WORKER_SOURCE: string;

const banner = verdictBanner();
const worker = startWorker();
let queue: Promise<unknown> = Promise.resolve();
let waiting = 0;
const detail = detailBox(leaveRecord);
/** The log that is open, asked through the worker. */
const log = asked();
/** What is shown of it, and how to get to a part of it. */
let shown: Shown | undefined;
const content = h('div');
const name = h('span.note.bundle-name');

start();

function start(): void {
  const embedded = embeddedBundle();
  document.body.append(header(embedded), h('main.grid', banner.element, content), detail.element);
  acceptDrops();
  window.addEventListener('hashchange', () => void followLink());
  if (embedded !== undefined) return void open({ zip: embedded.zip }, embedded.name, embedded);
  if (isLive()) return void follow();
  banner.idle();
  replace(content, welcome());
}

/** The worker hashes. The page's policy lets workers come from nowhere but a text of the page itself. */
function startWorker(): Worker {
  const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: 'text/javascript' }));
  type Policy = { createScriptURL(url: string): string };
  const { trustedTypes } = globalThis as {
    trustedTypes?: { createPolicy(name: string, rules: Policy): Policy };
  };
  const policy = trustedTypes?.createPolicy('colibri-worker', { createScriptURL: (own) => own });
  return new Worker(policy?.createScriptURL(url) ?? url);
}

/** One question at a time: each waits for the answer to the one before. Rejects with a sentence for people. */
function ask<Name extends keyof Questions>(name: Name, ...about: Parameters<Questions[Name]>) {
  type Answer = Awaited<ReturnType<Questions[Name]>>;
  const put = (resolve: (answer: Answer) => void, reject: (error: Error) => void) => {
    worker.onerror = (event) => reject(new Error(event.message || 'The verifier stopped.'));
    worker.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.progress !== undefined) banner.progress(...data.progress);
      else if (data.unreadable !== undefined) reject(new Error(data.unreadable));
      else resolve(data.answer as Answer);
    };
    worker.postMessage([name, ...about]);
  };
  const answer = queue.then(() => new Promise(put));
  waiting += 1;
  content.setAttribute('aria-busy', 'true');
  queue = answer
    .catch(() => undefined)
    .then(() => {
      waiting -= 1;
      if (waiting === 0) content.removeAttribute('aria-busy');
    });
  return answer;
}

/** Every question about a log as a function. */
function asked(): Log {
  return new Proxy({} as Log, {
    get:
      (_, name: keyof Log) =>
      (...about: Parameters<Log[typeof name]>) =>
        ask(name, ...about),
  });
}

function welcome(): HTMLElement {
  return h('section.card.grid', { 'aria-label': 'How to begin' }, [
    h('h2', 'Drop a bundle or a certificate anywhere on this page'),
    h(
      'p',
      'A bundle is the zip or the folder that “colibri export” writes; a certificate is the file that “colibri prove” writes. If this page is part of a bundle, choose the folder that contains it.',
    ),
    note('Every row is hashed here, in your browser. This page uses no network: nothing you open leaves it.'),
  ]);
}

function header(embedded: Embedded | undefined): HTMLElement {
  return h('header.row.apart.top', [
    h('div.row', h('b.brand', 'Colibri'), name),
    h('div.row', [
      chooser('Check a file', { id: 'choose-file', accept: '.zip,.json' }),
      chooser('Check a folder', { id: 'choose-folder', webkitdirectory: true }),
      embedded !== undefined && h('button', { click: () => save(embedded) }, 'Save the bundle'),
    ]),
  ]);
}

function chooser(label: string, props: Readonly<Record<string, string | boolean>>): HTMLElement {
  const input = h('input', { type: 'file', hidden: true, ...props });
  input.addEventListener('change', async () => {
    await openFiles([...(input.files ?? [])], openGiven);
    input.value = '';
  });
  return h('div', input, h('button', { click: () => input.click() }, label));
}

/** Of what somebody opens, nobody has said whose holders are gone. */
const openGiven = (given: Given, title: string) => open(given, title);

/** Nothing of what was open before is left on the page while something else is being checked. */
async function open(given: Given, title: string, known: Known = {}): Promise<void> {
  document.body.dataset.ready = 'false';
  if (detail.element.open) detail.element.close();
  shown = undefined;
  replace(content);
  replace(name, said(title, 120));
  banner.progress(0, 0);
  try {
    const opened = await ask('open', given, { abandoned: known.abandoned, period: known.period });
    shown = await showOpened(opened);
    banner.conclude(opened.verdict);
    await followLink();
  } catch (error) {
    banner.unreadable(messageOf(error));
  }
  document.body.dataset.ready = 'true';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

type Shown = Awaited<ReturnType<typeof show>>;

/** A bundle or a certificate, of which everything is known. */
async function showOpened({ verdict, certificate, choices }: Opened): Promise<Shown> {
  const first: Record<string, HTMLElement> =
    certificate === undefined ? {} : { Certificate: certificateView(certificate, verdict) };
  const checks = checksView(verdict, (text) => log.compare(text));
  return await show({ first, checks, choices, grounds: () => groundsOf(verdict), isLive: false });
}

interface ToShow {
  /** Tabs before the others. */
  readonly first: Readonly<Record<string, HTMLElement>>;
  readonly checks: HTMLElement;
  readonly choices: Choices;
  readonly grounds: () => Grounds;
  readonly isLive: boolean;
}

async function show({ first, checks, choices, grounds, isLive: live }: ToShow) {
  const sessions = sessionsView(log, goTo);
  const views: Record<string, View> = {
    Summary: summaryView(log, grounds, goTo),
    Board: boardView(log, goTo),
    Trail: trailView(log, goTo, live),
    Sessions: sessions,
  };
  const bar = filterBar(choices, () => void changed());
  const problem = h('p.seal', { 'data-tone': 'bad', role: 'alert', hidden: true });
  const arrived = h(
    'button',
    { hidden: true, click: () => void changed() },
    'New rows have arrived: show them',
  );
  const fresh = new Set<string>();
  let current = '';
  const draw = async (isNews = false) => {
    const view = views[current];
    bar.element.hidden = view === undefined;
    if (view === undefined || fresh.has(current)) return;
    fresh.add(current);
    try {
      const { waits = false } = await view.refresh(bar.value(), isNews);
      arrived.hidden = !waits;
      problem.hidden = true;
    } catch (error) {
      problem.hidden = false;
      replace(problem, said(messageOf(error), 1_000));
    }
  };
  const changed = async (isNews = false) => {
    fresh.clear();
    await draw(isNews);
  };
  const elements = {
    ...first,
    ...Object.fromEntries(Object.entries(views).map(([tab, { element }]) => [tab, element])),
    Checks: checks,
  };
  let drawing = Promise.resolve();
  const choose = (tab: string) => {
    current = tab;
    problem.hidden = true;
    arrived.hidden = true;
    drawing = draw();
  };
  const all = tabs(elements, choose);
  const [list, ...panels] = all.elements;
  replace(content, list, bar.element, problem, arrived, panels);
  await drawing;
  return {
    showTab: (tab: string) => all.show(tab),
    tabs: Object.keys(elements),
    search(text: string) {
      all.show('Trail');
      bar.search(text);
    },
    showSession(id: string) {
      sessions.choose(id);
      fresh.delete('Sessions');
      all.show('Sessions');
    },
    /** Rows have arrived. */
    async grow() {
      bar.offer(await log.choices());
      await changed(true);
    },
  };
}

/** How often the server is asked whether there is something new, and how often views are drawn again for it. */
const POLL_MS = 1_000;
const POLL_MS_UNREACHED = 5_000;
const DRAW_MS = 2_000;

/** Follows the log behind the server that sent this page, for as long as nothing else is opened. */
async function follow(): Promise<void> {
  document.body.dataset.ready = 'false';
  banner.progress(0, 0);
  replace(name, 'live');
  let state: LiveState;
  try {
    state = await ask('follow', new URL('.', location.href).href);
  } catch (error) {
    return banner.unreadable(messageOf(error));
  }
  const checks = liveChecks((text) => log.compare(text));
  const tell = (isReachable: boolean) => {
    banner.live(liveConclusion(state, isReachable), liveRanges(state));
    checks.update(state);
  };
  tell(true);
  const choices = await log.choices().catch((): Choices => ({ projects: [], agents: [] }));
  const own = await show({
    first: {},
    checks: checks.element,
    choices,
    grounds: () => liveGrounds(state),
    isLive: true,
  });
  shown = own;
  state = await ask('poll').catch(() => state);
  tell(true);
  await followLink();
  document.body.dataset.ready = 'true';
  let drawn = { at: performance.now(), size: state.head?.size ?? 0, counted: -1 };
  for (let wait = POLL_MS; shown === own; ) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (document.hidden || shown !== own) continue;
    try {
      state = await ask('poll');
      wait = POLL_MS;
      tell(true);
    } catch {
      wait = POLL_MS_UNREACHED;
      tell(false);
      continue;
    }
    const {
      head: { size } = { size: 0 },
      server: { counted = 0 },
    } = state;
    // What the server counts comes later than the rows: of a long log, minutes later.
    const isNews = size !== drawn.size || counted !== drawn.counted;
    if (!isNews || performance.now() - drawn.at < DRAW_MS) continue;
    drawn = { at: performance.now(), size, counted };
    await own.grow().catch(() => undefined);
  }
}

/** Shows a record, a session or a tab: the address then leads there, and can be sent to somebody. */
function goTo(id: string): void {
  const target = `#/${encodeURIComponent(id)}`;
  if (location.hash === target) void followLink();
  else location.hash = target;
}

async function followLink(): Promise<void> {
  if (shown === undefined) return;
  const { hash } = location;
  const id = linkedId(hash);
  const tab = shown.tabs.find((one) => one.toLowerCase() === id.toLowerCase());
  if (tab !== undefined) return shown.showTab(tab);
  if (/^A-\d{4,15}$/.test(id)) {
    if (detail.element.open) detail.element.close();
    return shown.showSession(id);
  }
  if (/^(?:[TΘ]-\d{4,15}|row-\d{1,15})$/u.test(id)) await showRecord(id, hash);
}

/** The id in the address. Anybody may have written it. */
function linkedId(hash: string): string {
  try {
    const id = decodeURIComponent(hash.replace(/^#\/?/, ''));
    return /^[taθ]-/u.test(id) ? id.toUpperCase() : id;
  } catch {
    return '';
  }
}

async function showRecord(id: string, hash: string): Promise<void> {
  const none = `${id} is not here.`;
  try {
    if (id.startsWith('T-')) {
      const task = await log.task(id);
      if (location.hash !== hash) return;
      if (task === undefined) detail.showReason(id, none);
      else detail.showTask(task, () => shown?.search(id));
      return;
    }
    const call = await log.call(id.replace('row-', '#'));
    if (location.hash !== hash) return;
    if (call === undefined) detail.showReason(id, none);
    else detail.showCall(call);
  } catch (error) {
    detail.showReason(id, messageOf(error));
  }
}

/** The box was closed: the address names it no longer. */
function leaveRecord(): void {
  if (/^(?:[TΘ]-|row-)/u.test(linkedId(location.hash)))
    history.replaceState(null, '', `${location.pathname}${location.search}`);
}

/** What the verdict stands on and what it does not, in sentences. */
function groundsOf({ keys, rows, size, remarks, findingCount, erased }: VerdictView): Grounds {
  return {
    isWrong: findingCount > 0,
    lines: [
      `${plural(rows, 'audit row')} of ${number(size)} checked in this browser, by the rules of “colibri verify”.`,
      ...keys.map(({ id }) => [
        'The key ',
        h('code.hash', id),
        ' came with it. This shows that one key signed the log, but not whose key it is. Compare it under Checks.',
      ]),
      ...erased.map((erasure) => said(erasureLine(erasure), 400)),
      ...remarks.map((remark) => said(remark, 400)),
      'Someone who forges the data can also forge the page that comes with it. To be sure, check the bundle with a verify.html or a Colibri from a source you trust.',
    ],
  };
}

/** Hands out the very bytes that were checked. */
function save({ name: download, zip }: Embedded): void {
  const href = URL.createObjectURL(zip);
  h('a', { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

function acceptDrops(): void {
  const { body } = document;
  body.addEventListener('dragover', (event) => event.preventDefault());
  body.addEventListener('drop', async (event) => {
    event.preventDefault();
    if (event.dataTransfer !== null) await openDropped(event.dataTransfer, openGiven);
  });
}
