import { systemClock } from '../clock.ts';
import type { TaskRow } from '../domains/facts.ts';
import { type Looker, viewHolder } from '../domains/tasks/holders.ts';
import { ARROWS } from '../domains/tasks/workflows.ts';
import { formatId, TASKS } from '../log/tables.ts';
import { ERASED, SHOWN_TEXT } from '../log/texts.ts';
import type { Reader } from '../storage/engine.ts';
import { visibleLine } from '../untrusted.ts';
import { command } from './command.ts';
import { withDatabase } from './open.ts';
import type { Colour, Output } from './output.ts';
import { toWidth, wrap } from './text.ts';

/** A status with no arrows out is final. */
const FINISHED = Object.values(ARROWS).flatMap((arrows) =>
  Object.entries(arrows).flatMap(([status, next]) => (next.length === 0 ? [status] : [])),
);
/** Stands for whatever somebody else wrote in the place of a workflow or a status. */
const STRANGE = 'unknown';
const CARDS_MAX = 12;
/** Below this, empty columns make room for the others. */
const COLUMN_WIDTH_MIN = 14;
/** An id fits. */
const COLUMN_WIDTH_LEAST = 6;
const COLUMN_WIDTH_MAX = 36;
const TITLE_LINES_MAX = 3;
const GAP = 2;

type Card = Pick<TaskRow, 'id' | 'title' | 'priority' | 'assignee' | 'progress'> & {
  readonly unmet: number;
  readonly holder?: NonNullable<Awaited<ReturnType<typeof viewHolder>>>;
};
type Column = Awaited<ReturnType<typeof readColumns>>[number];

/** The tasks as columns, one per status. */
export const board = command({
  name: 'board',
  usage: '[--project NAME] [--all]',
  summary: 'the tasks as columns, one per status',
  details: `Each column shows the ${CARDS_MAX} most urgent cards. ‼ critical, ! high, ↓ low; ⧗2 waits for two other tasks. A task in progress shows who holds it; one whose holder is gone, or silent for COLIBRI_LEASE_MINUTES, is abandoned. Finished columns appear with --all. If the terminal is too narrow for all columns, empty ones are left out.`,
  options: {
    project: { value: 'NAME', help: 'only this project' },
    all: { help: 'also finished and cancelled tasks' },
  },
  async run({ values, out, config }) {
    const project = values.project ?? config.project;
    const [columns, projects] = await withDatabase(config, (storage) =>
      storage.read(async (tx) => {
        const at = new Date(systemClock.now()).toISOString();
        const looker = { actor: '', process: '', at, leaseMinutes: config.leaseMinutes };
        return [await readColumns(tx, project ?? null, looker), await readProjects(tx)] as const;
      }),
    );
    const strange = columns.find(({ workflow }) => workflow === STRANGE);
    const shown = columns.filter(({ status }) => values.all === true || !FINISHED.includes(status));
    return out.data(
      shown,
      () => {
        drawBoard(shown, out);
        const rest = columns.filter((column) => !shown.includes(column) && column.count > 0);
        if (columns.length === 0) out.line(nothingHere(project, projects));
        const counts = rest.map(({ status, count }) => `${count} ${status}`).join(', ');
        if (rest.length > 0) out.line(out.paint('dim', `${counts}: --all shows them`));
        if (strange !== undefined)
          out.line(`${strange.count} more with a workflow or status that is none; see "colibri verify"`);
      },
      strange === undefined,
    );
  },
});

function nothingHere(project: string | undefined, projects: readonly string[]): string {
  if (project === undefined || projects.length === 0)
    return 'There are no tasks yet. An agent makes one with task_create.';
  return `There are no tasks in project ${project}. There are some in ${projects.join(', ')}.`;
}

async function readProjects(tx: Reader): Promise<string[]> {
  const found = await tx.all<{ project: string }>('SELECT DISTINCT project FROM tasks ORDER BY project');
  return found.map(({ project }) => project);
}

/** Every status of each workflow that is in use. */
async function readColumns(tx: Reader, project: string | null, looker: Looker) {
  const counts = await tx.all<{ workflow: string; status: string; count: number }>(
    'SELECT workflow, status, count(*) AS count FROM tasks WHERE project = coalesce(?, project) GROUP BY workflow, status',
    project,
  );
  const columns: { workflow: string; status: string; count: number; cards: Card[] }[] = [];
  for (const [workflow, arrows] of Object.entries(ARROWS)) {
    const own = counts.filter((one) => one.workflow === workflow);
    for (const status of own.length === 0 ? [] : Object.keys(arrows)) {
      const count = own.find((one) => one.status === status)?.count ?? 0;
      const cards: Card[] = [];
      for (const { held_by, held_process, held_since, ...card } of await tx.all<Found>(
        CARDS,
        workflow,
        status,
        project,
        CARDS_MAX,
      )) {
        const holder = await viewHolder(tx, { held_by, held_process, held_since }, looker);
        cards.push({ ...card, ...(holder && { holder }) });
      }
      columns.push({ workflow, status, count, cards });
    }
  }
  const [all, known] = [counts, columns].map((some) => some.reduce((sum, { count }) => sum + count, 0));
  const count = (all ?? 0) - (known ?? 0);
  if (count > 0) columns.push({ workflow: STRANGE, status: STRANGE, count, cards: [] });
  return columns;
}

