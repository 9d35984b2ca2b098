import type { Call, Task } from '../worker/records.ts';
import type { CallDetail, RowDetail } from '../worker/worker.ts';
import { type Child, h, type Part, replace } from './dom.ts';
import { columns, facts, hash, note, number, said, seal } from './parts.ts';

/** A box over the page for one call or one task. Escape closes it and the focus goes back. */
export function detailBox() {
  const title = h('h2', { id: 'detail-title' });
  const body = h('div.grid.detail-body', { tabindex: 0, role: 'group', 'aria-label': 'Details' });
  const close = () => element.close();
  const element = h('dialog.detail', { 'aria-labelledby': 'detail-title' }, [
    h('header.row.apart', title, h('button.close', { 'aria-label': 'Close', click: close }, '×')),
    body,
  ]);
  element.addEventListener('click', ({ target }) => {
    if (target === element) close();
  });

  function open(heading: string, ...parts: readonly Part[]): void {
    replace(title, heading);
    replace(body, ...parts);
    body.scrollTop = 0;
    if (!element.open) element.showModal();
  }

  return {
    element,
    showTask(task: Task, showTrail: () => void) {
      const leave = () => {
        close();
        showTrail();
      };
      open(task.id, taskParts(task), h('button', { click: leave }, 'Show its trail'));
    },
    async showCall(call: Call, detail: Promise<CallDetail>) {
      const rest = h('div', note('Reading…'));
      open(`Call #${call.position}`, callParts(call), rest);
      const { proof, rows } = await detail;
      replace(rest, proofPart(proof), rows.map(rowPart));
    },
  };
}

function taskParts(task: Task): Child[] {
  const { labels, description } = task;
  return [
    task.isWrong && seal('bad', 'A finding names this task. See Checks.'),
    h('h2.big', said(task.title)),
    facts(
      columns(task, 'status', 'status_since', 'status_by', 'blocked_reason'),
      columns(task, 'held_by', 'held_since', 'last_seen'),
      columns(task, 'project', 'priority', 'assignee'),
      { progress: `${number(task.progress)} %`, labels: labels.length > 0 && said(labels.join(', '), 400) },
      columns(task, 'workflow', 'created_at', 'created_by'),
      { 'proof-grade': task.isProofGrade && 'yes' },
    ),
    description !== '' && h('pre', said(description)),
  ];
}

function callParts(call: Call): Child[] {
  return [
    call.isWrong && seal('bad', 'A finding names this call. See Checks.'),
    facts(columns(call, 'tool', 'actor', 'at', 'outcome', 'error', 'task')),
    note('The actor is what the client said of itself. Times are UTC.'),
    call.text !== '' && h('pre', said(call.text)),
  ];
}

function proofPart(proof: CallDetail['proof']): HTMLElement {
  if (proof === undefined) return seal('partly', 'No signed head that is here covers it.');
  const head = `the root of the signed head over ${number(proof.size)} rows.`;
  return proof.holds
    ? seal('good', `${number(proof.steps)} hashes lead from its last row to ${head}`)
    : seal('bad', `Its last row does not lead to ${head}`);
}

function rowPart({ position, text, contentHash, payload, texts }: RowDetail): HTMLElement {
  const summary = h('summary', `Audit row ${number(position)} · `, hash(contentHash));
  const parts = [
    note('The exact text whose SHA-256 is ', h('code.break', contentHash)),
    h('pre', said(text)),
    ...(payload === undefined ? [] : [note('Attached data'), h('pre', said(payload))]),
    ...texts.flatMap(([field, value]) => [
      note(`The text whose digest is in ${field}`),
      h('pre', said(value)),
    ]),
  ];
  return h('details', summary, h('div.grid', parts));
}
