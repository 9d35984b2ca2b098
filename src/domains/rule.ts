import type { StateTableName } from '../log/tables.ts';
import type { Sooner } from '../sooner.ts';
import type { WritingContext } from '../tool.ts';
import type { SessionRecordRow, SessionRow, TaskRow, ThoughtRow } from './facts.ts';
import type { Erasable } from './owner/rules.ts';

// A rule is a pure function of a call and of what it asks for. The writer answers from a transaction
// (domains/lookup.ts), the verifier from memory (verify/memory.ts): both run the same rule.

/** What a rule may know of its call. */
export interface Call
  extends Pick<WritingContext, 'actor' | 'source' | 'process' | 'at' | 'enter' | 'position'> {
  readonly outside: Outside;
}

/** What a rule was told from outside. Kept with the exit of every writing call, so that the call can be run again. */
export interface Outside {
  /** The projects that exist, where the owner has named them. */
  readonly projects?: readonly string[];
  readonly git?: GitEvidence;
  /** Name and digest of each skill in force. */
  readonly skills?: readonly { readonly name: string; readonly digest: string }[];
  /** Whether the process that holds the task was there, seen within the transaction. */
  readonly holder?: { readonly present: boolean };
}

/** What is checked out. A new branch has no commit, a detached head no branch. */
export interface GitEvidence {
  readonly branch?: string;
  readonly commit_sha?: string;
}

/** Everything a rule can ask. */
export interface Lookup {
  task(id: number): TaskRow | undefined;
  /** Which of these tasks there are. */
  existing(ids: readonly number[]): readonly number[];
  /** For each of these tasks, what it waits for: its dependencies and its children. */
  awaitedBy(ids: readonly number[]): ReadonlyMap<number, readonly number[]>;
  /** How many of its children and of the tasks that this row depends on are unfinished. */
  unmet(task: TaskRow): number;
  /** What is seen of a holder that is not the caller; a person at the command line has no process. */
  holder(actor: string, process: string | null): SeenHolder;
  session(id: number): SessionRow | undefined;
  openSession(task: number): SessionRow | undefined;
  /** Every open session that covers the task, by id: its own, and deep ones of the tasks above it. */
  coveringSessions(task: number): readonly SessionRow[];
  newestThought(task: number): NewestThought | undefined;
  /** How many thoughts of the task are in no seal. */
  unsealedThoughts(task: number): number;
  /** The hashes of the records of a session in the order written; of one task only where one is given. */
  leaves(session: number, onlyTask: number | null): readonly string[];
  /** The hash of a thought that is about to be recorded. */
  thoughtHash(thought: HashedThought): string;
  /** The digests of the texts that erasing this takes with it, as far as they are still there. */
  textsOf(erasable: Erasable): readonly string[];
  nextId(table: StateTableName): number;
  /** The next number within a project. */
  nextSequence(project: string): number;
}

/** A person at the command line is not looked for and counts as present. */
export interface SeenHolder {
  readonly present: boolean;
  /** The time of the last row of its process and name. */
  readonly last_seen?: string | undefined;
}

/** `sealed`: whether it is a leaf of a finalized session. */
export type NewestThought = Pick<ThoughtRow, 'id' | 'hash' | 'chain_position'> & { readonly sealed: boolean };

/** What a thought's hash is made of; `content` is the digest of the text, which the lookup knows. */
export type HashedThought = Pick<
  ThoughtRow,
  'task_id' | 'type' | 'content' | 'previous_hash' | 'recorded_at' | 'recorded_by'
>;

export type AsyncLookup = {
  readonly [K in keyof Lookup]: (...args: Parameters<Lookup[K]>) => Sooner<ReturnType<Lookup[K]>>;
};

/** A row that the call writes, whole. `previous` is the position that wrote it before, 0 for a new one. */
export type Written = { readonly previous: number } & (
  | { readonly table: 'tasks'; readonly row: TaskRow }
  | { readonly table: 'thoughts'; readonly row: ThoughtRow }
  | { readonly table: 'sessions'; readonly row: SessionRow }
  | { readonly table: 'session_records'; readonly row: SessionRecordRow }
);

export interface Ruling<R extends object = object> {
  readonly rows: readonly Written[];
  readonly result: R;
}

/** One step of a rule: named questions that can be answered together. */
type Question = { [K in keyof Lookup]: readonly [K, ...Parameters<Lookup[K]>] }[keyof Lookup];
type Questions = Readonly<Record<string, Question>>;
type Answers<Q extends Questions> = {
  readonly [N in keyof Q]: Q[N] extends readonly [infer K extends keyof Lookup, ...unknown[]]
    ? ReturnType<Lookup[K]>
    : never;
};

/** A rule under way. It refuses by throwing a ColibriError. */
export type Steps<R> = Generator<Questions, R, Answers<Questions>>;

/** A writing tool as the log knows it. */
export interface WritingRule<R extends object = object> {
  /** The arguments that are texts and are kept as digests. */
  readonly texts: readonly string[];
  /** Takes the kept arguments, with a digest in the place of each text. The schema they passed is the writer's. */
  readonly rule: (args: never, call: Call) => Steps<Ruling<R>>;
}

/** Asks several things at once: `const { task, open } = yield* ask({ task: ['task', id], open: ['openSession', id] })`. */
export function* ask<const Q extends Questions>(questions: Q): Steps<Answers<Q>> {
  return (yield questions) as Answers<Q>;
}

/** Runs a rule on answers that are at hand. */
export function settle<R>(steps: Steps<R>, lookup: Lookup): R {
  for (let step = steps.next(); ; ) {
    if (step.done === true) return step.value;
    const answers: Record<string, unknown> = {};
    for (const name in step.value) {
      const question = step.value[name];
      if (question !== undefined) answers[name] = answer(lookup, question);
    }
    step = steps.next(answers as Answers<Questions>);
  }
}

/** Runs a rule on answers that may have to be fetched; those of one step are fetched together. `first`: the step that it goes on from. */
export function settleAsync<R>(steps: Steps<R>, lookup: AsyncLookup, first = steps.next()): Sooner<R> {
  for (let step = first; ; ) {
    if (step.done === true) return step.value;
    const answers: Record<string, unknown> = {};
    const fetching: Promise<void>[] = [];
    for (const name in step.value) {
      const question = step.value[name];
      const found = question && answer(lookup, question);
      if (!(found instanceof Promise)) answers[name] = found;
      else
        fetching.push(
          found.then((fetched) => {
            answers[name] = fetched;
          }),
        );
    }
    const next = () => steps.next(answers as Answers<Questions>);
    // Asked for together: one that fails must not leave another unheard.
    if (fetching.length > 0) return Promise.all(fetching).then(() => settleAsync(steps, lookup, next()));
    step = next();
  }
}

/** Asks now what a rule would ask in its first step, of the kinds that the lookup remembers. One that refuses asks nothing. */
export async function foresee<R>(
  steps: Steps<R>,
  lookup: AsyncLookup,
  kinds: ReadonlySet<keyof Lookup>,
): Promise<void> {
  let questions: Questions = {};
  try {
    const { done, value } = steps.next();
    if (done !== true) questions = value;
  } catch {
    return;
  }
  const remembered = Object.values(questions).filter(([kind]) => kinds.has(kind));
  await Promise.all(remembered.map((question) => answer(lookup, question)));
}

/** No question has more than two arguments. */
function answer(lookup: Lookup | AsyncLookup, [kind, first, second]: readonly [keyof Lookup, ...unknown[]]) {
  return (lookup[kind] as (first: unknown, second: unknown) => unknown)(first, second);
}
