/// <reference lib="dom" />
import type { Call, CallDetail, RowDetail, Task } from '../protocol.ts';
import { type Child, h, hash, number, replace, said, time, words } from './dom.ts';

/** A box over the page for one call or one task. Escape closes it and the focus goes back. */
export function detailBox() {
  const title = h('h2', { id: 'detail-title' });
  const body = h('div', { class: 'detail-body', tabindex: 0, role: 'group', 'aria-label': 'Details' });
  const close = h(
    'button',
    { type: 'button', class: 'close', 'aria-label': 'Close', on: { click: () => element.close() } },
    '×',
  );
  const element = h(
    'dialog',
    { class: 'detail', 'aria-labelledby': 'detail-title' },
    h('header', {}, title, close),
    body,
  );
  element.addEventListener('click', (event) => {
    if (event.target === element) element.close();
  });

  function open(heading: string, ...parts: readonly Child[]): void {
    title.textContent = heading;
    replace(body, ...parts);
    body.scrollTop = 0;
    if (!element.open) element.showModal();
  }

  return {
    element,
    showTask(task: Task, showTrail: () => void) {
      open(
        task.id,
        ...taskParts(task, () => {
          element.close();
          showTrail();
        }),
      );
    },
    async showCall(call: Call, ask: () => Promise<CallDetail>) {
      const rest = h('div', {}, h('p', { class: 'note' }, 'Reading…'));
      open(`Call #${call.position}`, ...callParts(call), rest);
      const detail = await ask();
      replace(rest, ...detailParts(detail));
    },
  };
}

function taskParts(task: Task, showTrail: () => void): Child[] {
  return [
    task.isWrong &&
      h('p', { class: 'seal', 'data-tone': 'bad' }, 'A finding speaks of this task. See Checks.'),
    h('p', { class: 'big' }, said(task.title)),
    facts([
      [
        'Status',
        [said(words(task.status), 40), ' since ', time(task.statusSince), ' by ', said(task.statusBy, 80)],
      ],
      ['Project', [said(task.project, 80)]],
      ['Priority', [said(task.priority, 20)]],
      ['Assignee', [said(task.assignee, 80)]],
      ['Progress', [`${number(task.progress)} %`]],
      ['Labels', [task.labels.length === 0 ? '–' : said(task.labels.join(', '), 400)]],
      ['Workflow', [said(task.workflow, 40), task.isProofGrade && ', proof-grade']],
      ['Created', [time(task.createdAt), ' by ', said(task.createdBy, 80)]],
      ...(task.blockedReason === '' ? [] : [['Blocked', [said(task.blockedReason)]] as const]),
    ]),
    task.description !== '' && h('pre', { class: 'text' }, said(task.description)),
    h('button', { type: 'button', on: { click: showTrail } }, 'Show its trail'),
  ];
}

function callParts(call: Call): Child[] {
  return [
    call.isWrong &&
      h('p', { class: 'seal', 'data-tone': 'bad' }, 'A finding speaks of this call. See Checks.'),
    facts([
      ['Tool', [h('code', {}, said(call.tool, 80))]],
      ['Actor', [said(call.actor, 120), ' (a claim of the client)']],
      ['At', [time(call.at), ' UTC']],
      [
        'Outcome',
        [said(call.outcome, 20), call.error !== '' && ' ', call.error !== '' && said(call.error, 80)],
      ],
      ...(call.task === '' ? [] : [['Task', [call.task]] as const]),
    ]),
    call.text !== '' && h('pre', { class: 'text' }, said(call.text)),
  ];
}

function detailParts({ rows, proof }: CallDetail): Child[] {
  return [
    proof === undefined
      ? h('p', { class: 'seal', 'data-tone': 'partly' }, 'No signed head that is here covers it.')
      : proof.holds
        ? h(
            'p',
            { class: 'seal', 'data-tone': 'good' },
            `${number(proof.steps)} hashes lead from its last row to the root of the signed head over ${number(proof.size)} rows.`,
          )
        : h(
            'p',
            { class: 'seal', 'data-tone': 'bad' },
            `Its last row does not lead to the root of the signed head over ${number(proof.size)} rows.`,
          ),
    ...rows.map(rowPart),
  ];
}

function rowPart({ position, text, contentHash, payload, texts }: RowDetail): HTMLElement {
  return h(
    'details',
    {},
    h('summary', {}, `Audit row ${number(position)} · `, hash(contentHash)),
    h('p', { class: 'note' }, 'The exact text whose SHA-256 is ', h('code', { class: 'break' }, contentHash)),
    h('pre', { class: 'text' }, said(text)),
    payload !== undefined && h('p', { class: 'note' }, 'What lies beside it'),
    payload !== undefined && h('pre', { class: 'text' }, said(payload)),
    ...texts.flatMap(([field, value]) => [
      h('p', { class: 'note' }, `The text whose digest stands for ${field}`),
      h('pre', { class: 'text' }, said(value)),
    ]),
  );
}

function facts(rows: readonly (readonly [string, readonly Child[]])[]): HTMLElement {
  return h('dl', {}, ...rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, ...value)]));
}
