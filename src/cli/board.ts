import { formatId, TASKS } from '../log/tables.ts';
import { ERASED } from '../log/texts.ts';
import type { Reader } from '../storage/engine.ts';
import { type Command, EXIT } from './command.ts';
import { withDatabase } from './open.ts';
import type { Colour, Output } from './output.ts';
import { printable, toWidth, wrap } from './text.ts';

const COLUMNS = {
  kanban: ['backlog', 'todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled'],
  pipeline: ['INIT', 'GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE', 'CANCELLED'],
} as const;

const FINISHED: readonly string[] = ['done', 'cancelled', 'DONE', 'CANCELLED'];
const CARDS_MAX = 12;
const COLUMN_WIDTH_MIN = 14;
const COLUMN_WIDTH_MAX = 36;
const TITLE_LINES_MAX = 3;
const GAP = 2;

interface Card {
  readonly id: number;
  readonly title: string;
  readonly priority: string;
  readonly assignee: string;
  readonly progress: number;
  readonly unmet: number;
}

interface Column {
  readonly workflow: string;
  readonly status: string;
  readonly count: number;
  readonly cards: readonly Card[];
}

/** The tasks as columns, one per status. */
export const board: Command = {
  name: 'board',
  usage: '[--project NAME] [--all]',
  summary: 'the tasks as columns, one per status',
  details: `Each column shows the ${CARDS_MAX} most urgent cards. ‼ critical, ! high, ↓ low; ⧗2 waits for two other tasks. Finished columns appear with --all. If the terminal is too narrow for all columns, empty ones are left out; if it is narrower still, the board is a list.`,
  options: {
    project: { type: 'string', value: 'NAME', help: 'only this project' },
    all: { type: 'boolean', help: 'also finished and cancelled tasks' },
  },
  positionals: [0, 0],
  async run({ values, out, config }) {
    const settings = config();
    const project = typeof values.project === 'string' ? values.project : settings.project;
    const [columns, projects] = await withDatabase(settings, (storage) =>
      storage.read(async (tx) => [await readColumns(tx, project), await readProjects(tx)] as const),
    );
    const shown = columns.filter(({ status }) => values.all === true || !FINISHED.includes(status));
    out.data(shown, () => {
      drawBoard(shown, out);
      const rest = columns.filter((column) => !shown.includes(column) && column.count > 0);
      if (columns.length === 0) out.line(nothingHere(project, projects));
      if (rest.length > 0)
        out.line(
          out.paint(
            'dim',
            `${rest.map(({ status, count }) => `${count} ${status}`).join(', ')}: --all shows them`,
          ),
        );
    });
    return EXIT.fine;
  },
};

function nothingHere(project: string | undefined, projects: readonly string[]): string {
  if (project === undefined || projects.length === 0)
    return 'There are no tasks yet. An agent makes one with task_create.';
  return `There are no tasks in project ${printable(project)}. There are some in ${projects.join(', ')}.`;
}

async function readProjects(tx: Reader): Promise<string[]> {
  const found = await tx.all<{ project: string }>('SELECT DISTINCT project FROM tasks ORDER BY project');
  return found.map(({ project }) => printable(project));
}

async function readColumns(tx: Reader, project: string | undefined): Promise<Column[]> {
  const counts = await tx.all<{ workflow: string; status: string; count: number }>(
    'SELECT workflow, status, count(*) AS count FROM tasks WHERE project = coalesce(?, project) GROUP BY workflow, status',
    project ?? null,
  );
  const columns: Column[] = [];
  for (const [workflow, statuses] of Object.entries(COLUMNS)) {
    if (!counts.some((found) => found.workflow === workflow)) continue;
    for (const status of statuses) {
      const count =
        counts.find((found) => found.workflow === workflow && found.status === status)?.count ?? 0;
      const cards = await tx.all<Card>(
        `SELECT id, coalesce(x.text, '${ERASED}') AS title, priority, assignee, progress, unmet
         FROM tasks LEFT JOIN texts x ON x.digest = tasks.title
         WHERE workflow = ? AND status = ? AND project = coalesce(?, project) ORDER BY unmet > 0, urgency, id LIMIT ?`,
        workflow,
        status,
        project ?? null,
        CARDS_MAX,
      );
      columns.push({ workflow, status, count, cards });
    }
  }
  return columns;
}

