import { type Filter, isInPeriod } from './filter.ts';
import { stepOf } from './glance.ts';
import type { Kind } from './telling.ts';

/** What happened on one day, by one agent, in one project. */
export interface Counts {
  calls: number;
  thoughts: number;
  created: number;
  started: number;
  finished: number;
  cancelled: number;
  refused: number;
  erased: number;
}

const NONE: Counts = {
  ...{ calls: 0, thoughts: 0, created: 0, started: 0, finished: 0, cancelled: 0, refused: 0, erased: 0 },
};

/** A call as far as it is counted. */
export interface CountedCall {
  readonly at: string;
  readonly actor: string;
  readonly project: string;
  readonly kind: Kind;
  readonly tool: string;
  /** The statuses of a step that was taken. */
  readonly from: string;
  readonly to: string;
}

export interface Line extends Counts {
  readonly day: string;
  readonly agent: string;
  readonly project: string;
}

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
    const { at, actor, project, kind, tool } = call;
    this.first ||= at;
    this.last = at;
    const line = this.#lineOf(at.slice(0, 10), actor, project);
    line.calls += 1;
    if (kind === 'failure') line.refused += 1;
    if (kind === 'thought') line.thoughts += 1;
    if (kind === 'owner' && tool === 'owner_erase') line.erased += 1;
    if (kind !== 'task') return;
    if (tool === 'task_create') line.created += 1;
    const step = stepOf(call.from, call.to);
    if (step !== undefined) line[step] += 1;
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

  #lineOf(day: string, agent: string, project: string): Line {
    const isFull = this.#lines.size >= LINES_MAX;
    const name = JSON.stringify([day, agent, project]);
    const known = this.#lines.get(name);
    if (known !== undefined) return known;
    if (isFull && agent !== OTHERS) return this.#lineOf('', OTHERS, OTHERS);
    const line = { ...NONE, day, agent, project };
    this.#lines.set(name, line);
    return line;
  }
}

/** The lines with the same agent, or the same project, added up; the busiest first. */
export function sumBy(
  lines: readonly Line[],
  by: 'agent' | 'project',
): (Counts & { readonly name: string })[] {
  const sums = new Map<string, Counts & { readonly name: string }>();
  for (const line of lines) {
    const sum = sums.get(line[by]) ?? { name: line[by], ...NONE };
    addTo(sum, line);
    sums.set(line[by], sum);
  }
  return [...sums.values()].sort((a, b) => b.calls - a.calls || (a.name < b.name ? -1 : 1));
}

export function sumOf(lines: readonly Counts[]): Counts {
  const sum = { ...NONE };
  for (const line of lines) addTo(sum, line);
  return sum;
}

const NAMES = [
  'calls',
  'thoughts',
  'created',
  'started',
  'finished',
  'cancelled',
  'refused',
  'erased',
] as const;

function addTo(sum: Counts, line: Counts): void {
  for (const name of NAMES) sum[name] += line[name];
}
