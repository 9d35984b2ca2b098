import { isHash, sha256Hex } from '../../../integrity/digest.ts';
import {
  formatId,
  parseId,
  SESSION_RECORDS,
  SESSIONS,
  STATE_TABLES,
  type StateTable,
  TASKS,
  THOUGHTS,
} from '../../../log/tables.ts';
import { auditRow } from '../../../verify/finding.ts';
import type { SourceRow } from '../../../verify/source.ts';
import type { Call, Leaf, Session, Task } from '../protocol.ts';
import { countOf, type Fields, fieldsOf, isPosition, readJson, textOf, textsOf } from './fields.ts';
import type { WatchedSource } from './source.ts';
import type { Told } from './story.ts';
import type { Texts } from './texts.ts';

const LABEL_CHARACTERS_MAX = 160;

/** Rows of state by id, for each table. Every field is a stranger's. */
export type State = ReadonlyMap<StateTable, ReadonlyMap<number, Fields>>;

/** Reads the rows of state that the calls wrote. */
export async function readState(source: WatchedSource, calls: readonly Told[]): Promise<State> {
  const ids = new Map(STATE_TABLES.map((table) => [table, new Set<number>()]));
  for (const { exit } of calls)
    for (const effect of Array.isArray(exit?.effects) ? exit.effects : []) {
      const { table: name, id: text } = fieldsOf(effect);
      const table = STATE_TABLES.find((known) => known.name === name);
      const id = table === undefined ? undefined : parseId(table, textOf(text));
      if (table !== undefined && id !== undefined) ids.get(table)?.add(id);
    }
  const state = new Map<StateTable, Map<number, Fields>>();
  for (const [table, known] of ids) {
    const rows = await source.states(
      table,
      [...known].sort((a, b) => a - b),
    );
    state.set(table, new Map([...rows].map(([id, text]) => [id, readJson(text)])));
  }
  return state;
}

/** The digests that stand in rows of state. */
export function digestsInState(state: State): unknown[] {
  return [...state].flatMap(([{ texts }, rows]) =>
    [...rows.values()].flatMap((fields) => texts.map((column) => fields[column])),
  );
}

export interface Shown {
  readonly state: State;
  readonly texts: Texts;
  readonly calls: readonly Call[];
  readonly rows: ReadonlyMap<number, SourceRow>;
  /** Records that findings speak of, as findings name them. */
  readonly wrong: ReadonlySet<string>;
}

export function tasksOf({ state, texts, wrong }: Shown): Task[] {
  return [...(state.get(TASKS) ?? [])].map(([number, fields]) => {
    const id = formatId(TASKS, number);
    return {
      id,
      title: texts.shown(fields.title),
      description: texts.shown(fields.description),
      project: textOf(fields.project),
      workflow: textOf(fields.workflow),
      status: textOf(fields.status),
      statusSince: textOf(fields.status_since),
      statusBy: textOf(fields.status_by),
      priority: textOf(fields.priority),
      assignee: textOf(fields.assignee),
      progress: countOf(fields.progress),
      labels: textsOf(fields.labels),
      isProofGrade: fields.proof_grade === 1,
      blockedReason: texts.shown(fields.blocked_reason),
      createdAt: textOf(fields.created_at),
      createdBy: textOf(fields.created_by),
      isWrong: wrong.has(id),
    };
  });
}

export function sessionsOf(shown: Shown): Session[] {
  const { state, texts, wrong } = shown;
  const leaves = leavesOf(shown);
  return [...(state.get(SESSIONS) ?? [])].map(([number, fields]) => {
    const id = formatId(SESSIONS, number);
    const own = leaves.get(number) ?? [];
    const only = isPosition(fields.sealed_task_id) ? formatId(TASKS, fields.sealed_task_id) : undefined;
    return {
      id,
      task: isPosition(fields.task_id) ? formatId(TASKS, fields.task_id) : '',
      auditor: textOf(fields.auditor_id),
      reason: texts.shown(fields.reason),
      scope: textOf(fields.scope),
      status: textOf(fields.status),
      startedAt: textOf(fields.started_at),
      startedBy: textOf(fields.started_by),
      finalizedAt: textOf(fields.finalized_at),
      root: textOf(fields.merkle_root),
      position: countOf(fields.position),
      leaves: only === undefined ? own : own.filter(({ task }) => task === only),
      sealed: countOf(fields.leaf_count),
      isWrong: wrong.has(id),
    };
  });
}

/** The records of each session in order, as far as they are here. */
function leavesOf(shown: Shown): ReadonlyMap<number, Leaf[]> {
  const told = new Map(shown.calls.map(({ exit, verb, text }) => [exit, `${verb} ${text}`]));
  const leaves = new Map<number, Leaf[]>();
  for (const { session_id, task_id, kind, ref } of shown.state.get(SESSION_RECORDS)?.values() ?? []) {
    if (!isPosition(session_id) || !isPosition(task_id) || !isPosition(ref)) continue;
    const leaf = kind === 'thought' ? thoughtLeaf(shown, ref) : changeLeaf(shown, ref, told);
    if (leaf === undefined) continue;
    const before = leaves.get(session_id);
    const task = formatId(TASKS, task_id);
    const label = (kind === 'thought' ? leaf.label : `${task} ${leaf.label}`).slice(0, LABEL_CHARACTERS_MAX);
    if (before === undefined) leaves.set(session_id, [{ ...leaf, task, label }]);
    else before.push({ ...leaf, task, label });
  }
  return leaves;
}

function thoughtLeaf({ state, texts }: Shown, id: number): Omit<Leaf, 'task'> | undefined {
  const thought = state.get(THOUGHTS)?.get(id);
  const hash = textOf(thought?.hash);
  if (thought === undefined || !isHash(hash)) return undefined;
  return {
    record: formatId(THOUGHTS, id),
    hash,
    position: countOf(thought.position),
    label: `${textOf(thought.type)}: ${texts.shown(thought.content)}`,
  };
}

function changeLeaf(
  { rows }: Shown,
  position: number,
  told: ReadonlyMap<number, string>,
): Omit<Leaf, 'task'> | undefined {
  const text = rows.get(position)?.text;
  if (text === undefined) return undefined;
  return {
    record: auditRow(position),
    hash: sha256Hex(text),
    position,
    label: told.get(position) ?? 'changed',
  };
}
