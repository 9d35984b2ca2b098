import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../clock.ts';
import type { TaskRow } from '../domains/facts.ts';
import { shownColumns } from '../domains/lookup.ts';
import { type Looker, onlooker, viewHolder } from '../domains/tasks/holders.ts';
import { ARROWS } from '../domains/tasks/workflows.ts';
import { formatId, TASKS } from '../log/tables.ts';
import { type ColumnCount, columnsOf, isColumn } from '../report/columns.ts';
import type { Reader } from '../storage/engine.ts';
import { readView } from '../trust/own-log.ts';
import { listIn, textFrom, visibleLine } from '../untrusted.ts';
import { command, EXIT } from './command.ts';
import { ageOf } from './dates.ts';
import { FINISHED } from './filters.ts';
import { NO_TASKS, priorityMark, UNASSIGNED } from './list.ts';
import { readProjects, untilRead, untilStopped, withLog } from './open.ts';
import type { Output } from './output.ts';
import { readLimit } from './table.ts';
import { plural, shownBy, toWidth, wrap } from './text.ts';
import { viewRow } from './views.ts';

/** Stands for whatever somebody else wrote in the place of a workflow or a status. */
const STRANGE = 'unknown';
const CARDS_DEFAULT = 12;
const WATCH_MS = 1_000;
/** Below this, empty columns make room for the others. */
const COLUMN_WIDTH_MIN = 14;
/** An id fits. */
const COLUMN_WIDTH_LEAST = 6;
const COLUMN_WIDTH_MAX = 36;
const TITLE_LINES_MAX = 3;
const REASON_LINES_MAX = 2;
const HOLDER_LINES_MAX = 2;
const GAP = 2;

type Card = TaskRow & {
  readonly unmet: number;
  readonly holder?: NonNullable<Awaited<ReturnType<typeof viewHolder>>>;
};
type Column = Awaited<ReturnType<typeof readColumns>>[number];

/** The tasks as columns, one per status. */
export const board = command({
  name: 'board',
  usage: '[--project NAME] [--limit N] [--all] [--watch]',
  summary: 'show the tasks in columns, one per status',
  details: `Each column shows the ${CARDS_DEFAULT} most urgent cards: highest priority first, then tasks that wait for nothing, then the oldest. ‼ critical, ! high, ↓ low; 3d: in this status for three days; ⧗2: waits for two other tasks. A task in progress shows its holder. If the holder is gone, or silent for COLIBRI_LEASE_MINUTES, the task is abandoned. --all adds the finished columns. If the terminal is too narrow, empty columns are left out. --json prints every card, each task as agents see it. --watch redraws the board when something changes, until Ctrl-C.`,
  options: {
    project: { value: 'NAME', help: 'only this project' },
    limit: { short: 'n', value: 'N', help: `at most N cards per column (${CARDS_DEFAULT})` },
    all: { help: 'every card, and finished and cancelled tasks too' },
    watch: { short: 'w', help: 'keep running and redraw when something changes' },
  },
  async run({ values, out, config }) {
    const project = values.project ?? config.project;
    const isAll = values.all === true;
    const limit = values.limit === undefined && !isAll && !out.json ? CARDS_DEFAULT : readLimit(values, out);
    const signal = values.watch === true ? untilStopped() : undefined;
    return await withLog(config, out, async (storage) => {
      for (let seen = -1, minute = -1; ; ) {
        const looker = onlooker(systemClock, config.leaseMinutes);
        const read = () =>
          storage.read(async (tx) => ({
            columns: await readColumns(tx, project ?? null, limit, looker),
            projects: await readProjects(tx),
            rows: (await readView(tx)).last.position,
          }));
        const { columns, projects, rows } = await untilRead(read, signal, out);
        const now = Math.floor(systemClock.now() / 60_000);
        // Ages grow by themselves.
        const isNews = rows !== seen || (now !== minute && out.isTerminal);
        if (isNews && seen !== -1 && !out.json) out.clear();
        [seen, minute] = [rows, now];
        const code = isNews ? printBoard(columns, projects, { project, isAll }, out) : EXIT.fine;
        if (signal === undefined) return code;
        if (isNews && !out.json) out.line(out.paint('dim', `${rows} audit rows. Press Ctrl-C to stop.`));
        await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return EXIT.fine;
      }
    });
  },
});

interface Asked {
  readonly project: string | undefined;
  readonly isAll: boolean;
}

function printBoard(
  columns: readonly Column[],
  projects: readonly string[],
  asked: Asked,
  out: Output,
): number {
  const { project, isAll } = asked;
  const strange = columns.find(({ workflow }) => workflow === STRANGE);
  const shown = columns.filter(({ status }) => isAll || !FINISHED.some((one) => one === status));
  const data = shown.map(({ cards, ...column }) => ({
    ...column,
    tasks: cards.map(({ holder, ...card }) => ({ ...viewRow(TASKS, card), ...(holder && { holder }) })),
  }));
  return out.data(
    data,
    () => {
      drawBoard(shown, project === undefined && projects.length > 1, out);
      const rest = columns.filter((column) => !shown.includes(column) && column.count > 0);
      if (columns.length === 0) out.line(nothingHere(project, projects));
      const counts = rest.map(({ status, count }) => `${count} ${status}`).join(', ');
      const left = rest.reduce((sum, { count }) => sum + count, 0);
      if (rest.length > 0) out.line(out.paint('dim', `${counts}: ${shownBy('--all', left)}`));
      const known = shown.filter((column) => column !== strange);
      const more = known.reduce((sum, { count, cards }) => sum + count - cards.length, 0);
      if (more > 0)
        out.line(out.paint('dim', `${plural(more, 'more card')}: ${shownBy('--limit N or --all', more)}`));
      if (strange !== undefined)
        out.line(`${strange.count} more with an unknown workflow or status; see "colibri verify"`);
    },
    strange === undefined,
  );
}

