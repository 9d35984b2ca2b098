import type { tellCall } from './telling.ts';

// A period at a glance: what was finished, started, refused, abandoned and erased, by agent and by project. Computed
// from the calls of the period, for the command line and for the page, so that both give the same numbers.

/** What is counted of each agent in each project. Every count is of calls, so the sums over either add up. */
export const COUNTED = [
  ...(['created', 'started', 'finished', 'cancelled', 'refused', 'failed'] as const),
  ...(['abandoned', 'erased', 'thoughts', 'sealed'] as const),
] as const;
export type Counts = Readonly<Record<(typeof COUNTED)[number], number>>;

export type GlancedCall = Pick<
  ReturnType<typeof tellCall>,
  'at' | 'actor' | 'tool' | 'task' | 'session' | 'kind' | 'verb' | 'error' | 'reason' | 'thought' | 'commit'
> &
  Pick<ReturnType<typeof tellCall>, 'from' | 'to' | 'takenFrom' | 'text'> & {
    /** The project that the arguments name, for a call about no task. */
    readonly project?: string;
  };

/** A stretch of time, both ends included. Times in UTC with milliseconds: text order is time order. */
export interface Period {
  readonly since: string;
  readonly until: string;
}

/** Where a call belongs that is about no task. */
const NO_PROJECT = '—';

export interface GlancedTask {
  readonly title: string;
  readonly project: string;
}

/** What happened to one task. */
export interface Happened {
  readonly task_id: string;
  readonly title: string;
  readonly project: string;
  readonly by: string;
  readonly at: string;
}

export type Glance = ReturnType<typeof glanceAt>;

/** Looks at the calls of a period, in any order. `taskOf` knows the tasks, and `taskOfSession` whose session one is. */
export function glanceAt(
  calls: Iterable<GlancedCall>,
  taskOf: (id: string) => GlancedTask | undefined,
  taskOfSession: (id: string) => string | undefined,
) {
  const cells = new Map<string, { agent: string; project: string; counts: Record<keyof Counts, number> }>();
  const lists = { finished: [] as Happened[], started: [] as Happened[], cancelled: [] as Happened[] };
  const abandoned: (Happened & { readonly taken_over_by: string })[] = [];
  const erased: { what: string; by: string; at: string }[] = [];
  const refusals = new Map<
    string,
    { code: string; reason: string; tasks: Set<string>; agents: Set<string>; count: number }
  >();
  const commits = new Map<string, { thoughts: Set<string>; tasks: Set<string> }>();

  function count(agent: string, project: string, what: keyof Counts): void {
    const key = JSON.stringify([agent, project]);
    const cell = cells.get(key) ?? { agent, project, counts: noCounts() };
    cell.counts[what] += 1;
    cells.set(key, cell);
  }

  for (const call of calls) {
    const { actor, at, kind, verb, from, to, error } = call;
    const id = call.task || (taskOfSession(call.session) ?? '');
    const task = taskOf(id);
    const project = task?.project ?? (call.project || NO_PROJECT);
    const happened: Happened = { task_id: id, title: task?.title ?? '', project, by: actor, at };
    const add = (what: keyof Counts, agent = actor) => count(agent, project, what);
    if (kind === 'failure') {
      const isRefused = verb === 'refused' || verb === 'not admitted';
      add(isRefused ? 'refused' : 'failed');
      if (isRefused) {
        const refusal = refusals.get(error) ?? {
          code: error,
          reason: '',
          tasks: new Set(),
          agents: new Set(),
          count: 0,
        };
        refusal.count += 1;
        refusal.reason ||= call.reason;
        refusal.agents.add(actor);
        if (id !== '') refusal.tasks.add(id);
        refusals.set(error, refusal);
      }
      continue;
    }
    if (verb === 'created') add('created');
    const step = stepOf(from, to);
    if (step !== undefined) {
      add(step);
      lists[step].push(happened);
    }
    if (call.takenFrom !== '') {
      add('abandoned', call.takenFrom);
      abandoned.push({ ...happened, by: call.takenFrom, taken_over_by: actor });
    }
    if (verb === 'erased') {
      add('erased');
      erased.push({ what: call.text, by: actor, at });
    }
    if (verb === 'session sealed') add('sealed');
    if (kind === 'thought') {
      add('thoughts');
      if (call.commit !== '') {
        const named = commits.get(call.commit) ?? { thoughts: new Set(), tasks: new Set() };
        named.thoughts.add(call.thought);
        named.tasks.add(id);
        commits.set(call.commit, named);
      }
    }
  }
  // The newest first.
  const byTime = <T extends { readonly at: string }>(some: T[]) =>
    some.sort((a, b) => (a.at < b.at ? 1 : -1));
  const all = [...cells.values()];
  return {
    totals: sumOf(all),
    by_agent: grouped(all, 'agent'),
    by_project: grouped(all, 'project'),
    by_agent_and_project: all.map(({ counts, ...cell }) => ({ ...cell, ...counts })),
    finished: byTime(lists.finished),
    started: byTime(lists.started),
    cancelled: byTime(lists.cancelled),
    abandoned: byTime(abandoned),
    erased: byTime(erased),
    refused: [...refusals.values()]
      .sort((a, b) => b.count - a.count)
      .map(({ tasks, agents, ...refusal }) => ({
        ...refusal,
        agents: [...agents].sort(),
        tasks: [...tasks].sort(),
      })),
    commits: [...commits].map(([commit, { thoughts, tasks }]) => ({
      ...{ commit, thoughts: [...thoughts].sort(), tasks: [...tasks].sort() },
    })),
  };
}

/** A task is started when somebody takes it up, not when work on it goes on after a stop. */
export function stepOf(from: string, to: string): 'started' | 'finished' | 'cancelled' | undefined {
  if (to === 'done' || to === 'DONE') return 'finished';
  if (to === 'cancelled' || to === 'CANCELLED') return 'cancelled';
  return (to === 'in_progress' && from === 'todo') || from === 'INIT' ? 'started' : undefined;
}

function noCounts(): Record<keyof Counts, number> {
  return Object.fromEntries(COUNTED.map((name) => [name, 0])) as Record<keyof Counts, number>;
}

type Cell = { readonly agent: string; readonly project: string; readonly counts: Counts };

function sumOf(cells: readonly Cell[]): Counts {
  const sum = noCounts();
  for (const { counts } of cells) for (const name of COUNTED) sum[name] += counts[name];
  return sum;
}

function grouped(cells: readonly Cell[], by: 'agent' | 'project') {
  const names = [...new Set(cells.map((cell) => cell[by]))].sort();
  return names.map((name) => ({ name, ...sumOf(cells.filter((cell) => cell[by] === name)) }));
}
