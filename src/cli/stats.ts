import { systemClock } from '../clock.ts';
import { shown } from '../domains/lookup.ts';
import { heldTasks, onlooker } from '../domains/tasks/holders.ts';
import { formatId, parseId, TASKS, THOUGHTS } from '../log/tables.ts';
import { standingOf } from '../report/columns.ts';
import { COUNTED, type Glance, glanceAt, type Happened, type Period } from '../report/glance.ts';
import { callsWithin, type PastCall, tellCalls, withTexts } from '../report/past-calls.ts';
import { tellCall } from '../report/telling.ts';
import type { Reader } from '../storage/engine.ts';
import { visibleLine } from '../untrusted.ts';
import { command, EXIT } from './command.ts';
import { describePeriod, PERIOD_OPTIONS, readPeriod } from './dates.ts';
import { withLog } from './open.ts';
import type { Output } from './output.ts';
import { type Column, printTable, readLimit } from './table.ts';
import { plural, shownBy, wrapShort } from './text.ts';

const SINCE_DEFAULT = '7d';
const ENTRIES_DEFAULT = 10;

/** A period at a glance: what was finished and why, what was refused, and how much each agent did in each project. */
export const stats = command({
  name: 'stats',
  usage: '[--since TIME] [--until TIME] [--project NAME] [--actor NAME]',
  summary: 'show a week at a glance: what was finished, started, refused, abandoned and erased, and by whom',
  details: `Default: the last ${SINCE_DEFAULT}. Each finished task is shown with its reason, the newest thought on it when it was finished. The tables count calls, so that the columns add up: a task that was started twice counts twice. A task counts as abandoned if someone else took it over; tasks whose holder is now gone or silent are also listed. --csv prints the counts by agent and project.`,
  options: {
    ...PERIOD_OPTIONS,
    project: { value: 'NAME', help: 'only calls about tasks of this project' },
    actor: { value: 'NAME', help: 'only what this agent or person did or abandoned' },
    limit: { short: 'n', value: 'N', help: `at most N entries of each list (${ENTRIES_DEFAULT})` },
    all: { help: 'everything: the whole log, and every entry of each list' },
    csv: { help: 'print the counts as a table for a spreadsheet (RFC 4180)' },
  },
  async run({ values, out, config }) {
    const {
      since = values.all === true ? undefined : SINCE_DEFAULT,
      until,
      project,
      actor,
      all,
      csv,
    } = values;
    const period = readPeriod({ since, until });
    const limit = values.limit === undefined && all !== true ? ENTRIES_DEFAULT : readLimit(values, out);
    const found = await withLog(config, out, (storage) =>
      storage.read((tx) => readGlance(tx, period, { project, actor, leaseMinutes: config.leaseMinutes })),
    );
    if (csv === true) {
      const cells = found.by_agent_and_project;
      out.csv([
        ['agent', 'project', ...COUNTED],
        ...cells.map((cell) => [cell.agent, cell.project, ...COUNTED.map((name) => String(cell[name]))]),
      ]);
      return EXIT.fine;
    }
    const { since: from, until: to } = period;
    return out.data({ since: from || null, until: to === '~' ? null : to, ...found }, () => {
      out.line(out.paint('bold', describePeriod(period) || 'The whole log'));
      printGlance(found, limit, out);
    });
  },
});

interface Asked {
  readonly project: string | undefined;
  readonly actor: string | undefined;
  readonly leaseMinutes: number;
}

/** The glance with the reasons and commits of what was finished, and where all tasks are now. */
async function readGlance(tx: Reader, period: Period, asked: Asked) {
  const calls: PastCall[] = [];
  const acts: PastCall[] = [];
  for await (const call of callsWithin(tx, period)) {
    const { kind } = tellCall(call);
    if (kind !== 'read') (kind === 'owner' ? acts : calls).push(call);
  }
  const { project, actor } = asked;
  // Of the owner's acts the reason is told; of the others no text is.
  const told = await tellCalls(tx, [...calls, ...(await withTexts(tx, acts))]);
  const glance = glanceAt(
    told.filter((call) => project === undefined || call.project === project),
    actor,
  );
  const finished = [];
  for (const one of glance.finished) finished.push({ ...one, ...(await reasonFor(tx, one, glance)) });
  const abandoned_now = await abandonedNow(tx, asked);
  return { ...glance, finished, abandoned_now, tasks_now: await tasksNow(tx, project) };
}

/** Tasks whose holder is gone or silent at this moment, whenever they were taken. */
async function abandonedNow(tx: Reader, { project, actor, leaseMinutes }: Asked) {
  const { abandoned } = await heldTasks(tx, project, onlooker(systemClock, leaseMinutes), ALL);
  return abandoned
    .filter(({ held_by }) => actor === undefined || held_by === actor)
    .map(({ id, title, held_by, held_since }) => ({
      task_id: formatId(TASKS, id),
      title,
      held_by,
      held_since,
    }));
}

const ALL = Number.MAX_SAFE_INTEGER;

/** The newest thought on a task when it was finished, and the commits that its thoughts of the period name. */
async function reasonFor(tx: Reader, { task_id, at }: Happened, { commits }: Pick<Glance, 'commits'>) {
  const sql = `SELECT id, type, ${shown(THOUGHTS, 'content')} FROM thoughts
    WHERE task_id = ? AND recorded_at <= ? ORDER BY chain_position DESC LIMIT 1`;
  type Newest = { readonly id: number; readonly type: string; readonly content: string };
  const newest = await tx.get<Newest>(sql, parseId(TASKS, task_id) ?? 0, at);
  const named = commits.filter(({ tasks }) => tasks.includes(task_id)).map(({ commit }) => commit);
  return {
    ...(newest && {
      reason: newest.content,
      thought_id: formatId(THOUGHTS, newest.id),
      thought_type: newest.type,
    }),
    commits: named,
  };
}

