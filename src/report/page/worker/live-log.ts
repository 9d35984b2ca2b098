import { saltedDigest } from '../../../integrity/digest.ts';
import { ProofError, verifyConsistency } from '../../../integrity/proof-verifier.ts';
import { headIn, keyId, keyIn, openIfValid, originOfKey } from '../../../trust/opening.ts';
import type { CallQuery, Filter } from '../../filter.ts';
import type { Abandoned, Preamble, VerdictState } from '../../live/form.ts';
import type { Task } from '../../records.ts';
import { type Comparison, KEY, unknown } from './compare.ts';
import { callDetail } from './detail.ts';
import type { Choices, Column, Log, Related, Summary } from './log.ts';
import { type OpenedSource, openSource } from './open.ts';

/** What the page knows of the log that it follows. */
export interface LiveState {
  /** The newest head, which extends every one before it; absent where nothing is signed. */
  readonly head?: {
    readonly size: number;
    readonly key: string;
    readonly keyId: string;
    readonly isCreator: boolean;
  };
  /** The size of the first head, and how many different ones came since. */
  readonly firstSize: number;
  readonly heads: number;
  /** Rows that came with a proof, which was checked here. */
  readonly proved: number;
  /** Rows that the server says there are. */
  readonly rows: number;
  /** What the server says of its own verification. */
  readonly server: VerdictState;
  /** What cannot be explained by a log that only grows. It stays. */
  readonly alarm?: string;
  /** Why the server shows nothing. */
  readonly reason?: string;
}

/** A head that was checked. */
interface Head {
  readonly size: number;
  readonly root: string;
  readonly note: string;
  readonly key: string;
}

/** An answer whose certificate holds, or that has none. */
interface Part {
  readonly preamble: Preamble;
  readonly opened?: OpenedSource;
}

/** Something that an honest server and a log that only grows cannot give. */
class Alarm extends Error {}

/**
 * The log behind a server. It takes nothing on trust: each answer is a certificate, which is verified like any other, under a
 * head that must extend the last one. Hostile input enters here.
 */
