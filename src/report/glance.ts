import { type Filter, isInPeriod } from './filter.ts';
import type { tellCall } from './telling.ts';

// What was finished, started, refused, abandoned and erased, by agent and by project: counted in one way for the command
// line, a report and the live page, so that all give the same numbers.

/** What is counted of each agent in each project. Every count is of calls, so the sums over either add up. */
export const COUNTED = [
  ...(['created', 'started', 'finished', 'cancelled', 'refused', 'failed'] as const),
  ...(['abandoned', 'erased', 'thoughts', 'sealed'] as const),
] as const;
const ALL = [...COUNTED, 'calls'] as const;
export type Counts = Readonly<Record<(typeof ALL)[number], number>>;
export type NamedCounts = Counts & { readonly name: string };

/** A call with the task and the project that it belongs to, whichever way it names them. */
export type CountedCall = Pick<
  ReturnType<typeof tellCall>,
  'at' | 'actor' | 'kind' | 'verb' | 'from' | 'to' | 'takenFrom'
> & { readonly project: string };

/** A stretch of time, both ends included. Times in UTC with milliseconds: text order is time order. */
export interface Period {
  readonly since: string;
  readonly until: string;
}

/** Whether a time is in a period. A damaged row that does not say when it was written is in every period. */
export function isWithin({ since, until }: Period, at: unknown): boolean {
  return typeof at !== 'string' || (at >= since && at <= until);
}

/** Where a call belongs that is about no task. */
const NO_PROJECT = '—';

/** What happened on one day, by one agent, in one project. */
type Line = Record<(typeof ALL)[number], number> & Readonly<Record<'day' | 'agent' | 'project', string>>;

/** A stranger may give each row an agent of its own: past so many lines, the rest is counted together. */
const LINES_MAX = 20_000;
/** Stands for the agents and projects that were too many to be told apart. */
const OTHERS = '(others)';

/** Counts calls by day, agent and project, so that the sums of any part of a log agree with each other. */
export class Tally {
  readonly #lines = new Map<string, Line>();
  /** The times of the first and the last call. */
  first = '';
  last = '';

  add(call: CountedCall): void {
    const { at, actor, takenFrom, kind, verb } = call;
    this.first ||= at;
    this.last = at;
    const line = this.#lineOf(call, actor);
    line.calls += 1;
    if (kind === 'failure') {
      line[isRefused(call) ? 'refused' : 'failed'] += 1;
      return;
    }
    if (kind === 'thought') line.thoughts += 1;
    if (verb === 'created') line.created += 1;
    if (verb === 'erased') line.erased += 1;
    if (verb === 'session sealed') line.sealed += 1;
    const step = stepOf(call);
    if (step !== undefined) line[step] += 1;
    // It was abandoned by whoever had it.
    if (takenFrom !== '') this.#lineOf(call, takenFrom).abandoned += 1;
  }

  /** The lines of a period, of one agent or project where one is named. */
  lines(filter: Omit<Filter, 'words'>): Line[] {
    return [...this.#lines.values()].filter(
      ({ day, agent, project }) =>
        isInPeriod(day, filter) &&
        (filter.agent === '' || filter.agent === agent) &&
        (filter.project === '' || filter.project === project),
    );
  }

  #lineOf({ at, project }: Pick<CountedCall, 'at' | 'project'>, agent: string): Line {
    const day = at.slice(0, 10);
    const name = JSON.stringify([day, agent, project]);
    const known = this.#lines.get(name);
    if (known !== undefined) return known;
    if (this.#lines.size >= LINES_MAX && agent !== OTHERS)
      return this.#lineOf({ at: '', project: OTHERS }, OTHERS);
    const line = { ...nothing(), day, agent, project: project || NO_PROJECT };
    this.#lines.set(name, line);
    return line;
  }
}

/** The lines that `nameOf` gives the same name, added up; the busiest first. */
export function sumBy(lines: readonly Line[], nameOf: (line: Line) => string): NamedCounts[] {
  const sums = new Map<string, Line[]>();
  for (const line of lines) {
    const own = sums.get(nameOf(line)) ?? [];
    own.push(line);
    sums.set(nameOf(line), own);
  }
  return [...sums]
    .map(([name, own]) => ({ name, ...sumOf(own) }))
    .sort((a, b) => b.calls - a.calls || (a.name < b.name ? -1 : 1));
}

export function sumOf(lines: readonly Counts[]): Counts {
  const sum = nothing();
  for (const line of lines) for (const name of ALL) sum[name] += line[name];
  return sum;
}

function nothing() {
  return Object.fromEntries(ALL.map((name) => [name, 0])) as Record<(typeof ALL)[number], number>;
}

function isRefused({ verb }: CountedCall): boolean {
  return verb === 'refused' || verb === 'not admitted';
}

