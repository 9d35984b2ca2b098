import { type Embedded, embeddedBundle, openDropped, openFiles } from './given.ts';
import { boardView } from './view/board.ts';
import { checksView } from './view/checks.ts';
import { detailBox } from './view/detail.ts';
import { h, replace } from './view/dom.ts';
import { note, said, tabs } from './view/parts.ts';
import { sessionsView } from './view/sessions.ts';
import { summaryView } from './view/summary.ts';
import { trailView } from './view/trail.ts';
import { verdictBanner } from './view/verdict.ts';
import type { Given, Opened } from './worker/open.ts';
import type { Call, Task } from './worker/records.ts';
import type { Answers, Message } from './worker/worker.ts';

/** The source of the worker, put in by the build. */
declare const WORKER_SOURCE: string;

const banner = verdictBanner();
const worker = startWorker();
let queue: Promise<unknown> = Promise.resolve();
const detail = detailBox();
const content = h('div');
const name = h('span.note.bundle-name');

start();

function start(): void {
  const embedded = embeddedBundle();
  document.body.append(header(embedded), h('main.grid', banner.element, content), detail.element);
  acceptDrops();
  if (embedded !== undefined) return void open({ zip: embedded.zip }, embedded.name, embedded);
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
function ask<Name extends keyof Answers>(name: Name, given: Parameters<Answers[Name]>[0]) {
  type Answer = Awaited<ReturnType<Answers[Name]>>;
  const put = (resolve: (answer: Answer) => void, reject: (error: Error) => void) => {
    worker.onerror = (event) => reject(new Error(event.message || 'The verifier stopped.'));
    worker.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.progress !== undefined) banner.progress(...data.progress);
      else if (data.unreadable !== undefined) reject(new Error(data.unreadable));
      else resolve(data.answer as Answer);
    };
    worker.postMessage([name, given]);
  };
  const answer = queue.then(() => new Promise(put));
  queue = answer.catch(() => undefined);
  return answer;
}

function welcome(): HTMLElement {
  return h('section.card.grid', { 'aria-label': 'How to begin' }, [
    h('h2', 'Drop a bundle or a certificate anywhere on this page'),
    h(
      'p',
      'A bundle is the zip or the folder that “colibri export” writes; a certificate is the file that “colibri prove” writes. If this file is in a bundle, choose the folder it is in.',
    ),
    note('Every row is hashed here, in your browser. The page has no network: nothing you open leaves it.'),
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

/** What whoever made the report said about it. */
type Known = Pick<Embedded, 'abandoned' | 'period'>;
const NOTHING: Known = { abandoned: undefined, period: undefined };

/** Of what somebody opens, nobody has said whose holders are gone. */
const openGiven = (given: Given, title: string) => open(given, title);

/** Nothing of what was open before is left on the page while something else is being checked. */
async function open(given: Given, title: string, known: Known = NOTHING): Promise<void> {
  document.body.dataset.ready = 'false';
  if (detail.element.open) detail.element.close();
  replace(content);
  replace(name, said(title, 120));
  banner.progress(0, 0);
  try {
    const opened = await ask('open', given);
    show(opened, known);
    banner.conclude(opened.verdict);
  } catch (error) {
    banner.unreadable(error instanceof Error ? error.message : String(error));
  }
  document.body.dataset.ready = 'true';
}

function show(opened: Opened, { abandoned, period }: Known): void {
  const byPosition = new Map(
    opened.calls.flatMap((call) => [[call.position, call] as const, [call.exit, call] as const]),
  );
  const openCall = (call: Call | undefined) => {
    if (call !== undefined) void detail.showCall(call, ask('detail', [call.position, call.exit]));
  };
  const openTask = (task: Task) =>
    detail.showTask(task, () => {
      bar.show('Trail');
      trail.showTask(task.id);
    });
  const trail = trailView(opened.calls, openCall);
  const bar = tabs({
    Summary: summaryView(opened, openTask, period),
    Board: boardView(opened.tasks, openTask, abandoned),
    Trail: trail.element,
    Sessions: sessionsView(opened.sessions, (position) => openCall(byPosition.get(position))),
    Checks: checksView(opened.verdict, (text) => ask('compare', text)),
  });
  replace(content, bar.elements);
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
