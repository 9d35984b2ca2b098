/// <reference lib="dom" />
import type { Call } from '../worker/calls.ts';
import type { CallDetail, RowDetail } from '../worker/questions.ts';
import type { Task } from '../worker/records.ts';
import { type Child, h, type Part, replace } from './dom.ts';
import { facts, hash, note, number, said, seal, time, words } from './parts.ts';

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
    title.textContent = heading;
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
  const { status, status_since, status_by, labels, blocked_reason, description } = task;
  return [
    task.isWrong && seal('bad', 'A finding names this task. See Checks.'),
    h('h2.big', said(task.title)),
    facts({
      Status: [said(words(status), 40), ' since ', time(status_since), ' by ', said(status_by, 80)],
      Project: said(task.project, 80),
      Priority: said(task.priority, 20),
      Assignee: said(task.assignee, 80),
      Progress: `${number(task.progress)} %`,
      Labels: labels.length === 0 ? '–' : said(labels.join(', '), 400),
      Workflow: [said(task.workflow, 40), task.isProofGrade && ', proof-grade'],
      Created: [time(task.created_at), ' by ', said(task.created_by, 80)],
      Blocked: blocked_reason !== '' && said(blocked_reason),
    }),
    description !== '' && h('pre', said(description)),
  ];
}

function callParts({ tool, actor, at, outcome, error, task, text, isWrong }: Call): Child[] {
  return [
    isWrong && seal('bad', 'A finding names this call. See Checks.'),
    facts({
      Tool: h('code', said(tool, 80)),
      Actor: [said(actor, 120), ' (as the client named itself)'],
      At: [time(at), ' UTC'],
      Outcome: [said(outcome, 20), ' ', said(error, 80)],
      Task: task !== '' && task,
    }),
    text !== '' && h('pre', said(text)),
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
