import type { Call, Task, Thought } from '../../records.ts';
import type { CallDetail, RowDetail } from '../worker/detail.ts';
import type { Related, TaskDetail } from '../worker/log.ts';
import { type Child, h, type Part, replace } from './dom.ts';
import { columns, facts, hash, linkTo, note, number, plural, said, seal, tag, time, words } from './parts.ts';

/** A box over the page for one call, thought or task. Escape closes it and the focus goes back, also to what was drawn anew. */
export function detailBox(closed: () => void) {
  const title = h('h2', { id: 'detail-title' });
  const body = h('div.grid.detail-body', { tabindex: 0, role: 'group', 'aria-label': 'Details' });
  const close = () => element.close();
  let openedBy: string | null | undefined;
  const leave = () => {
    closed();
    const now = document.activeElement;
    // In a box that was closed, the focus stays for a moment.
    const isNowhere = now === null || now === document.body || element.contains(now);
    if (openedBy != null && isNowhere)
      document.querySelector<HTMLElement>(`main [data-key="${CSS.escape(openedBy)}"]`)?.focus();
  };
  const element = h('dialog.detail', { 'aria-labelledby': 'detail-title', close: leave }, [
    h('header.row.apart', title, h('button.close', { 'aria-label': 'Close', click: close }, '×')),
    body,
  ]);
  element.addEventListener('click', ({ target }) => {
    if (target === element) close();
  });

  function open(heading: Part, ...parts: readonly Part[]): void {
    replace(title, heading);
    replace(body, ...parts);
    body.scrollTop = 0;
    if (element.open) return;
    openedBy = document.activeElement?.getAttribute('data-key');
    element.showModal();
  }

  return {
    element,
    showTask(detail: TaskDetail, showTrail: () => void) {
      const leave = () => {
        close();
        showTrail();
      };
      const { id } = detail.task;
      open(linkTo(id), taskParts(detail), h('button', { click: leave }, 'Show its trail'));
    },
    showCall({ call, thought, proof, rows }: CallDetail) {
      const heading =
        thought === undefined ? linkTo(`row-${call.position}`, `Call #${call.position}`) : linkTo(thought.id);
      open(heading, callParts(call, thought), proofPart(proof), rows.map(rowPart));
    },
    /** There is no such record, or it cannot be shown. */
    showReason(id: string, reason: string) {
      open(id, seal('partly', said(reason)));
    },
  };
}

function taskParts({ task, related, history, earlier, thoughts }: TaskDetail): Child[] {
  return [
    task.isWrong && seal('bad', 'A finding names this task. See Checks.'),
    h('h2.big', said(task.title)),
    taskFacts(task),
    task.description !== '' && h('pre', said(task.description)),
    related.length > 0 && h('section', h('h3', 'Related tasks'), relatedList(related)),
    h('section', [
      h('h3', 'History'),
      earlier > 0 && note(`${plural(earlier, 'earlier call')} not shown here; the trail has them.`),
      historyList(history, thoughts),
    ]),
  ];
}

/** Everything a task says of itself, the longest texts left out. */
export function taskFacts(task: Task): HTMLElement {
  const { labels, estimate_hours: estimate } = task;
  const since = (at: string, by: string) => [time(at), ' by ', said(by, 128)];
  return facts(
    { status: [said(words(task.status), 40), ' since ', ...since(task.status_since, task.status_by)] },
    columns(task, 'blocked_reason'),
    columns(task, 'held_by', 'held_since', 'last_seen'),
    columns(task, 'project', 'priority', 'type', 'assignee'),
    { estimate: estimate !== '' && `${estimate} h` },
    { progress: `${number(task.progress)} %`, labels: labels.length > 0 && said(labels.join(', '), 400) },
    columns(task, 'workflow'),
    { created: since(task.created_at, task.created_by), updated: since(task.updated_at, task.updated_by) },
    { 'proof-grade': task.isProofGrade && 'yes: it also needs a sealed session' },
  );
}

function relatedList(related: readonly Related[]): HTMLElement {
  return h(
    'ul',
    related.map(({ id, how, title, status }) => {
      const now = status !== '' && tag(words(status));
      return h('li', `${how} `, linkTo(id), ' ', said(title, 120), ' ', now);
    }),
  );
}

/** What happened, the oldest first: who, what, why, and what was refused. */
export function historyList(history: readonly Call[], thoughts: readonly Thought[]): HTMLElement {
  if (history.length === 0) return note('Nothing.');
  const byId = new Map(thoughts.map((thought) => [thought.id, thought]));
  return h(
    'ol.history',
    history.map((call) => {
      const thought = byId.get(call.thought);
      const text = thought === undefined ? call.text : thought.content;
      return h('li', { 'data-kind': call.kind }, [
        h('div.row', [
          call.isWrong && tag('finding', 'bad'),
          h('span.verb', { 'data-kind': call.kind }, said(call.verb, 30)),
          call.error !== '' && h('span.error', said(call.error, 60)),
          linkTo(
            call.thought === '' ? `row-${call.position}` : call.thought,
            call.thought || `#${call.position}`,
          ),
        ]),
        text !== '' && h('div.text', said(text, 2_000)),
        h('div.row.note', time(call.at), said(call.actor, 128)),
      ]);
    }),
  );
}

function callParts(call: Call, thought: Thought | undefined): Child[] {
  return [
    call.isWrong && seal('bad', 'A finding names this call. See Checks.'),
    thought !== undefined && h('pre', said(thought.content)),
    thought !== undefined && thoughtFacts(thought),
    facts(columns(call, 'tool', 'actor', 'at', 'outcome', 'error'), {
      task: call.task !== '' && linkTo(call.task),
    }),
    note('The actor is what the client called itself. Times are in UTC.'),
    thought === undefined && call.text !== '' && h('pre', said(call.text)),
  ];
}

/** What a thought brings along: where it was thought, what was tested, and whose word each is. */
export function thoughtFacts(thought: Thought): HTMLElement {
  const seen = (name: string) =>
    thought.observed.includes(name) ? ' (read from the repository by the server)' : ' (named by the agent)';
  return facts(
    { thought: linkTo(thought.id), task: thought.task !== '' && linkTo(thought.task) },
    columns(thought, 'type'),
    { by: said(thought.recorded_by, 128), recorded: time(thought.recorded_at) },
    { branch: thought.branch !== '' && [said(thought.branch, 256), seen('branch')] },
    { commit: thought.commit_sha !== '' && [h('code.break', thought.commit_sha), seen('commit_sha')] },
    columns(thought, 'tests', 'blockers'),
    { metadata: thought.metadata !== '' && h('code.break', said(thought.metadata)) },
    { session: thought.session !== '' && linkTo(thought.session) },
  );
}

function proofPart(proof: CallDetail['proof']): HTMLElement {
  if (proof === undefined) return seal('partly', 'No signed head here covers it.');
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