function nothingHere(project: string | undefined, projects: readonly string[]): string {
  if (project === undefined || projects.length === 0) return NO_TASKS;
  return `There are no tasks in project ${project}. Projects with tasks: ${projects.join(', ')}.`;
}

/** The columns with their cards. Tasks that are in none are counted together. */
async function readColumns(tx: Reader, project: string | null, limit: number, looker: Looker) {
  const counts = await tx.all<ColumnCount>(
    'SELECT workflow, status, count(*) AS count FROM tasks WHERE project = coalesce(?, project) GROUP BY workflow, status',
    project,
  );
  const columns: (ColumnCount & { readonly cards: readonly Card[] })[] = [];
  for (const column of columnsOf(counts.filter(isColumn))) {
    const cards: Card[] = [];
    for (const card of await tx.all<Card>(CARDS, column.workflow, column.status, project, limit)) {
      const holder = await viewHolder(tx, card, looker);
      cards.push({ ...card, ...(holder && { holder }) });
    }
    columns.push({ ...column, cards });
  }
  const strange = counts.filter((one) => !isColumn(one)).reduce((sum, { count }) => sum + count, 0);
  if (strange > 0) columns.push({ workflow: STRANGE, status: STRANGE, count: strange, cards: [] });
  return columns;
}

/** The most urgent first. A critical task that waits for another is still more urgent than any other that does not. */
const CARDS = `SELECT ${shownColumns(TASKS)}, unmet FROM tasks
  WHERE workflow = ? AND status = ? AND project = coalesce(?, project) ORDER BY urgency, unmet > 0, id LIMIT ?`;

function drawBoard(columns: readonly Column[], hasProjects: boolean, out: Output): void {
  const width = (count: number) =>
    Math.min(COLUMN_WIDTH_MAX, Math.floor((out.width - GAP * (count - 1)) / count));
  for (const workflow of Object.keys(ARROWS)) {
    const own = columns.filter((column) => column.workflow === workflow);
    const filled = own.filter(({ count }) => count > 0);
    if (filled.length === 0) continue;
    const drawn = width(own.length) >= COLUMN_WIDTH_MIN ? own : filled;
    drawColumns(drawn, Math.max(COLUMN_WIDTH_LEAST, width(drawn.length)), hasProjects, out);
    const empty = own.filter((column) => !drawn.includes(column)).map(({ status }) => status);
    if (empty.length > 0) out.line(out.paint('dim', `empty: ${empty.join(', ')}`));
    out.line();
  }
}

function drawColumns(columns: readonly Column[], width: number, hasProjects: boolean, out: Output): void {
  const row = (cells: readonly string[]) => out.verbatim(cells.join(' '.repeat(GAP)).trimEnd());
  row(columns.map(({ status, count }) => out.paint('bold', toWidth(`${status} ${count}`, width))));
  row(columns.map(() => '─'.repeat(width)));
  const blank = ' '.repeat(width);
  const bodies = columns.map(({ cards }) =>
    cards.flatMap((card, i) => [...(i === 0 ? [] : [blank]), ...cardLines(card, width, hasProjects, out)]),
  );
  for (let i = 0; i < Math.max(...bodies.map((body) => body.length)); i += 1)
    row(bodies.map((body) => body[i] ?? blank));
  const hidden = columns.map(({ count, cards }) => count - cards.length);
  const more = hidden.map((count) => out.paint('dim', toWidth(count > 0 ? `… ${count} more` : '', width)));
  if (hidden.some((count) => count > 0)) row(more);
}

function cardLines(card: Card, width: number, hasProjects: boolean, out: Output): string[] {
  const { id, priority, unmet, progress, assignee, holder, blocked_reason, status_since, project } = card;
  const [mark, colour = 'cyan'] = priorityMark(priority);
  const waiting = unmet > 0 && `⧗${unmet}`;
  const done = progress > 0 && progress < 100 && `${Math.round(progress)}%`;
  const head = [formatId(TASKS, id), mark, ageOf(status_since), waiting, done].filter(Boolean).join(' ');
  const labels = listIn(card.labels).map((label) => `#${textFrom(label)}`);
  // Who holds it is said on a line of its own.
  const who = [holder?.held_by, UNASSIGNED].includes(assignee) ? '' : assignee;
  const dim = [labels.join(' '), [who, hasProjects && project].filter(Boolean).join(' · ')];
  return [
    out.paint(colour, toWidth(head, width)),
    ...linesOf(card.title, width, TITLE_LINES_MAX),
    ...linesOf(blocked_reason ?? '', width, REASON_LINES_MAX).map((line) => out.paint('yellow', line)),
    ...holderLines(card, width, out),
    ...dim.flatMap((text) => linesOf(text, width, 1).map((line) => out.paint('dim', line))),
  ];
}

function holderLines({ holder }: Card, width: number, out: Output): string[] {
  if (holder === undefined) return [];
  const text = `${holder.abandoned ? 'abandoned' : 'held'} by ${holder.held_by}`;
  const colour = holder.abandoned ? 'yellow' : 'dim';
  return linesOf(text, width, HOLDER_LINES_MAX).map((line) => out.paint(colour, line));
}

/** A text in so many lines; a text that needs more ends with an ellipsis. */
function linesOf(text: string, width: number, most: number): string[] {
  const lines: string[] = [];
  // One line too many shows that the rest was cut.
  for (const line of wrap(visibleLine(text), width, 0)) if (lines.push(line) > most) break;
  const rest = lines.slice(most - 1).join(' ');
  return [...lines.slice(0, most - 1), rest].filter(Boolean).map((line) => toWidth(line, width));
}
