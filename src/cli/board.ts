import type { Reader } from '../storage/engine.ts';
import { type Command, EXIT } from './command.ts';
import { withDatabase } from './open.ts';
import { displayWidth, type Output, printable, toWidth } from './output.ts';

const COLUMNS = {
  kanban: ['backlog', 'todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled'],
  pipeline: ['INIT', 'GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE', 'CANCELLED'],
} as const;

const FINISHED: readonly string[] = ['done', 'cancelled', 'DONE', 'CANCELLED'];
const CARDS_MAX = 12;
const COLUMN_WIDTH_MIN = 18;
const GAP = 2;
const EMPTY = 'There are no tasks. An agent makes one with task_create.';

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

/** The tasks as columns, one a status. */
export const board: Command = {
  name: 'board',
  usage: '[--project NAME] [--all]',
  summary: 'the tasks as columns, one a status',
  details: `Each column shows the ${CARDS_MAX} most urgent cards. Finished columns appear with --all.`,
  options: {
    project: { type: 'string', value: 'NAME', help: 'only this project' },
    all: { type: 'boolean', help: 'finished and cancelled tasks too' },
  },
  positionals: [0, 0],
  async run({ values, out, config }) {
    const settings = config();
    const project = typeof values.project === 'string' ? values.project : settings.project;
    const columns = await withDatabase(settings, undefined, (storage) =>
      storage.read((tx) => readColumns(tx, project, values.all === true)),
    );
    out.data(columns, () => drawBoard(columns, out));
    return EXIT.fine;
  },
};

async function readColumns(tx: Reader, project: string | undefined, all: boolean): Promise<Column[]> {
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
      if (FINISHED.includes(status) && !all) continue;
      const cards = await tx.all<Card>(
        `SELECT id, title, priority, assignee, progress, unmet FROM tasks
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
  if (columns.length === 0) out.line(EMPTY);
  for (const workflow of Object.keys(COLUMNS)) {
    const own = columns.filter((column) => column.workflow === workflow);
    if (own.length === 0) continue;
    const width = Math.floor((out.width - GAP * (own.length - 1)) / own.length);
    if (width >= COLUMN_WIDTH_MIN) drawColumns(own, width, out);
    else drawList(own, out);
  }
}

function drawColumns(columns: readonly Column[], width: number, out: Output): void {
  const row = (cells: readonly string[]) => out.line(cells.join(' '.repeat(GAP)).trimEnd());
  row(columns.map(({ status, count }) => out.paint('bold', toWidth(`${status} ${count}`, width))));
  row(columns.map(() => '─'.repeat(width)));
  const bodies = columns.map((column) => column.cards.flatMap((card) => cardLines(card, width, out)));
  for (let i = 0; i < Math.max(...bodies.map((body) => body.length)); i += 1)
    row(bodies.map((body) => body[i] ?? ' '.repeat(width)));
  const hidden = columns.map(({ count, cards }) =>
    count > cards.length ? toWidth(`… ${count - cards.length} more`, width) : ' '.repeat(width),
  );
  if (hidden.some((text) => text.trim() !== '')) row(hidden.map((text) => out.paint('dim', text)));
  out.line();
}

function cardLines(card: Card, width: number, out: Output): string[] {
  const waiting = card.unmet > 0 ? ` ⧗${card.unmet}` : '';
  const progress = card.progress > 0 && card.progress < 100 ? ` ${Math.round(card.progress)}%` : '';
  const head = toWidth(`${taskId(card.id)} ${MARKS[card.priority] ?? ''}${waiting}${progress}`, width);
  return [
    out.paint(card.priority === 'critical' ? 'red' : card.priority === 'high' ? 'yellow' : 'cyan', head),
    toWidth(printable(card.title), width),
    out.paint('dim', toWidth(printable(card.assignee), width)),
  ];
}

const MARKS: Readonly<Record<string, string>> = { critical: '‼', high: '!', normal: '', low: '↓' };

/** For a terminal too narrow for columns. */
function drawList(columns: readonly Column[], out: Output): void {
  for (const { status, count, cards } of columns) {
    if (count === 0) continue;
    out.line(out.paint('bold', `${status} ${count}`));
    for (const card of cards)
      out.line(
        `  ${taskId(card.id)} ${toWidth(printable(card.title), Math.max(10, Math.min(displayWidth(printable(card.title)), out.width - 10)))}`,
      );
    if (count > cards.length) out.line(out.paint('dim', `  … ${count - cards.length} more`));
  }
}

function taskId(id: number): string {
  return `T-${String(id).padStart(4, '0')}`;
}
