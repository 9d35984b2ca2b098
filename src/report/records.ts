import type { SessionRow, TaskRow, ThoughtRow } from '../domains/facts.ts';
import { isHash, sha256Hex } from '../integrity/digest.ts';
import {
  callColumn,
  formatId,
  SESSION_RECORDS,
  SESSIONS,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../log/tables.ts';
import { ERASED } from '../log/texts.ts';
import type { NamedText } from '../storage/text-ids.ts';
import { listIn } from '../untrusted.ts';
import { auditRow, type Finding } from '../verify/finding.ts';
import { type JsonObject, objectIn } from '../verify/rules/payloads.ts';
import type { Source, SourceRow, Walked } from '../verify/source.ts';
import { isPosition, isText, members } from '../verify/sources/forms.ts';
import { effectsOf, statesNamed } from '../verify/sources/rows.ts';
import { tellCall, textFields, textOf } from './telling.ts';

/** Calls, tasks, thoughts and sessions. */
export type Records = Awaited<ReturnType<typeof readRecords>>;

interface Besides {
  readonly findings?: readonly Finding[];
  /** Texts that came another way, by their digests. */
  readonly texts?: ReadonlyMap<string, string> | undefined;
  readonly lastSeen?: Walked['lastSeen'];
}

/** Everything that some rows tell, with what the source holds beside them. */
export async function readRecords(
  source: Pick<Source, 'states' | 'texts'>,
  rows: ReadonlyMap<number, SourceRow>,
  { findings = [], texts, lastSeen }: Besides = {},
) {
  const told = pairRows(rows.values());
  const state = await readState(source, told);
  const gone = findings.filter(({ kind, table }) => kind === 'missing' && table === 'texts');
  const missing = new Set(gone.map(({ expected }) => expected));
  const text = await loadTexts(source, textsIn(told, state), missing, texts);
  const calls = tellCalls(told, state, text, new Set(findings.map(({ position }) => position)));
  const shown = { state, text, calls, rows, wrong: new Set(findings.map(({ record }) => record)), lastSeen };
  return {
    ...{ text, calls, stateRows: [...state.values()].reduce((sum, { size }) => sum + size, 0) },
    ...{ tasks: tasksOf(shown), thoughts: thoughtsOf(shown), sessions: sessionsOf(shown) },
  };
}

/** The two rows of a call with their attached data. Every field is a stranger's. */
interface Told {
  readonly position: number;
  /** Its position, or 0 where the call never ended. */
  readonly exit: number;
  readonly enter: JsonObject;
  /** The last one that is here. */
  readonly row: JsonObject;
  readonly args: JsonObject;
  readonly result: JsonObject;
  /** Why it was refused. */
  readonly error?: JsonObject | undefined;
  /** What the server saw outside the database. */
  readonly outside?: JsonObject | undefined;
}

/** Pairs the two rows of each call, in the order in which the calls began. */
export function pairRows(rows: Iterable<SourceRow>): Told[] {
  const calls = new Map<number, Told>();
  for (const { position, text, payload } of rows) {
    const row = members(text);
    const body = members(payload?.body);
    if (row.stage === 'exit') {
      const begun = calls.get(Number(row.sequence_no));
      const alone = { position, exit: 0, enter: row, args: {} };
      const call = begun?.exit === 0 ? begun : alone;
      const [result = {}, error, outside] = [body.result, body.error, body.outside].map(objectIn);
      calls.set(call.position, { ...call, exit: position, row, result, error, outside });
    } else {
      calls.set(position, { position, exit: 0, enter: row, row, args: body, result: {} });
    }
  }
  return [...calls.values()];
}

/** One call told in a line. Every text in it is a stranger's. */
export type Call = ReturnType<typeof tellCalls>[number];

export function tellCalls(
  calls: readonly Told[],
  state: State,
  shown: ShowText,
  wrongAt: ReadonlySet<number | undefined>,
) {
  const of = (table: StateTable) => [...(state.get(table) ?? [])];
  const taskOfSession = new Map(
    of(SESSIONS).map(([id, { task_id }]) => [formatId(SESSIONS, id), idOf(TASKS, task_id)]),
  );
  const projects = new Map(of(TASKS).map(([id, { project }]) => [formatId(TASKS, id), textOf(project)]));
  return calls.map(({ position, exit, enter, row, args: given, ...end }) => {
    const texts = textFields(enter, given).map((field) => [field, shown(given[field])]);
    const args = { ...given, ...Object.fromEntries(texts) };
    const told = tellCall({ row: { ...row, at: enter.at }, args, ...end });
    const task = told.task || (taskOfSession.get(told.session) ?? '');
    /** Whether a finding names one of its rows. */
    const isWrong = wrongAt.has(position) || wrongAt.has(exit);
    const project = projects.get(task) ?? textOf(args.project);
    return { ...told, position, exit, task, project, ended: textOf(row.at), isWrong };
  });
}

const MISSING = '[missing]';

/** The text behind a digest, or why there is none; nothing for a field that was never given. */
type ShowText = (digest: unknown) => string;

/** Fetches the texts that will be shown. `missing` are digests whose text is gone without having been erased. */
export async function loadTexts(
  source: Pick<Source, 'texts'>,
  named: readonly NamedText[],
  missing: ReadonlySet<string | undefined>,
  others: ReadonlyMap<string, string> = new Map(),
): Promise<ShowText> {
  const texts = [...(await source.texts(named)).values()];
  const found = new Map(texts.map(({ digest, text }) => [digest, text]));
  return (digest) => {
    if (!isText(digest)) return '';
    return found.get(digest) ?? others.get(digest) ?? (missing.has(digest) ? MISSING : ERASED);
  };
}

/** Rows of state by id, for each table. Every field is a stranger's. */
type State = ReadonlyMap<StateTable, ReadonlyMap<number, JsonObject>>;

/** Reads the rows of state that the calls wrote. */
async function readState(source: Pick<Source, 'states'>, calls: readonly Told[]): Promise<State> {
  const effects = calls.flatMap(({ row }) => effectsOf(row));
  const fieldsIn = (rows: ReadonlyMap<number, string>) =>
    new Map([...rows].map(([id, text]) => [id, members(text)]));
  return new Map([...(await statesNamed(source, effects))].map(([table, rows]) => [table, fieldsIn(rows)]));
}

/** The texts that calls and rows of state name. */
function textsIn(calls: readonly Told[], state: State): NamedText[] {
  const inCalls = calls.flatMap(({ position, enter, args }) =>
    textFields(enter, args).map((field) => ({ call: position, digest: textOf(args[field]) })),
  );
  const inState = [...state].flatMap(([table, rows]) =>
    [...rows.values()].flatMap((fields) => textsOfRow(table, fields)),
  );
  return [...inCalls, ...inState];
}

/** The texts that a row of state names. */
export function textsOfRow(table: StateTable, fields: JsonObject): NamedText[] {
  return table.texts.flatMap((column) => {
    const [call, digest] = [fields[callColumn(table, column)], fields[column]];
    return isPosition(call) && isText(digest) ? [{ call, digest }] : [];
  });
}

interface Shown {
  readonly state: State;
  readonly text: ShowText;
  readonly calls: readonly Call[];
  readonly rows: ReadonlyMap<number, SourceRow>;
  /** Records that findings name. */
  readonly wrong: ReadonlySet<string>;
  readonly lastSeen: Walked['lastSeen'];
}

export type Task = ReturnType<typeof tasksOf>[number];

function tasksOf({ state, text, wrong, lastSeen }: Omit<Shown, 'calls' | 'rows'>) {
  return [...(state.get(TASKS) ?? [])].map(([number, fields]) => {
    const id = formatId(TASKS, number);
    const { labels } = members(`{"labels":${textOf(fields.labels)}}`);
    return {
      ...columnsOf<TaskRow>(TASKS, fields, text),
      id,
      progress: countOf(fields.progress),
      labels: Array.isArray(labels) ? labels.filter(isText) : [],
      parent: idOf(TASKS, fields.parent_id),
      dependsOn: listIn(textOf(fields.depends_on)).flatMap((one) => idOf(TASKS, one) || []),
      isProofGrade: fields.proof_grade === 1,
      /** The last row of its holder's process and name. */
      last_seen: lastSeen?.of(textOf(fields.held_process), textOf(fields.held_by)) ?? '',
      isWrong: wrong.has(id),
    };
  });
}

/** The columns of a row as texts, each digest replaced by what it stands for. */
function columnsOf<R>({ facts, texts }: StateTable, fields: JsonObject, text: ShowText) {
  const shown = facts.map((name) => [name, texts.includes(name) ? text(fields[name]) : textOf(fields[name])]);
  return Object.fromEntries(shown) as Readonly<Record<keyof R, string>>;
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/** An id as people write it; '' for what is not the number of a row. */
function idOf(table: StateTable, number: unknown): string {
  return isPosition(number) ? formatId(table, number) : '';
}

export type Thought = ReturnType<typeof thoughtsOf>[number];

function thoughtsOf({ state, text, wrong }: Omit<Shown, 'calls' | 'rows'>) {
  return [...(state.get(THOUGHTS) ?? [])].map(([number, fields]) => {
    const id = formatId(THOUGHTS, number);
    return {
      ...columnsOf<ThoughtRow>(THOUGHTS, fields, text),
      id,
      task: idOf(TASKS, fields.task_id),
      session: idOf(SESSIONS, fields.session_id),
      /** Which of branch and commit the server read from the repository itself. */
      observed: listIn(textOf(fields.observed)).filter(isText),
      tests: listed(text(fields.tests_run)),
      blockers: listed(text(fields.blockers)),
      /** The exit row of the call that recorded it. */
      position: countOf(fields.position),
      isWrong: wrong.has(id),
    };
  });
}

/** The entries of a stored list, or the text as it is. */
function listed(text: string): string {
  const list = listIn(text);
  return list.length > 0 && list.every(isText) ? list.join(', ') : text;
}

export type Session = ReturnType<typeof sessionsOf>[number];

function sessionsOf(shown: Shown) {
  const { state, text, wrong } = shown;
  const leaves = leavesOf(shown);
  return [...(state.get(SESSIONS) ?? [])].map(([number, fields]) => {
    const id = formatId(SESSIONS, number);
    const own = leaves.get(number) ?? [];
    const only = isPosition(fields.sealed_task_id) ? formatId(TASKS, fields.sealed_task_id) : undefined;
    return {
      ...columnsOf<SessionRow>(SESSIONS, fields, text),
      id,
      task: idOf(TASKS, fields.task_id),
      isSealed: fields.status === 'finalized',
      position: countOf(fields.position),
      /** The records that are here. */
      leaves: only === undefined ? own : own.filter(({ task }) => task === only),
      /** How many the seal is over; 0 while it is open. */
      sealed: countOf(fields.leaf_count),
      isWrong: wrong.has(id),
      /** Whether the calls behind it may be forged: what a row says of itself does not tell which they were. */
      isDoubtful: wrong.size > 0,
    };
  });
}

export type Leaf = NonNullable<ReturnType<typeof leafOf>>;

const LABEL_CHARACTERS_MAX = 160;

/** The records of each session in order, as far as they are here. */
function leavesOf(shown: Shown): ReadonlyMap<number, Leaf[]> {
  const told = new Map(shown.calls.map(({ exit, verb, text }) => [exit, `${verb} ${text}`]));
  const leaves = new Map<number, Leaf[]>();
  for (const record of shown.state.get(SESSION_RECORDS)?.values() ?? []) {
    const { session_id: session } = record;
    const leaf = leafOf(shown, record, told);
    if (!isPosition(session) || leaf === undefined) continue;
    leaves.set(session, leaves.get(session) ?? []);
    leaves.get(session)?.push({ ...leaf, label: leaf.label.slice(0, LABEL_CHARACTERS_MAX) });
  }
  return leaves;
}

/** `position` is that of the call that wrote the record. */
function leafOf({ state, text, rows }: Shown, record: JsonObject, told: ReadonlyMap<number, string>) {
  const { task_id, kind, ref } = record;
  if (!isPosition(task_id) || !isPosition(ref)) return undefined;
  const task = formatId(TASKS, task_id);
  if (kind === 'thought') {
    const { hash, type, content, position } = state.get(THOUGHTS)?.get(ref) ?? {};
    if (!isText(hash) || !isHash(hash)) return undefined;
    const label = `${textOf(type)}: ${text(content)}`;
    return { record: formatId(THOUGHTS, ref), task, hash, position: countOf(position), label };
  }
  const row = rows.get(ref)?.text;
  if (row === undefined) return undefined;
  const label = `${task} ${told.get(ref) ?? 'changed'}`;
  return { record: auditRow(ref), task, hash: sha256Hex(row), position: ref, label };
}