export function liveLog(base: string): { readonly log: Log; poll(): Promise<LiveState> } {
  let head: Head | undefined;
  let origin: string | undefined;
  let state: LiveState = { firstSize: 0, heads: 0, proved: 0, rows: 0, server: {} };

  async function ask(
    name: string,
    about: Readonly<Record<string, string | number | boolean>> = {},
  ): Promise<Part> {
    const given = Object.entries({ ...about, at: head?.size ?? 0 }).map(([key, value]) => [
      key,
      String(value),
    ]);
    const query = new URLSearchParams(given);
    const response = await fetch(`${base}${name}?${query}`, { cache: 'no-store', credentials: 'omit' });
    const text = await response.text();
    if (!response.ok) throw new Error(text || `the server answered with ${response.status}`);
    const end = text.indexOf('\n');
    const preamble: Preamble = JSON.parse(text.slice(0, end));
    try {
      accept(preamble);
      const certificate = text.slice(end + 1);
      const opened = certificate === '' ? undefined : await open(certificate, preamble.texts);
      return { preamble, ...(opened && { opened }) };
    } catch (error) {
      if (error instanceof Alarm) state = { ...state, alarm: state.alarm ?? error.message };
      throw error;
    }
  }

  /** Takes a head over that extends the last one. */
  function accept({ head: sent, rows, consistency, origin: name, reason }: Preamble): void {
    state = { ...without(state, 'reason'), rows, ...(reason !== undefined && { reason }) };
    if (sent === undefined) {
      if (head !== undefined) throw new Alarm(`The log was signed before, but is not signed now: ${reason}`);
      return;
    }
    const key = keyIn(sent.key);
    const opened = key && openIfValid(sent.note, [key]);
    if (opened === undefined || opened.origin !== name)
      throw new Alarm('The server sent a head that its key has not signed');
    if (origin !== undefined && origin !== name)
      throw new Alarm(`The server now shows another log: ${name} instead of ${origin}`);
    const { size, root } = opened;
    if (head !== undefined) mustExtend(head, { size, root }, consistency);
    const isNew = head?.size !== size;
    origin = name;
    head = { size, root, note: sent.note, key: sent.key };
    state = {
      ...state,
      head: { size, key: sent.key, keyId: keyId(sent.key), isCreator: originOfKey(sent.key) === name },
      firstSize: state.firstSize || size,
      heads: state.heads + (isNew ? 1 : 0),
    };
  }

  async function open(certificate: string, sent: Preamble['texts'] = []): Promise<OpenedSource> {
    const key = keyIn(head?.key);
    // A text is the one that a record names where it fits the digest; the record itself is proved by its rows.
    const others = sent.filter(fitsDigest);
    if (others.length < sent.length) throw new Alarm('The server sent a text that does not match its digest');
    const opened = await openSource({ certificate: new Blob([certificate]) }, () => undefined, {
      trusted: key === undefined ? [] : [key],
      texts: new Map(others.map(({ digest, text }) => [digest, text])),
    });
    const [finding] = opened.verdictView.findings;
    if (finding !== undefined) throw new Alarm(`A check of what the server sent failed: ${finding.message}`);
    // Under another head than the one that was compared, nothing would be shown by it.
    const isUnderHead = opened.verdict.judged.some(
      ({ note, status }) => status === 'consistent' && note === head?.note,
    );
    if (!isUnderHead) throw new Alarm('The server sent a proof that is not under the newest head');
    state = { ...state, proved: state.proved + opened.read.size };
    return opened;
  }

  /** An answer that shows something, or throws why it does not. */
  async function show(name: string, about?: Parameters<typeof ask>[1]): Promise<Part> {
    const part = await ask(name, about);
    if (part.preamble.reason !== undefined) throw new Error(part.preamble.reason);
    return part;
  }

  const log: Log = {
    async choices() {
      return (await show('choices')).preamble.said as Choices;
    },
    async summary(filter) {
      const { preamble, opened } = await show('summary', { ...filter });
      type Said = Omit<Summary, 'finished' | 'moving' | 'commits'> &
        Readonly<Record<'finished' | 'moving' | 'commits', readonly string[]>>;
      const said = preamble.said as Said;
      const thoughts = new Map(opened?.thoughts.map((thought) => [thought.id, thought]));
      return {
        ...said,
        finished: tasksAmong(opened, said.finished),
        moving: tasksAmong(opened, said.moving),
        commits: said.commits.flatMap((id) => thoughts.get(id) ?? []),
      };
    },
    async board(filter) {
      const { preamble, opened } = await show('board', { ...filter });
      const columns = preamble.said as readonly (Omit<Column, 'tasks'> & {
        readonly tasks: readonly string[];
      })[];
      return columns.map((column) => ({ ...column, tasks: tasksAmong(opened, column.tasks) }));
    },
    async abandoned() {
      return (await show('abandoned')).preamble.said as Abandoned;
    },
    async cards(filter, { workflow, status }, from) {
      const { preamble, opened } = await show('cards', { ...filter, workflow, status, from });
      return tasksAmong(opened, preamble.asked);
    },
    async trail(query: CallQuery) {
      const { preamble, opened } = await show('trail', { ...query, kinds: query.kinds.join(',') });
      const said = preamble.said as { readonly next?: number; readonly all: number };
      return { ...said, calls: callsAmong(opened, preamble.asked) };
    },
    async sessions(filter: Filter, from) {
      const { preamble, opened } = await show('sessions', { ...filter, from });
      const { total } = preamble.said as { readonly total: number };
      const byId = new Map(opened?.sessions.map((session) => [session.id, session]));
      return { sessions: (preamble.asked ?? []).flatMap((id) => byId.get(String(id)) ?? []), total };
    },
    async session(id) {
      const { opened } = await show('session', { id });
      return opened?.sessions.find((session) => session.id === id);
    },
    async task(id) {
      const { preamble, opened } = await show('task', { id });
      const [task] = tasksAmong(opened, [id]);
      if (task === undefined || opened === undefined) return undefined;
      const said = preamble.said as { readonly related: readonly Related[]; readonly earlier: number };
      const related = said.related.flatMap(({ id: other, how }) => {
        const [found] = tasksAmong(opened, [other]);
        return found === undefined ? [] : { id: found.id, how, title: found.title, status: found.status };
      });
      const history = callsAmong(opened, preamble.asked);
      return { task, related, history, earlier: said.earlier, thoughts: opened.thoughts };
    },
    async call(id) {
      const { preamble, opened } = await show('call', { id });
      const [position] = preamble.asked ?? [];
      const call = opened?.calls.find((one) => one.exit === position || one.position === position);
      return call && opened && (await callDetail(opened, call));
    },
    compare: async (text) => compareLive(text, head, ask),
  };

  return {
    log,
    async poll() {
      try {
        const { preamble } = await ask('head');
        state = { ...state, server: preamble.said === undefined ? {} : (preamble.said as VerdictState) };
      } catch (error) {
        if (!(error instanceof Alarm)) throw error;
      }
      return state;
    },
  };
}

