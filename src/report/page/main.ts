/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import { type Embedded, embeddedBundle, fromDrop, fromFiles } from './given.ts';
import type { Call, Given, Opened, Task } from './protocol.ts';
import { Verifier } from './verifier.ts';
import { boardView } from './view/board.ts';
import { checksView } from './view/checks.ts';
import { detailBox } from './view/detail.ts';
import { h, replace, said } from './view/dom.ts';
import { sessionsView } from './view/sessions.ts';
import { summaryView } from './view/summary.ts';
import { type Tab, tabs } from './view/tabs.ts';
import { trailView } from './view/trail.ts';
import { verdictBanner } from './view/verdict.ts';

const verifier = new Verifier();
const banner = verdictBanner();
const detail = detailBox();
const content = h('div', { class: 'content' });
const name = h('span', { class: 'bundle-name' });

start();

function start(): void {
  const embedded = embeddedBundle();
  document.body.append(header(embedded), h('main', {}, banner.element, content), detail.element);
  acceptDrops();
  if (embedded === undefined) {
    banner.idle();
    replace(content, welcome());
  } else void open({ zip: new Blob([embedded.zip]) }, embedded.name);
}

function welcome(): HTMLElement {
  return h(
    'section',
    { class: 'welcome', 'aria-label': 'How to begin' },
    h('h2', {}, 'Drop a bundle or a certificate anywhere on this page'),
    h(
      'p',
      {},
      'A bundle is the zip or the folder that “colibri export” writes, a certificate the file that “colibri prove” writes. If this file lies in a bundle, choose the folder it lies in.',
    ),
    h(
      'p',
      { class: 'note' },
      'Every row is hashed here, in your browser. The page has no network: nothing you open leaves it.',
    ),
  );
}

function header(embedded: Embedded | undefined): HTMLElement {
  const file = h('input', {
    type: 'file',
    id: 'choose-file',
    accept: '.zip,.json',
    class: 'visually-hidden',
  });
  const folder = h('input', {
    type: 'file',
    id: 'choose-folder',
    webkitdirectory: true,
    class: 'visually-hidden',
  });
  for (const input of [file, folder])
    input.addEventListener('change', async () => {
      const given = await fromFiles(input.files ?? []);
      const [first] = input.files ?? [];
      if (given !== undefined)
        await open(given, first?.webkitRelativePath.split('/')[0] || (first?.name ?? ''));
      input.value = '';
    });
  return h(
    'header',
    { class: 'top' },
    h('div', { class: 'brand' }, h('b', {}, 'Colibri'), name),
    h(
      'div',
      { class: 'actions' },
      file,
      h('label', { class: 'button', for: 'choose-file' }, 'Check a file'),
      folder,
      h('label', { class: 'button', for: 'choose-folder' }, 'Check a folder'),
      embedded !== undefined &&
        h('button', { type: 'button', on: { click: () => save(embedded) } }, 'Save the bundle'),
    ),
  );
}

/** Nothing of what was open before is left on the page while something else is being checked. */
async function open(given: Given, title: string): Promise<void> {
  document.body.dataset.ready = 'false';
  if (detail.element.open) detail.element.close();
  replace(content);
  replace(name, said(title, 120));
  banner.progress(0, 0);
  try {
    const opened = await verifier.open(given, banner.progress);
    show(opened);
    banner.conclude(opened.verdict);
  } catch (error) {
    banner.unreadable(error instanceof Error ? error.message : String(error));
  }
  document.body.dataset.ready = 'true';
}

function show(opened: Opened): void {
  const byPosition = new Map<number, Call>();
  for (const call of opened.calls) for (const at of [call.position, call.exit]) byPosition.set(at, call);
  const openCall = (call: Call) =>
    void detail.showCall(call, () => verifier.detail(call.position, call.exit));
  const openTask = (task: Task) =>
    detail.showTask(task, () => {
      bar.show('trail');
      trail.showTask(task.id);
    });
  const trail = trailView(opened.calls, openCall);
  const openPosition = (position: number) => {
    const call = byPosition.get(position);
    if (call !== undefined) openCall(call);
  };
  const list: Tab[] = [
    { id: 'summary', name: 'Summary', panel: panel(summaryView(opened, openTask)) },
    { id: 'board', name: 'Board', panel: panel(boardView(opened.tasks, openTask)) },
    { id: 'trail', name: 'Trail', panel: panel(trail.element) },
    { id: 'sessions', name: 'Sessions', panel: panel(sessionsView(opened.sessions, openPosition)) },
    {
      id: 'checks',
      name: 'Checks',
      panel: panel(checksView(opened.verdict, (text) => verifier.compare(text))),
    },
  ];
  const bar = tabs(list);
  replace(content, bar.element, ...list.map((tab) => tab.panel));
}

function panel(view: HTMLElement): HTMLElement {
  return h('div', { class: 'panel' }, view);
}

/** Hands out the very bytes that were checked. */
function save({ name: title, zip }: Embedded): void {
  const url = URL.createObjectURL(new Blob([zip], { type: 'application/zip' }));
  h('a', { href: url, download: title }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function acceptDrops(): void {
  const { body } = document;
  body.addEventListener('dragover', (event) => {
    event.preventDefault();
    body.classList.add('dropping');
  });
  body.addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) body.classList.remove('dropping');
  });
  body.addEventListener('drop', async (event) => {
    event.preventDefault();
    body.classList.remove('dropping');
    const transfer = event.dataTransfer;
    if (transfer === null) return;
    const title = transfer.items[0]?.webkitGetAsEntry()?.name ?? 'dropped files';
    const given = await fromDrop(transfer);
    if (given !== undefined) await open(given, title);
  });
}