/** How many tasks there are in each project: open, finished and cancelled, which add up to all. */
async function tasksNow(tx: Reader, project: string | undefined) {
  const rows = await tx.all<{ project: string; status: string; count: number }>(
    'SELECT project, status, count(*) AS count FROM tasks WHERE project = coalesce(?, project) GROUP BY project, status ORDER BY project',
    project ?? null,
  );
  const names = [...new Set(rows.map((row) => row.project))];
  return names.map((name) => {
    const own = rows.filter((row) => row.project === name);
    const { open, finished, cancelled } = standingOf(own);
    const by_status = Object.fromEntries(own.map(({ status, count }) => [status, count]));
    return { project: name, open, finished, cancelled, total: open + finished + cancelled, by_status };
  });
}

type Found = Awaited<ReturnType<typeof readGlance>>;

function printGlance(found: Found, limit: number, out: Output): void {
  const { totals, finished, refused, started, cancelled, abandoned, erased, commits } = found;
  out.line(
    COUNTED.map((name) =>
      name === 'thoughts' ? plural(totals[name], 'thought') : `${totals[name]} ${name}`,
    ).join(', '),
  );
  const section = sectionsOn(out, limit);
  section('Finished', finished, ({ reason = '(no reason)', thought_id, commits: named, ...task }) => {
    const at = named.map((commit) => commit.slice(0, SHORT_COMMIT));
    return [
      reason,
      [taskLine(task), thought_id, at.length > 0 && `commit ${at.join(', ')}`].filter(Boolean).join(' · '),
    ];
  });
  section(
    'Refused',
    refused,
    ({ code, reason, count, agents, tasks }) => [
      `${count} × ${code}${reason && `: ${reason}`}`,
      [`by ${agents.join(', ')}`, tasks.length > 0 && `on ${few(tasks)}`].filter(Boolean).join(' · '),
    ],
    totals.refused,
  );
  section('Abandoned', abandoned, ({ taken_over_by, ...task }) => [
    `${taskLine(task)} · taken over by ${taken_over_by}`,
  ]);
  section('Abandoned now', found.abandoned_now, ({ task_id, title, held_by, held_since }) => [
    `${task_id} ${title} · held by ${held_by} since ${dayOf(held_since)}`,
  ]);
  section('Erased', erased, ({ what, by, at }) => [`${what} · ${by} · ${dayOf(at)}`]);
  section('Started', started, (task) => [taskLine(task)]);
  section('Cancelled', cancelled, (task) => [taskLine(task)]);
  section('Commits', commits, ({ commit, tasks, thoughts }) => [
    `${commit.slice(0, SHORT_COMMIT)} · ${few(tasks)} · ${few(thoughts)}`,
  ]);
  out.line();
  const [agents, projects] = [found.by_agent, found.by_project].map((rows) => [
    ...rows,
    { name: 'together', ...totals },
  ]);
  printTable(agents ?? [], countColumns('agent', totals), out);
  out.line();
  printTable(projects ?? [], countColumns('project', totals), out);
  if (found.tasks_now.length === 0) return;
  out.line();
  out.line(out.paint('bold', 'Tasks now'));
  printTable(found.tasks_now, NOW_COLUMNS, out);
}

const SHORT_COMMIT = 10;
const FEW = 6;
const REASON_LINES_MAX = 3;

function few(ids: readonly string[]): string {
  return ids.length <= FEW ? ids.join(', ') : `${ids.slice(0, FEW).join(', ')} and ${ids.length - FEW} more`;
}

function dayOf(at: string): string {
  return visibleLine(at).slice(0, 10);
}

function taskLine({ task_id, title, project, by, at }: Happened): string {
  return `${task_id} ${title} · ${by} · ${project} · ${dayOf(at)}`;
}

/** A list under its heading: of each entry what matters, then where it comes from. An entry may stand for several. */
function sectionsOn(out: Output, limit: number) {
  return <T>(
    name: string,
    entries: readonly T[],
    linesOf: (entry: T) => readonly string[],
    count = entries.length,
  ): void => {
    if (entries.length === 0) return;
    out.line();
    out.line(out.paint('bold', `${name} (${count})`));
    for (const entry of entries.slice(0, limit)) {
      const [first = '', ...more] = linesOf(entry);
      // A reason may have 5,000 characters; `colibri show` prints them all.
      for (const line of wrapShort(`  ${visibleLine(first)}`, out.wrapWidth, 2, REASON_LINES_MAX))
        out.verbatim(line);
      for (const line of more) out.line(out.paint('dim', `      ${line}`), 6);
    }
    const rest = entries.length - limit;
    if (rest > 0) out.line(out.paint('dim', `  ${rest} more: ${shownBy(`--limit ${entries.length}`, rest)}`));
  };
}

type Counted = Found['by_agent'][number];

/** What nobody did takes no room. The name comes last, where there is room for a long one. */
function countColumns(head: string, totals: Found['totals']): Column<Counted>[] {
  return [
    ...COUNTED.filter((name) => totals[name] > 0).map(
      (name): Column<Counted> => ({ name, text: (row) => String(row[name]) }),
    ),
    { name: head, text: ({ name }) => name },
  ];
}

const NOW_COLUMNS: readonly Column<Found['tasks_now'][number]>[] = [
  ...(['open', 'finished', 'cancelled', 'total'] as const).map((name) => ({
    name,
    text: (row: Found['tasks_now'][number]) => String(row[name]),
  })),
  { name: 'project', text: ({ project }) => project },
];
