import { type Clock, pauseEvery } from '../../clock.ts';
import { numberFrom } from '../../domains/lookup.ts';
import { asError } from '../../errors.ts';
import { provingFiles } from '../../export/certificate.ts';
import type { SignedHead } from '../../export/heads.ts';
import { closed, rowsOfCall, type Selection, select } from '../../export/selection.ts';
import { consistencyProof } from '../../integrity/proofs.ts';
import { formatId, parseId, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import { logNodes } from '../../log/tree.ts';
import type { Reader, StorageEngine } from '../../storage/engine.ts';
import { keyId, keyIn, openIfValid } from '../../trust/opening.ts';
import { readView } from '../../trust/own-log.ts';
import { formatCertificate } from '../../verify/sources/certificate.ts';
import { Cells } from '../../verify/sources/database-cells.ts';
import { members } from '../../verify/sources/forms.ts';
import { remembering } from '../../verify/sources/part.ts';
import { type CallQuery, EVERYTHING, type Filter, HISTORY_MAX, KINDS, SESSIONS_PAGE } from '../filter.ts';
import { sumBy, sumOf } from '../glance.ts';
import { textsOfRow } from '../records.ts';
import { Counting } from './counting.ts';
import {
  type Abandoned,
  type Preamble,
  RECENT_MAX,
  RELATED_MAX,
  SESSION_RECORDS_MAX,
  type VerdictState,
} from './form.ts';
import { RefusedRequest } from './http.ts';
import { readBoard, readCards, readRelated, readStanding } from './tasks.ts';
import { readTrail } from './trail.ts';

/** What a question is answered with: some rows to be proved, and what is said besides. */
interface Found {
  readonly positions?: readonly number[];
  readonly selection?: Selection;
  /** What the certificate is about; an audit row unless it is said. */
  readonly subject?: string;
  readonly asked?: readonly (string | number)[];
  readonly said?: unknown;
  readonly reason?: string;
}

type Answer = (tx: Reader, given: URLSearchParams, rows: number) => Promise<Found>;

/** A verification that runs beside the answers. */
interface Verification {
  state(): VerdictState;
  run(rows: number): Promise<void>;
}

/** Answers the questions of the live page from a database. It reads one snapshot for each and never writes. */
export function liveAnswers(
  storage: StorageEngine,
  {
    clock,
    replay,
    abandoned,
  }: { clock: Clock; replay: Verification; abandoned: (tx: Reader) => Promise<Abandoned> },
) {
  const counting = new Counting(storage, pauseEvery(clock));
  /** Full subtrees never change, so that a hash is read once. */
  const nodes = new Map<string, string>();

  const ANSWERS: Readonly<Record<string, Answer>> = {
    head: async () => ({ said: { ...replay.state(), counted: counting.through } }),
    /** The proof that the log of one size begins the one of another. */
    async since(tx, given, rows) {
      const [from, to] = [countOf(given, 'from'), countOf(given, 'to')];
      if (from < 1 || from > to || to > rows) throw new RefusedRequest('these are not two sizes of the log');
      return { said: from === to ? [] : await consistencyProof(remembering(logNodes(tx), nodes), from, to) };
    },
    async choices(tx) {
      const sql = 'SELECT DISTINCT project FROM tasks ORDER BY project LIMIT 500';
      const projects = (await tx.all<{ project: string }>(sql)).map(({ project }) => project);
      const agents = new Set(counting.tally.lines(EVERYTHING).map(({ agent }) => agent));
      return { said: { projects, agents: [...agents].sort() } };
    },
    async summary(tx, given, rows) {
      const filter = filterIn(given);
      const standing = await readStanding(tx, filter, RECENT_MAX);
      const sessions = await countSessions(tx);
      const commits = await namedCommits(tx, filter, RECENT_MAX);
      const lines = counting.tally.lines(filter);
      return {
        positions: [...standing.finished, ...standing.moving, ...commits].map(({ position }) => position),
        said: {
          ...{ tasks: standing.tasks, sessions, counts: sumOf(lines) },
          agents: sumBy(lines, ({ agent }) => agent).slice(0, 200),
          projects: sumBy(lines, ({ project }) => project).slice(0, 200),
          ...{ first: counting.tally.first, last: counting.tally.last },
          finished: standing.finished.map(({ id }) => formatId(TASKS, id)),
          moving: standing.moving.map(({ id }) => formatId(TASKS, id)),
          commits: commits.map(({ id }) => formatId(THOUGHTS, id)),
          countedBy: { through: Math.min(counting.through, rows), of: rows },
        },
      };
    },
    /** What only this machine can see, and no log can prove. */
    abandoned: async (tx) => ({ said: await abandoned(tx) }),
    async board(tx, given) {
      const columns = await readBoard(tx, filterIn(given));
      return {
        positions: columns.flatMap(({ tasks }) => tasks.map(({ position }) => position)),
        said: columns.map(({ tasks, ...column }) => ({
          ...column,
          tasks: tasks.map(({ id }) => formatId(TASKS, id)),
        })),
      };
    },
    async cards(tx, given) {
      const column = { workflow: textOf(given, 'workflow'), status: textOf(given, 'status') };
      const tasks = await readCards(tx, filterIn(given), column, countOf(given, 'from'));
      return {
        positions: tasks.map(({ position }) => position),
        asked: tasks.map(({ id }) => formatId(TASKS, id)),
      };
    },
    async trail(tx, given, rows) {
      const { exits, next } = await readTrail(tx, queryIn(given), rows, clock);
      return { positions: exits, asked: exits, said: { next, all: Math.floor(rows / 2) } };
    },
    async sessions(tx, given) {
      const { sql, values } = sessionCondition(filterIn(given));
      const total = await numberFrom(tx, `SELECT count(*) AS value FROM sessions s WHERE ${sql}`, ...values);
      const page = await tx.all<{ id: number; position: number }>(
        `SELECT s.id, s.position FROM sessions s WHERE ${sql} ORDER BY s.id DESC LIMIT ? OFFSET ?`,
        ...[...values, SESSIONS_PAGE, countOf(given, 'from')],
      );
      return {
        positions: page.map(({ position }) => position),
        asked: page.map(({ id }) => formatId(SESSIONS, id)),
        said: { total },
      };
    },
    async session(tx, given) {
      const subject = textOf(given, 'id');
      const id = parseId(SESSIONS, subject);
      if (id === undefined || !(await tx.get('SELECT 1 AS one FROM sessions WHERE id = ?', id))) return {};
      const sql = 'SELECT count(*) AS value FROM session_records WHERE session_id = ?';
      const records = await numberFrom(tx, sql, id);
      if (records > SESSION_RECORDS_MAX)
        return {
          reason: `${subject} has ${records} records, more than this page can show. "colibri prove ${subject}" writes all of them; open that file in verify.html`,
        };
      return { subject, asked: [subject], selection: await select(tx, subject) };
    },
    async task(tx, given) {
      const subject = textOf(given, 'id');
      const id = parseId(TASKS, subject);
      const task = id && (await tx.get<{ position: number }>('SELECT position FROM tasks WHERE id = ?', id));
      if (!id || !task) return {};
      const related = await readRelated(tx, id, RELATED_MAX);
      const all = await numberFrom(tx, 'SELECT count(*) AS value FROM task_calls WHERE task_id = ?', id);
      const calls = await tx.all<{ position: number }>(
        'SELECT position FROM task_calls WHERE task_id = ? ORDER BY position DESC LIMIT ?',
        ...[id, HISTORY_MAX],
      );
      return {
        positions: [task, ...related, ...calls].map(({ position }) => position),
        asked: calls.map(({ position }) => position).reverse(),
        said: {
          related: related.map(({ id: other, how }) => ({ id: formatId(TASKS, other), how })),
          earlier: all - calls.length,
        },
      };
    },
    async call(tx, given) {
      const id = textOf(given, 'id');
      const thought = parseId(THOUGHTS, id);
      const sql = 'SELECT position FROM thoughts WHERE id = ?';
      const position = /^#\d{1,15}$/.test(id)
        ? Number(id.slice(1))
        : ((thought && (await tx.get<{ position: number }>(sql, thought))?.position) ?? 0);
      const exists = await tx.get('SELECT 1 AS one FROM actions WHERE position = ?', position);
      return exists === undefined ? {} : { positions: await rowsOfCall(tx, position), asked: [position] };
    },
  };

  /** The text of an answer. Throws `RefusedRequest` for a question that there is not. */
  async function answer(name: string, given: URLSearchParams): Promise<string> {
    const asked = Object.hasOwn(ANSWERS, name) ? ANSWERS[name] : undefined;
    if (asked === undefined) throw new RefusedRequest('there is no such question');
    try {
      await storage.assertInPlace();
    } catch (error) {
      return line({ origin: undefined, rows: 0, consistency: [], reason: asError(error).message });
    }
    return await storage.read(async (tx) => {
      const { origin, rows, head } = await newestHead(tx);
      // Only while somebody looks. What cannot be read is for the verification to say.
      void counting.catchUp(rows).catch(() => undefined);
      void replay.run(rows);
      const preamble: Preamble = { origin, rows, consistency: [] };
      if (head === undefined)
        return line({ ...preamble, reason: 'Nothing of this log is signed, so nothing in it can be proved' });
      if (head.size > rows)
        return line({
          ...preamble,
          reason: `${head.size} rows were signed, but ${rows} are there: the newest rows are gone`,
        });
      const tree = remembering(logNodes(tx), nodes);
      const at = countOf(given, 'at');
      const begun = { ...preamble, head: { note: head.note, key: head.key } };
      const consistency = at > 0 && at < head.size ? await consistencyProof(tree, at, head.size) : [];
      try {
        const { positions = [], selection, subject, ...rest } = await asked(tx, given, head.size);
        const covered = positions.filter((position) => position <= head.size);
        const chosen = selection ?? (covered.length > 0 ? await closed(tx, covered) : undefined);
        if (chosen === undefined || chosen.positions.length === 0)
          return line({ ...begun, consistency, ...rest });
        const last = chosen.positions.at(-1) ?? 0;
        if (last > head.size)
          return line({
            ...begun,
            consistency,
            reason: `Rows after ${head.size} are not signed, so what they changed cannot be shown`,
          });
        const files = await provingFiles(tx, chosen, head, { nodes: tree });
        const about = subject ?? `#${covered[0] ?? last}`;
        const meta = line({ ...begun, consistency, ...rest, texts: await otherTexts(tx, chosen) });
        return `${meta}${formatCertificate({ subject: about, origin: origin ?? '', files })}`;
      } catch (error) {
        if (error instanceof RefusedRequest) throw error;
        // Whatever is wrong with the log, the page says it, and the next question is answered.
        return line({ ...begun, consistency, reason: asError(error).message });
      }
    });
  }

  return { answer, stop: () => counting.stop() };
}

function line(preamble: Preamble): string {
  return `${JSON.stringify(preamble)}\n`;
}

/** The largest head that its own key has signed. Hostile input enters here: nobody has said whose key that is. */
async function newestHead(tx: Reader) {
  const { origin, heads, last } = await readView(tx);
  const signed = heads.flatMap(({ key, checkpoint: note }): SignedHead[] => {
    const known = keyIn(key);
    const opened = known && openIfValid(note, [known]);
    if (opened === undefined || opened.origin !== origin || opened.size === 0) return [];
    return [{ key, keyId: keyId(key), note, size: opened.size, root: opened.root }];
  });
  return { origin, rows: last.position, head: signed.sort((a, b) => a.size - b.size).at(-1) };
}

/** The texts of records that were given to a call which is not among the rows, such as the title of a task that was moved. */
async function otherTexts(tx: Reader, { positions, state }: Selection) {
  const cells = new Cells(tx);
  const given = new Set(positions);
  const named = [...state].flatMap(([table, rows]) =>
    [...rows.values()].flatMap((row) => textsOfRow(table, members(row))),
  );
  const others = named.filter(({ call }) => !given.has(call));
  const digests = new Set(others.map(({ digest }) => digest));
  return [...(await cells.texts(others)).values()].filter(({ digest }) => digests.has(digest));
}

async function countSessions(tx: Reader) {
  const sql = 'SELECT status, count(*) AS count FROM sessions GROUP BY status';
  const counts = await tx.all<{ status: string; count: number }>(sql);
  const sealed = counts.find(({ status }) => status === 'finalized')?.count ?? 0;
  return { sealed, open: counts.reduce((sum, { count }) => sum + count, 0) - sealed };
}

/** Thoughts looked at for commits, the newest ones. */
const THOUGHTS_MAX = 20_000;

async function namedCommits(tx: Reader, { project, agent, since, until }: Filter, max: number) {
  const last = await numberFrom(tx, 'SELECT max(id) AS value FROM thoughts');
  return await tx.all<{ id: number; position: number }>(
    `SELECT h.id, h.position FROM thoughts h JOIN tasks t ON t.id = h.task_id
     WHERE h.id > ? AND h.commit_sha IS NOT NULL AND t.project = coalesce(?, t.project)
       AND h.recorded_by = coalesce(?, h.recorded_by) AND h.recorded_at >= ? AND h.recorded_at < ?
     ORDER BY h.id DESC LIMIT ?`,
    ...[last - THOUGHTS_MAX, project || null, agent || null, since, until === '' ? 'Z' : `${until}U`, max],
  );
}

function sessionCondition({ project, agent, since, until }: Filter) {
  const sql = `EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.task_id AND t.project = coalesce(?, t.project))
    AND (s.auditor_id = coalesce(?, s.auditor_id) OR s.started_by = coalesce(?, s.started_by))
    AND s.started_at >= ? AND s.started_at < ?`;
  const [of, by] = [project || null, agent || null];
  return { sql, values: [of, by, by, since, until === '' ? 'Z' : `${until}U`] };
}

// What a request says. Hostile input enters here: anything else than these forms is refused.

const TEXT_MAX = 512;

function textOf(given: URLSearchParams, name: string): string {
  const text = given.get(name) ?? '';
  if (text.length > TEXT_MAX) throw new RefusedRequest(`${name} is too long`);
  return text;
}

function countOf(given: URLSearchParams, name: string): number {
  const text = textOf(given, name);
  if (!/^\d{0,15}$/.test(text)) throw new RefusedRequest(`${name} is not a count`);
  return Number(text);
}

function dayOf(given: URLSearchParams, name: string): string {
  const day = textOf(given, name);
  if (!/^(?:\d{4}-\d\d-\d\d)?$/.test(day)) throw new RefusedRequest(`${name} is not a day`);
  return day;
}

function filterIn(given: URLSearchParams): Filter {
  return {
    project: textOf(given, 'project'),
    agent: textOf(given, 'agent'),
    since: dayOf(given, 'since'),
    until: dayOf(given, 'until'),
    words: textOf(given, 'words'),
  };
}

function queryIn(given: URLSearchParams): CallQuery {
  const kinds = textOf(given, 'kinds').split(',');
  return {
    ...filterIn(given),
    kinds: KINDS.filter((kind) => kinds.includes(kind)),
    newestFirst: textOf(given, 'newestFirst') === 'true',
    after: countOf(given, 'after'),
  };
}