function drawBoard(columns: readonly Column[], out: Output): void {
  const width = (count: number) =>
    Math.min(COLUMN_WIDTH_MAX, Math.floor((out.width - GAP * (count - 1)) / count));
  for (const workflow of Object.keys(COLUMNS)) {
    const own = columns.filter((column) => column.workflow === workflow);
    const filled = own.filter(({ count }) => count > 0);
    if (filled.length === 0) continue;
    const drawn = width(own.length) >= COLUMN_WIDTH_MIN ? own : filled;
    if (width(drawn.length) >= COLUMN_WIDTH_MIN) drawColumns(drawn, width(drawn.length), out);
    else drawList(filled, out);
    const empty = own.filter((column) => !drawn.includes(column)).map(({ status }) => status);
    if (empty.length > 0) out.line(out.paint('dim', `empty: ${empty.join(', ')}`));
    out.line();
  }
}

function drawColumns(columns: readonly Column[], width: number, out: Output): void {
  const row = (cells: readonly string[]) => out.verbatim(cells.join(' '.repeat(GAP)).trimEnd());
  row(columns.map(({ status, count }) => out.paint('bold', toWidth(`${status} ${count}`, width))));
  row(columns.map(() => '─'.repeat(width)));
  const bodies = columns.map(({ cards }) =>
    cards.flatMap((card, i) => [...(i === 0 ? [] : [' '.repeat(width)]), ...cardLines(card, width, out)]),
  );
  for (let i = 0; i < Math.max(...bodies.map((body) => body.length)); i += 1)
    row(bodies.map((body) => body[i] ?? ' '.repeat(width)));
  const hidden = columns.map(({ count, cards }) =>
    count > cards.length ? toWidth(`… ${count - cards.length} more`, width) : ' '.repeat(width),
  );
  if (hidden.some((text) => text.trim() !== '')) row(hidden.map((text) => out.paint('dim', text)));
}

function cardLines(card: Card, width: number, out: Output): string[] {
  return [
    out.paint(colourOf(card), toWidth(headOf(card), width)),
    ...titleLines(card, width),
    out.paint('dim', toWidth(printable(card.assignee), width)),
  ];
}

function headOf({ id, priority, unmet, progress }: Card): string {
  const waiting = unmet > 0 ? `⧗${unmet}` : '';
  const done = progress > 0 && progress < 100 ? `${Math.round(progress)}%` : '';
  return [formatId(TASKS, id), MARKS[priority], waiting, done].filter(Boolean).join(' ');
}

function colourOf({ priority }: Card): Colour {
  return priority === 'critical' ? 'red' : priority === 'high' ? 'yellow' : 'cyan';
}

function titleLines({ title }: Card, width: number): string[] {
  const lines = wrap(printable(title), width, 0);
  const rest = lines.slice(TITLE_LINES_MAX - 1).join(' ');
  return [...lines.slice(0, TITLE_LINES_MAX - 1), ...(rest === '' ? [] : [rest])].map((line) =>
    toWidth(line, width),
  );
}

const MARKS: Readonly<Record<string, string>> = { critical: '‼', high: '!', normal: '', low: '↓' };

/** For a terminal too narrow for columns. */
function drawList(columns: readonly Column[], out: Output): void {
  for (const { status, count, cards } of columns) {
    out.line(out.paint('bold', `${status} ${count}`));
    for (const card of cards) {
      const head = headOf(card);
      out.line(`  ${out.paint(colourOf(card), head)} ${printable(card.title)}`, 4);
    }
    if (count > cards.length) out.line(out.paint('dim', `  … ${count - cards.length} more`));
  }
}
