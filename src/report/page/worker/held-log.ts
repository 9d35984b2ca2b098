import { columnsOf, standingOf, whereIs } from '../../columns.ts';
import {
  CALLS_PAGE,
  CARDS_PAGE,
  type CallQuery,
  type Filter,
  HISTORY_MAX,
  isFound,
  isInPeriod,
  isWanted,
  SESSIONS_PAGE,
  type Searched,
  searchedCall,
  wordsOf,
} from '../../filter.ts';
import { glanceAt, isWithin, type Period, sumBy, sumOf, Tally } from '../../glance.ts';
import type { Abandoned } from '../../live/form.ts';
import type { Task } from '../../records.ts';
import { compare } from './compare.ts';
import { callDetail } from './detail.ts';
import type { CallPage, Column, Log, Related, Summary, TaskDetail } from './log.ts';
import type { OpenedSource } from './open.ts';

const URGENCY: readonly string[] = ['critical', 'high', 'normal', 'low'];
const RECENT_MAX = 8;
const COMMITS_MAX = 20;

/** What whoever made a report said about it. */
export interface Known {
  readonly abandoned?: Abandoned | undefined;
  /** What the summary looks at more closely. */
  readonly period?: Period | undefined;
}

/** A log of which everything is here. */
export function heldLog(opened: OpenedSource, { abandoned, period }: Known = {}): Log {
  const { calls, tasks, thoughts, sessions } = opened;
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const projects = new Map(tasks.map(({ id, project }) => [id, project]));
  const tally = new Tally();
  for (const call of calls) tally.add({ ...call, at: call.ended });
  // Made once and only when somebody searches: lowering 50,000 texts at each key would be felt.
  let searched: readonly Searched[] | undefined;

  function trail(query: CallQuery): CallPage {
    const words = wordsOf(query);
    if (words.length > 0) searched ??= calls.map(searchedCall);
    const found = calls.filter(
      (call, i) =>
        isWanted(call, query) &&
        (words.length === 0 || isFound(searched?.[i] ?? { ids: [], text: '' }, words)),
    );
    const ordered = query.newestFirst ? found.reverse() : found;
    const from = query.after === 0 ? 0 : 1 + ordered.findIndex(({ position }) => position === query.after);
    const page = ordered.slice(from, from + CALLS_PAGE);
    const last = page.at(-1)?.position;
    const next = from + page.length < ordered.length && last !== undefined ? { next: last } : {};
    return { calls: page, total: ordered.length, all: calls.length, ...next };
  }

  function columns(filter: Filter): Column[] {
    const own = tasks.filter((task) => isTaskWanted(task, filter));
    return columnsOf(own.map(({ workflow, status }) => ({ workflow, status, count: 1 }))).map((column) => {
      const isIn = (task: Task) => task.workflow === column.workflow && task.status === column.status;
      return { ...column, tasks: own.filter(isIn).sort(byUrgency) };
    });
  }

  function summary(filter: Filter): Summary {
    const lines = tally.lines(filter);
    const own = tasks.filter((task) => isTaskOf(task, filter));
    const recent = (where: 'finished' | 'open') =>
      own
        .filter(({ status, status_since }) => whereIs(status) === where && isInPeriod(status_since, filter))
        .sort((a, b) => (a.status_since < b.status_since ? 1 : -1))
        .slice(0, RECENT_MAX);
    const sealed = sessions.filter(({ isSealed, isWrong }) => isSealed && !isWrong).length;
    const commits = thoughts.filter(
      ({ commit_sha, recorded_at, recorded_by, task }) =>
        commit_sha !== '' &&
        isInPeriod(recorded_at, filter) &&
        (filter.agent === '' || filter.agent === recorded_by) &&
        (filter.project === '' || filter.project === projects.get(task)),
    );
    return {
      tasks: standingOf(own.map(({ status }) => ({ status, count: 1 }))),
      sessions: { sealed, open: sessions.length - sealed },
      counts: sumOf(lines),
      agents: sumBy(lines, ({ agent }) => agent),
      projects: sumBy(lines, ({ project }) => project),
      ...{ first: tally.first, last: tally.last, finished: recent('finished'), moving: recent('open') },
      commits: commits.slice(-COMMITS_MAX).reverse(),
      countedBy: 'browser',
      ...(period !== undefined && { glance: glanceOf(period) }),
    };
  }

  /** A period at a glance, from the calls that were checked here. */
  function glanceOf(own: Period) {
    const thoughts = calls.filter(({ kind }) => kind === 'thought');
    return {
      ...own,
      at: glanceAt(
        calls
          .filter(({ kind, ended }) => kind !== 'read' && isWithin(own, ended))
          .map((call) => ({ ...call, at: call.ended, title: byId.get(call.task)?.title })),
      ),
      /** The last thing that was said on each task. */
      reasons: new Map(thoughts.map((call) => [call.task, call.text])),
    };
  }

  function task(id: string): TaskDetail | undefined {
    const found = byId.get(id);
    if (found === undefined) return undefined;
    const relate = (how: Related['how'], ids: readonly string[]) =>
      ids.map((other) => {
        const { title = '', status = '' } = byId.get(other) ?? {};
        return { id: other, how, title, status };
      });
    const idsOf = (some: readonly Task[]) => some.map((other) => other.id);
    const all = calls.filter((call) => call.kind !== 'read' && call.ids.includes(id));
    const history = all.slice(-HISTORY_MAX);
    return {
      task: found,
      related: [
        ...relate('part of', found.parent === '' ? [] : [found.parent]),
        ...relate('depends on', found.dependsOn),
        ...relate('has the part', idsOf(tasks.filter(({ parent }) => parent === id))),
        ...relate('needed by', idsOf(tasks.filter(({ dependsOn }) => dependsOn.includes(id)))),
      ],
      history,
      earlier: all.length - history.length,
      thoughts: thoughts.filter(({ id: thought }) => history.some((call) => call.thought === thought)),
    };
  }

  return {
    async choices() {
      const agents = new Set(calls.map(({ actor }) => actor));
      return { projects: [...new Set(projects.values())].sort(), agents: [...agents].sort() };
    },
    summary: async (filter) => summary(filter),
    board: async (filter) =>
      columns(filter).map((column) => ({ ...column, tasks: column.tasks.slice(0, CARDS_PAGE) })),
    abandoned: async () => abandoned ?? { at: '', tasks: [] },
    async cards(filter, { workflow, status }, from) {
      const column = columns(filter).find((one) => one.workflow === workflow && one.status === status);
      return column?.tasks.slice(from, from + CARDS_PAGE) ?? [];
    },
    trail: async (query) => trail(query),
    async sessions(filter, from) {
      const own = sessions
        .toReversed()
        .filter(
          (session) =>
            (filter.project === '' || projects.get(session.task) === filter.project) &&
            (filter.agent === '' || [session.auditor_id, session.started_by].includes(filter.agent)) &&
            isInPeriod(session.started_at, filter),
        );
      return { sessions: own.slice(from, from + SESSIONS_PAGE), total: own.length };
    },
    session: async (id) => sessions.find((session) => session.id === id),
    task: async (id) => task(id),
    async call(id) {
      const position = Number(id.slice(1));
      const found = calls.find((call) =>
        id.startsWith('#') ? call.position === position || call.exit === position : call.thought === id,
      );
      return found && (await callDetail(opened, found));
    },
    compare: (text) => compare(opened, text),
  };
}

/** Whether a task is of the project and the agent that a filter names. */
function isTaskOf(task: Task, { project, agent }: Filter): boolean {
  const agents = [task.assignee, task.held_by, task.status_by, task.created_by];
  return (project === '' || task.project === project) && (agent === '' || agents.includes(agent));
}

function isTaskWanted(task: Task, filter: Filter): boolean {
  const { id, title, assignee, labels } = task;
  const text = `${id} ${title} ${assignee} ${labels.join(' ')}`.toLowerCase();
  return (
    isTaskOf(task, filter) &&
    isInPeriod(task.updated_at, filter) &&
    isFound({ ids: [id], text }, wordsOf(filter))
  );
}

function byUrgency(a: Task, b: Task): number {
  return URGENCY.indexOf(a.priority) - URGENCY.indexOf(b.priority);
}