type Found = Omit<Card, 'holder'> & Pick<TaskRow, 'held_by' | 'held_process' | 'held_since'>;

const CARDS = `SELECT id, coalesce(${SHOWN_TEXT}, '${ERASED}') AS title, priority, assignee, progress, unmet,
    held_by, held_process, held_since
  FROM tasks LEFT JOIN texts x ON x.digest = tasks.title
  WHERE workflow = ? AND status = ? AND project = coalesce(?, project) ORDER BY unmet > 0, urgency, id LIMIT ?`;

function drawBoard(columns: readonly Column[], out: Output): void {
  const width = (count: number) =>
    Math.min(COLUMN_WIDTH_MAX, Math.floor((out.width - GAP * (count - 1)) / count));
  for (const workflow of Object.keys(ARROWS)) {
    const own = columns.filter((column) => column.workflow === workflow);
    const filled = own.filter(({ count }) => count > 0);
    if (filled.length === 0) continue;
    const drawn = width(own.length) >= COLUMN_WIDTH_MIN ? own : filled;
    drawColumns(drawn, Math.max(COLUMN_WIDTH_LEAST, width(drawn.length)), out);
    const empty = own.filter((column) => !drawn.includes(column)).map(({ status }) => status);
    if (empty.length > 0) out.line(out.paint('dim', `empty: ${empty.join(', ')}`));
    out.line();
  }
}

function drawColumns(columns: readonly Column[], width: number, out: Output): void {
  const row = (cells: readonly string[]) => out.verbatim(cells.join(' '.repeat(GAP)).trimEnd());
  row(columns.map(({ status, count }) => out.paint('bold', toWidth(`${status} ${count}`, width))));
  row(columns.map(() => '─'.repeat(width)));
  const blank = ' '.repeat(width);
  const bodies = columns.map(({ cards }) =>
    cards.flatMap((card, i) => [...(i === 0 ? [] : [blank]), ...cardLines(card, width, out)]),
  );
  for (let i = 0; i < Math.max(...bodies.map((body) => body.length)); i += 1)
    row(bodies.map((body) => body[i] ?? blank));
  const hidden = columns.map(({ count, cards }) => count - cards.length);
  const more = hidden.map((count) => out.paint('dim', toWidth(count > 0 ? `… ${count} more` : '', width)));
  if (hidden.some((count) => count > 0)) row(more);
}

function cardLines(card: Card, width: number, out: Output) {
  const { id, title, priority, unmet, progress, assignee, holder } = card;
  const lines: string[] = [];
  // One line too many shows that the rest was cut.
  for (const line of wrap(visibleLine(title), width, 0)) if (lines.push(line) > TITLE_LINES_MAX) break;
  const rest = lines.slice(TITLE_LINES_MAX - 1).join(' ');
  const [mark, colour] = MARKS.get(priority) ?? ['', 'cyan'];
  const waiting = unmet > 0 && `⧗${unmet}`;
  const done = progress > 0 && progress < 100 && `${Math.round(progress)}%`;
  const head = [formatId(TASKS, id), mark, waiting, done].filter(Boolean).join(' ');
  return [
    out.paint(colour, toWidth(head, width)),
    ...[...lines.slice(0, TITLE_LINES_MAX - 1), rest].filter(Boolean).map((line) => toWidth(line, width)),
    ...(holder !== undefined && [holder.held_by, 'unassigned'].includes(assignee)
      ? []
      : [out.paint('dim', toWidth(visibleLine(assignee), width))]),
    ...(holder === undefined
      ? []
      : [
          ...wrap(`${holder.abandoned ? 'abandoned' : 'held'} by ${visibleLine(holder.held_by)}`, width, 0),
        ].map((line) => out.paint(holder.abandoned ? 'yellow' : 'dim', toWidth(line, width)))),
  ];
}

const MARKS = new Map<string, readonly [mark: string, Colour]>([
  ['critical', ['‼', 'red']],
  ['high', ['!', 'yellow']],
  ['low', ['↓', 'cyan']],
]);