type SentText = NonNullable<Preamble['texts']>[number];

function fitsDigest({ digest, salt, text }: SentText): boolean {
  return /^[0-9a-f]{32}$/.test(salt) && saltedDigest(salt, text) === digest;
}

function without<T extends object, K extends keyof T>(value: T, name: K): Omit<T, K> {
  const { [name]: _, ...rest } = value;
  return rest;
}

/** Throws where a head cannot come after another one in a log that only grows. */
function mustExtend(old: Head, { size, root }: Pick<Head, 'size' | 'root'>, proof: readonly string[]): void {
  if (size < old.size)
    throw new Alarm(
      `${old.size} rows were signed, but now there are ${size}: rows were removed while this page was open`,
    );
  try {
    verifyConsistency({ size1: old.size, root1: old.root, size2: size, root2: root, proof });
  } catch (error) {
    if (!(error instanceof ProofError)) throw error;
    throw new Alarm(
      `The log of ${size} rows does not begin with the ${old.size} rows seen before: it was rewritten while this page was open`,
    );
  }
}

function tasksAmong(opened: OpenedSource | undefined, ids: Preamble['asked'] = []): Task[] {
  const byId = new Map(opened?.tasks.map((task) => [task.id, task]));
  return ids.flatMap((id) => byId.get(String(id)) ?? []);
}

function callsAmong(opened: OpenedSource | undefined, exits: Preamble['asked'] = []) {
  const byExit = new Map(opened?.calls.map((call) => [call.exit, call]));
  return exits.flatMap((exit) => byExit.get(Number(exit)) ?? []);
}

/** Compares a key, or a checkpoint by a proof that the log has grown out of it. */
async function compareLive(
  given: string,
  head: Head | undefined,
  ask: (name: string, about: Readonly<Record<'from' | 'to', number>>) => Promise<Part>,
): Promise<Comparison> {
  const text = given.trim();
  if (head === undefined) return unknown('Nothing is signed here, so nothing can be compared.');
  if (KEY.test(text))
    return text === head.key
      ? { tone: 'good', message: `The key you gave has signed the head over ${head.size} rows.` }
      : { tone: 'bad', message: 'The newest head was signed by another key than the one you gave.' };
  const [note, key] = [`${text}\n`, keyIn(head.key)];
  const claimed = headIn(note);
  if (claimed === undefined)
    return unknown('This is neither a key (name+id+key) nor a checkpoint of several lines.');
  const kept = key && openIfValid(note, [key]);
  if (kept === undefined)
    return { tone: 'bad', message: 'The key of this log has not signed the checkpoint you gave.' };
  if (kept.size > head.size)
    return {
      tone: 'bad',
      message: `Your checkpoint covers ${kept.size} rows, but the log has ${head.size}: its newest rows are gone.`,
    };
  const { preamble } = await ask('since', { from: kept.size, to: head.size });
  try {
    verifyConsistency({
      ...{ size1: kept.size, root1: kept.root, size2: head.size, root2: head.root },
      proof: preamble.said as readonly string[],
    });
    return {
      tone: 'good',
      message: `Your checkpoint agrees with the first ${kept.size} audit rows of this log.`,
    };
  } catch {
    return {
      tone: 'bad',
      message: `Your checkpoint belongs to another history of the first ${kept.size} rows.`,
    };
  }
}