/** A task is started when somebody takes it up, not when work on it goes on after a stop. */
function stepOf({ from, to }: CountedCall): 'started' | 'finished' | 'cancelled' | undefined {
  if (to === 'done' || to === 'DONE') return 'finished';
  if (to === 'cancelled' || to === 'CANCELLED') return 'cancelled';
  return (to === 'in_progress' && from === 'todo') || from === 'INIT' ? 'started' : undefined;
}

type GlancedCall = CountedCall &
  Pick<ReturnType<typeof tellCall>, 'task' | 'error' | 'reason' | 'thought' | 'commit' | 'text'> & {
    readonly title?: string | undefined;
  };

/** What happened to one task. */
export interface Happened {
  readonly task_id: string;
  readonly title: string;
  readonly project: string;
  readonly by: string;
  readonly at: string;
}

export type Glance = ReturnType<typeof glanceAt>;

/**
 * Looks at the calls of a period, in any order: how much of everything there was, and what it was; of one agent where one
 * is named. What an agent abandoned is told by a call of another.
 */
export function glanceAt(calls: Iterable<GlancedCall>, agent = '') {
  const isMeant = (name: string) => agent === '' || agent === name;
  const tally = new Tally();
  const lists = { finished: [] as Happened[], started: [] as Happened[], cancelled: [] as Happened[] };
  const abandoned: (Happened & { readonly taken_over_by: string })[] = [];
  const erased: { what: string; by: string; at: string }[] = [];
  const refusals = new Grouped<{ code: string; reason: string; count: number }>();
  const toldAt = new Map<string, string>();
  const commits = new Grouped<{ commit: string }>();
  for (const call of calls) {
    const { actor: by, at, kind, error, task: task_id, title = '', project, takenFrom } = call;
    if (!isMeant(by) && !isMeant(takenFrom)) continue;
    tally.add(call);
    const happened: Happened = { task_id, title, project: project || NO_PROJECT, by, at };
    if (kind === 'failure') {
      if (!isRefused(call) || !isMeant(by)) continue;
      const refusal = refusals.at(
        error,
        { code: error, reason: '', count: 0 },
        { agents: by, tasks: task_id },
      );
      refusal.count += 1;
      // The newest one that is told, in whichever order they come.
      if (call.reason !== '' && at >= (toldAt.get(error) ?? '')) {
        toldAt.set(error, at);
        refusal.reason = call.reason;
      }
      continue;
    }
    if (takenFrom !== '' && isMeant(takenFrom))
      abandoned.push({ ...happened, by: takenFrom, taken_over_by: by });
    if (!isMeant(by)) continue;
    const step = stepOf(call);
    if (step !== undefined) lists[step].push(happened);
    if (call.verb === 'erased') erased.push({ what: call.text, by, at });
    const { commit, thought } = call;
    if (commit !== '') commits.at(commit, { commit }, { thoughts: thought, tasks: task_id });
  }
  // The newest first.
  const byTime = <T extends { readonly at: string }>(some: T[]) =>
    some.sort((a, b) => (a.at < b.at ? 1 : -1));
  const lines = tally.lines({ project: '', agent, since: '', until: '' });
  const cells = sumBy(lines, ({ agent, project }) => JSON.stringify([agent, project]));
  return {
    totals: withoutCalls(sumOf(lines)),
    by_agent: sumBy(lines, ({ agent }) => agent).map(withoutCalls),
    by_project: sumBy(lines, ({ project }) => project).map(withoutCalls),
    by_agent_and_project: cells.map(withoutCalls).map(({ name, ...counts }) => {
      const [agent, project] = JSON.parse(name) as [string, string];
      return { agent, project, ...counts };
    }),
    finished: byTime(lists.finished),
    started: byTime(lists.started),
    cancelled: byTime(lists.cancelled),
    abandoned: byTime(abandoned),
    erased: byTime(erased),
    refused: refusals.all('agents', 'tasks').sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1)),
    commits: commits.all('thoughts', 'tasks'),
  };
}

/** Reads are no part of a glance, so how many calls there were would mislead. */
function withoutCalls<T extends Counts>({ calls: _, ...counts }: T) {
  return counts;
}

/** Things by name, each with lists of what it was seen with. */
class Grouped<T extends object> {
  readonly #groups = new Map<string, { readonly group: T; readonly seen: Map<string, Set<string>> }>();

  at(name: string, first: T, seen: Readonly<Record<string, string>>): T {
    const found = this.#groups.get(name) ?? { group: first, seen: new Map<string, Set<string>>() };
    for (const [list, one] of Object.entries(seen))
      if (one !== '') found.seen.set(list, (found.seen.get(list) ?? new Set()).add(one));
    this.#groups.set(name, found);
    return found.group;
  }

  all<Names extends string>(...names: readonly Names[]): (T & Readonly<Record<Names, readonly string[]>>)[] {
    return [...this.#groups.values()].map(({ group, seen }) => {
      const lists = names.map((name) => [name, [...(seen.get(name) ?? [])].sort()] as const);
      return { ...group, ...(Object.fromEntries(lists) as Record<Names, string[]>) };
    });
  }
}
