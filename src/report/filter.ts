import type { Kind } from './telling.ts';

// What a reader of the page wants to see. One rule for a bundle in the browser and for a server with a database.

/** What the views are narrowed to; an empty text is everything. Dates are days in UTC, both included. */
export interface Filter {
  readonly project: string;
  readonly agent: string;
  readonly since: string;
  readonly until: string;
  readonly words: string;
}

/** Which calls, and from where on. */
export interface CallQuery extends Filter {
  /** None is all of them. */
  readonly kinds: readonly Kind[];
  readonly newestFirst: boolean;
  /** The position of the last call that was listed; 0 at the beginning. */
  readonly after: number;
}

export const EVERYTHING: Filter = { project: '', agent: '', since: '', until: '', words: '' };

/** Calls listed at once. */
export const CALLS_PAGE = 100;
/** Cards of a column listed at once. */
export const CARDS_PAGE = 20;
/** Sessions listed at once. */
export const SESSIONS_PAGE = 50;
/** Calls in the history of a task or a session that are shown with it; the trail has the rest. */
export const HISTORY_MAX = 100;

export const KINDS = ['thought', 'task', 'session', 'owner', 'read', 'failure'] as const satisfies Kind[];

export function isInPeriod(at: string, { since, until }: Pick<Filter, 'since' | 'until'>): boolean {
  const day = at.slice(0, 10);
  return (since === '' || day >= since) && (until === '' || day <= until);
}

/** A word that is an id: it must be that record, not one whose id begins alike. */
const ID = /^(?:[taθ]-\d{4,15}|#\d{1,15})$/u;

/** The words of a search, in lower case. */
export function wordsOf({ words }: Pick<Filter, 'words'>): string[] {
  return words.toLowerCase().split(/\s+/u).filter(Boolean);
}

/** The one record that a search asks for, if it asks for one: `T-0007`, `Θ-0015`, `A-0001` or `#12`. */
export function idIn(filter: Pick<Filter, 'words'>): string | undefined {
  const [word = '', ...more] = wordsOf(filter);
  return more.length === 0 && ID.test(word) ? word.toUpperCase() : undefined;
}

/** What a record is found by: its ids, and every word of its text. */
export interface Searched {
  readonly ids: readonly string[];
  /** In lower case. */
  readonly text: string;
}

export function isFound({ ids, text }: Searched, words: readonly string[]): boolean {
  return words.every((word) => (ID.test(word) ? ids.includes(word.toUpperCase()) : text.includes(word)));
}

/** A call as far as a filter looks at it. */
export interface FilteredCall {
  readonly at: string;
  readonly actor: string;
  readonly kind: Kind;
  readonly project: string;
}

/** Whether a call is wanted, but for the words of a search. */
export function isWanted(call: FilteredCall, query: CallQuery): boolean {
  return (
    (query.kinds.length === 0 || query.kinds.includes(call.kind)) &&
    (query.agent === '' || call.actor === query.agent) &&
    (query.project === '' || call.project === query.project) &&
    isInPeriod(call.at, query)
  );
}

/** What a call is found by. */
export function searchedCall(call: {
  readonly position: number;
  readonly exit: number;
  readonly ids: readonly string[];
  readonly tool: string;
  readonly actor: string;
  readonly verb: string;
  readonly error: string;
  readonly text: string;
}): Searched {
  const { position, exit, ids, tool, actor, verb, error, text } = call;
  return {
    ids: [...ids, `#${position}`, `#${exit}`],
    text: `${ids.join(' ')} ${tool} ${actor} ${verb} ${error} ${text}`.toLowerCase(),
  };
}
