import type { CallQuery, Filter } from '../../filter.ts';
import type { Counts, Glance, NamedCounts, Period } from '../../glance.ts';
import type { Abandoned } from '../../live/form.ts';
import type { Call, Session, Task, Thought } from '../../records.ts';
import type { Comparison } from './compare.ts';
import type { CallDetail } from './detail.ts';

/** What the views ask about a log. A bundle answers from memory, a server page by page; the views do not know which. */
export interface Log {
  choices(): Promise<Choices>;
  summary(filter: Filter): Promise<Summary>;
  /** Every status that there is, with its first cards. */
  board(filter: Filter): Promise<readonly Column[]>;
  /** Whose holders were gone or silent, and when that was seen. No log can prove it. */
  abandoned(): Promise<Abandoned>;
  /** Further cards of one column. */
  cards(filter: Filter, column: Pick<Column, 'workflow' | 'status'>, from: number): Promise<readonly Task[]>;
  trail(query: CallQuery): Promise<CallPage>;
  sessions(filter: Filter, from: number): Promise<SessionPage>;
  session(id: string): Promise<Session | undefined>;
  task(id: string): Promise<TaskDetail | undefined>;
  /** The call of an audit row (`#12`), or the one that recorded a thought (`Θ-0001`). */
  call(id: string): Promise<CallDetail | undefined>;
  /** Compares a key or a checkpoint that somebody kept elsewhere. */
  compare(text: string): Promise<Comparison>;
}

/** What can be chosen in the filters. */
export interface Choices {
  readonly projects: readonly string[];
  readonly agents: readonly string[];
}

export interface Column {
  readonly workflow: string;
  readonly status: string;
  readonly count: number;
  /** The first ones, the most urgent first. */
  readonly tasks: readonly Task[];
}

export interface CallPage {
  readonly calls: readonly Call[];
  /** How many match in all, where that is known without reading the whole log. */
  readonly total?: number;
  /** Calls of the log, whatever the filter. */
  readonly all: number;
  /** What to go on after; absent at the end. */
  readonly next?: number;
}

export type SessionLine = Pick<
  Session,
  'id' | 'task' | 'isSealed' | 'isWrong' | 'started_at' | 'auditor_id' | 'sealed'
>;

export interface SessionPage {
  readonly sessions: readonly SessionLine[];
  readonly total: number;
}

/** A task that another one depends on, belongs to or holds. */
export interface Related {
  readonly id: string;
  readonly how: 'depends on' | 'part of' | 'needed by' | 'has the part';
  readonly title: string;
  readonly status: string;
}

export interface TaskDetail {
  readonly task: Task;
  readonly related: readonly Related[];
  /** What was done to it and thought about it, refusals included, the newest last. */
  readonly history: readonly Call[];
  /** Calls before these. */
  readonly earlier: number;
  readonly thoughts: readonly Thought[];
}

/** A commit that a thought names. */
export type NamedCommit = Pick<Thought, 'id' | 'task' | 'commit_sha' | 'branch' | 'observed' | 'recorded_at'>;

export interface Summary {
  /** The tasks as they are now: these three are all of them. */
  readonly tasks: Readonly<Record<'finished' | 'open' | 'cancelled', number>>;
  readonly sessions: Readonly<Record<'sealed' | 'open', number>>;
  /** What happened in the period. */
  readonly counts: Counts;
  readonly agents: readonly NamedCounts[];
  readonly projects: readonly NamedCounts[];
  readonly first: string;
  readonly last: string;
  readonly finished: readonly Task[];
  readonly moving: readonly Task[];
  readonly commits: readonly NamedCommit[];
  /** A period that whoever made the report wants to be looked at. */
  readonly glance?: Period & { readonly at: Glance; readonly reasons: ReadonlyMap<string, string> };
  /** Who counted: this browser, over rows that it checked, or a server, up to a row. */
  readonly countedBy: 'browser' | { readonly through: number; readonly of: number };
}
