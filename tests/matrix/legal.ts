import { isTextOf } from '../../src/domains/owner/rules.ts';
import { RULES } from '../../src/domains/rules.ts';
import { canonicalJson } from '../../src/integrity/canonical-json.ts';
import type { NoteSigner } from '../../src/integrity/signed-note.ts';
import { formatId, SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../../src/log/tables.ts';
import { signStatement } from '../../src/trust/statement.ts';
import {
  type Cells,
  type ForgedLog,
  type ForgedRow,
  isWriting,
  type JsonObject,
  must,
  type NewCall,
} from './forge.ts';

// Calls as the server would have recorded them, at the end of the log. Each takes what shall be different: in the row it
// writes (`cells`), in its result (`result`), or in what it was told from outside (`outside`).

export interface Deviation {
  readonly cells?: Cells;
  readonly result?: JsonObject;
  readonly outside?: JsonObject;
  readonly actor?: string;
  readonly source?: 'mcp' | 'cli';
  readonly process?: string;
  /** Rows it writes besides. */
  readonly besides?: (call: NewCall) => ForgedRow['writes'];
}

const ALICE = 'alice';

/** A task like any other, in the project `web`. */
export function create(log: ForgedLog, args: JsonObject = {}, deviation: Deviation = {}): ForgedRow {
  const { actor = ALICE, cells = {}, outside = {} } = deviation;
  const { title = 'Planted', description, ...others } = args;
  const kept: JsonObject = { project: 'web', workflow: 'kanban', ...others };
  const id = log.nextId(TASKS);
  const numbers = log.rows.flatMap(({ writes }) =>
    writes.flatMap(({ table, row }) =>
      table === TASKS && row.project === kept.project ? Number(row.sequence) : [],
    ),
  );
  const sequence = 1 + Math.max(0, ...numbers);
  const status = kept.workflow === 'pipeline' ? 'INIT' : 'backlog';
  const { last } = log;
  return log.append({
    ...{ tool: 'task_create', actor, args: kept, outside },
    texts: { title, ...(description !== undefined && { description }) },
    result: {
      ...{ task_id: formatId(TASKS, id), status, created_at: last.fields.at, created_by: actor },
      ...{ sequence, workflow: kept.workflow, ...deviation.result },
    },
    writes: (call) => [
      {
        table: TASKS,
        row: {
          ...{ id, project: text(kept.project), sequence, title: text(call.args.title) },
          ...{
            title_call: call.enter,
            description: textOrNull(call.args.description),
            description_call: call.args.description === undefined ? null : call.enter,
            blocked_reason: null,
            blocked_reason_call: null,
            workflow: text(kept.workflow),
          },
          ...{
            status,
            status_since: call.at,
            status_by: actor,
            held_by: null,
            held_process: null,
            held_since: null,
          },
          ...{ progress: 0, priority: text(kept.priority ?? 'normal'), type: textOrNull(kept.type) },
          ...{
            proof_grade: kept.proof_grade === true ? 1 : 0,
            assignee: text(kept.assignee ?? 'unassigned'),
          },
          ...{ labels: canonicalJson(kept.labels ?? []), estimate_hours: numberOrNull(kept.estimate_hours) },
          ...{ parent_id: idOrNull(kept.parent_id), depends_on: canonicalJson(ids(kept.depends_on)) },
          ...{ created_at: call.at, created_by: actor, updated_at: call.at, updated_by: actor },
          ...{ position: call.position, ...cells },
        },
      },
      ...(deviation.besides?.(call) ?? []),
    ],
  });
}

/**
 * A change of a task that no open session covers. `cells` must hold what the arguments change, `result` and `outside` what
 * is seen of another who holds the task.
 */
export function update(log: ForgedLog, task: number, args: JsonObject, deviation: Deviation = {}): ForgedRow {
  const { actor = ALICE, cells = {}, outside = {} } = deviation;
  const before = log.state(TASKS, task);
  const { title, description, blocked_reason, ...others } = args;
  const texts = Object.fromEntries(
    Object.entries({ title, description, blocked_reason }).filter(([, value]) => value !== undefined),
  );
  const after: Cells = { ...before };
  for (const name of ['status', 'progress', 'priority', 'assignee', 'estimate_hours'] as const)
    if (name in others) after[name] = (others[name] as Cells[string]) ?? null;
  if (others.labels !== undefined) after.labels = canonicalJson(others.labels);
  if (others.depends_on !== undefined) after.depends_on = canonicalJson(ids(others.depends_on));
  const { at, process: last } = log.last.fields;
  const { source = 'mcp', process = last } = deviation;
  const caller = { actor, process: source === 'cli' ? null : process, at };
  if (others.status !== undefined) Object.assign(after, moved(before, String(others.status), caller));
  else if (others.takeover === true) Object.assign(after, heldBy(caller));
  Object.assign(after, cells);
  return log.append({
    ...{ tool: 'task_update', actor, source, process, texts, outside },
    args: { task_id: formatId(TASKS, task), ...others },
    result: {
      ...{
        task_id: formatId(TASKS, task),
        status: after.status,
        progress: after.progress,
        updated_at: at,
        updated_by: actor,
      },
      ...(others.status !== undefined && { previous_status: before.status }),
      ...deviation.result,
    },
    writes: (call) => {
      const digests: Cells = {};
      for (const name of Object.keys(texts))
        Object.assign(digests, { [name]: text(call.args[name]), [`${name}_call`]: call.enter });
      const stamp = { updated_at: call.at, updated_by: actor, position: call.position };
      return [
        { table: TASKS, row: { ...after, ...digests, ...stamp, ...cells } },
        ...(deviation.besides?.(call) ?? []),
      ];
    },
  });
}

interface Caller {
  readonly actor: string;
  readonly process: string | null;
  readonly at: string;
}

function heldBy({ actor, process, at }: Caller): Cells {
  return { held_by: actor, held_process: process, held_since: at };
}

function moved(before: Cells, to: string, caller: Caller): Cells {
  const isUnderWay =
    before.workflow === 'pipeline' ? !['INIT', 'DONE', 'CANCELLED'].includes(to) : to === 'in_progress';
  const isHolder =
    before.held_by === caller.actor && [null, caller.process].includes(before.held_process as null);
  return {
    ...{ status: to, status_since: caller.at, status_by: caller.actor },
    ...{ blocked_reason: null, blocked_reason_call: null },
    ...(to.toLowerCase() === 'done' && { progress: 100 }),
    ...(isUnderWay
      ? isHolder
        ? {}
        : heldBy(caller)
      : { held_by: null, held_process: null, held_since: null }),
  };
}

/** A thought on a task that no open session covers. */
export function think(
  log: ForgedLog,
  task: number,
  args: JsonObject = {},
  deviation: Deviation = {},
): ForgedRow {
  const { actor = ALICE, cells = {} } = deviation;
  const { content = 'Planted.', tests_run, blockers, metadata, ...others } = args;
  const outside = deviation.outside ?? { ...log.outsideOf(log.exit('thought_record')) };
  const git =
    typeof outside.git === 'object' ? (outside.git as { branch?: string; commit_sha?: string }) : {};
  const earlier = log.rows.flatMap(({ writes }) =>
    writes.filter((w) => w.table === THOUGHTS && w.row.task_id === task),
  );
  const id = log.nextId(THOUGHTS);
  const chain_position = earlier.length + 1;
  const { at } = log.last.fields;
  const lists = Object.fromEntries(
    Object.entries({ tests_run, blockers, metadata }).filter(([, value]) => value !== undefined),
  );
  const observed = ['branch', 'commit_sha'].filter((name) => others[name] === undefined && name in git);
  return log.append({
    ...{
      tool: 'thought_record',
      actor,
      args: { task_id: formatId(TASKS, task), type: 'plan', ...others },
      outside,
    },
    texts: { content, ...lists },
    result: {
      ...{
        thought_id: formatId(THOUGHTS, id),
        task_id: formatId(TASKS, task),
        type: others.type ?? 'plan',
        hash: '',
        previous_hash: null,
      },
      ...{ recorded_at: at, recorded_by: actor, chain_position, ...deviation.result },
    },
    writes: (call) => [
      {
        table: THOUGHTS,
        row: {
          ...{
            id,
            task_id: task,
            session_id: null,
            type: text(others.type ?? 'plan'),
            content: text(call.args.content),
          },
          ...{ tests_run: textOrNull(call.args.tests_run), blockers: textOrNull(call.args.blockers) },
          ...{ metadata: textOrNull(call.args.metadata), call: call.enter },
          ...{ previous_hash: null, hash: '', chain_position },
          ...{ recorded_at: call.at, recorded_by: actor, branch: textOrNull(others.branch ?? git.branch) },
          ...{
            commit_sha: textOrNull(others.commit_sha ?? git.commit_sha),
            observed: canonicalJson(observed),
          },
          ...{ position: call.position, ...cells },
        },
      },
      ...(deviation.besides?.(call) ?? []),
    ],
  });
}

/** A session on a task that has none open. */
export function open(
  log: ForgedLog,
  task: number,
  args: JsonObject = {},
  deviation: Deviation = {},
): ForgedRow {
  const { actor = ALICE, cells = {} } = deviation;
  const { reason, ...others } = args;
  const outside = deviation.outside ?? { ...log.outsideOf(log.exit('audit_session_start')) };
  const id = log.nextId(SESSIONS);
  const { at } = log.last.fields;
  const scope = others.scope ?? 'shallow';
  return log.append({
    ...{
      tool: 'audit_session_start',
      actor,
      args: { task_id: formatId(TASKS, task), auditor_id: 'eve', ...others },
      outside,
    },
    texts: reason === undefined ? {} : { reason },
    result: {
      ...{
        session_id: formatId(SESSIONS, id),
        task_id: formatId(TASKS, task),
        auditor_id: others.auditor_id ?? 'eve',
      },
      ...{ started_at: at, scope, ...deviation.result },
    },
    writes: (call) => [
      {
        table: SESSIONS,
        row: {
          ...{
            id,
            task_id: task,
            auditor_id: text(others.auditor_id ?? 'eve'),
            reason: textOrNull(call.args.reason),
            call: call.enter,
          },
          ...{ scope: text(scope), status: 'open', started_at: call.at, started_by: actor },
          ...{
            skills: canonicalJson(outside.skills ?? []),
            sealed_task_id: null,
            merkle_root: null,
            tree_depth: null,
          },
          ...{ leaf_count: null, finalized_at: null, finalized_by: null, position: call.position, ...cells },
        },
      },
      ...(deviation.besides?.(call) ?? []),
    ],
  });
}

/** Seals an open session with all its records. */
export function seal(
  log: ForgedLog,
  session: number,
  args: JsonObject = {},
  deviation: Deviation = {},
): ForgedRow {
  const { actor = ALICE, cells = {}, outside = {} } = deviation;
  const before = log.state(SESSIONS, session);
  const { at } = log.last.fields;
  return log.append({
    ...{
      tool: 'merkle_finalize',
      actor,
      args: { session_id: formatId(SESSIONS, session), ...args },
      outside,
    },
    result: {
      ...{
        session_id: formatId(SESSIONS, session),
        merkle_root: '',
        tree_depth: 0,
        leaf_count: 0,
        finalized_at: at,
      },
      ...{ frozen: true, ...deviation.result },
    },
    writes: (call) => [
      {
        table: SESSIONS,
        row: {
          ...before,
          ...{ status: 'finalized', sealed_task_id: idOrNull(args.task_id), finalized_at: call.at },
          ...{ finalized_by: actor, position: call.position, ...cells },
        },
      },
      ...(deviation.besides?.(call) ?? []),
    ],
  });
}

/** A record of an open session, as the call that adds it would write it. */
export function record(log: ForgedLog, session: number, cells: Cells, call: NewCall) {
  const row: Cells = {
    id: log.nextId(SESSION_RECORDS),
    session_id: session,
    ...cells,
    position: call.position,
  };
  return { table: SESSION_RECORDS, row };
}

/** A call that was refused. */
export function refuse(
  log: ForgedLog,
  tool: string,
  args: JsonObject,
  code: string,
  { actor = ALICE, outside: seen = {} }: Deviation = {},
): ForgedRow {
  const outside = tool === 'thought_record' ? { ...log.outsideOf(log.exit('thought_record')) } : seen;
  return log.append({ tool, actor, args, outside, error: { code, message: 'No.' } });
}

/** What is answered of who held a task before, as the rows so far tell it. */
export function former(log: ForgedLog, task: number, present = true): JsonObject {
  const { held_by, held_process, held_since } = log.state(TASKS, task);
  const own = log.rows.filter(({ fields }) => fields.actor === held_by && fields.process === held_process);
  const second = own.at(-1)?.fields.at.slice(0, 19);
  const last_seen = own.find(({ fields }) => fields.at.slice(0, 19) === second)?.fields.at;
  return { held_by, since: held_since, ...(last_seen !== undefined && { last_seen }), present };
}

/** A move by a holder whose process has ended meanwhile. */
export function restarted(log: ForgedLog, task: number, actor: string): Deviation {
  const taken_over_from = former(log, task, false);
  return { actor, outside: { holder: { present: false } }, result: { taken_over_from } };
}

/** The owner accepts the log as it is, giving up a signed head where one is named. */
export function adopt(log: ForgedLog, source: 'mcp' | 'cli' = 'cli', lostSize?: number): ForgedRow {
  return log.append({ ...adoption(log, log.signer, lostSize), actor: ALICE, source });
}

/** The call by which a key adopts the log, with what it signs. */
export function adoption(log: ForgedLog, signer: NoteSigner, lostSize?: number) {
  const lost = { size: lostSize, root: 'a'.repeat(64), key: log.signer.verifierKey };
  const said = {
    key: signer.verifierKey,
    rows: log.rows.length,
    ...(lostSize !== undefined && { lost }),
  };
  const args = { ...said, signed: signStatement(signer, { tool: 'owner_adopt', args: said }) };
  return {
    tool: 'owner_adopt',
    args,
    texts: { reason: 'Fine by me.' },
    result: { adopted_rows: log.rows.length + 1, ...args },
  };
}

/** The log ends here and goes on elsewhere. */
export function transfer(
  log: ForgedLog,
  { source = 'cli', result = {} }: { readonly source?: 'mcp' | 'cli'; readonly result?: JsonObject } = {},
): ForgedRow {
  const to = 'postgres:team';
  return log.append({
    ...{ tool: 'owner_transfer', actor: ALICE, source, args: { to } },
    result: { to, rows: log.rows.length + 2, ...result },
  });
}

/** It goes on. */
export function receive(log: ForgedLog): ForgedRow {
  const from = '/home/alice/colibri.db';
  return log.append({ tool: 'owner_receive', actor: ALICE, source: 'cli', args: { from }, result: { from } });
}

/** What an erasure of a record takes: the texts of the calls that wrote it, and of refused ones about it. */
export function textsOf(log: ForgedLog, record: string, task_id?: string): string[] {
  return log.rows.flatMap(({ fields, writes }) => {
    if (fields.stage !== 'exit' || !fields.schema_valid || !isWriting(fields.tool)) return [];
    const args = log.argsOf(log.at(fields.sequence_no));
    const [first] = fields.outcome === 'ok' ? writes : [];
    const wrote = first && formatId(first.table, Number(first.row.id));
    const task = args.task_id === undefined ? wrote : String(args.task_id);
    const call = { position: fields.sequence_no, tool: fields.tool, wrote, task };
    if (!isTextOf({ record, task_id }, call)) return [];
    const names: readonly string[] = RULES[1]?.[fields.tool]?.texts ?? [];
    return names.map((name) => String(args[name])).filter((digest) => log.texts.has(digest));
  });
}

/** The owner erases a record. `digests`: what the call says; `gone`: what is really taken away. */
export function erase(
  log: ForgedLog,
  record: string,
  task_id: string | undefined,
  { digests = textsOf(log, record, task_id), gone = digests, source = 'cli', result = {} }: Erasing = {},
): ForgedRow {
  log.takeAway(...gone);
  return log.append({
    ...{ tool: 'owner_erase', actor: ALICE, source },
    args: { record, ...(task_id !== undefined && { task_id }) },
    texts: { reason: 'They asked for it.' },
    result: { record, digests, ...result },
  });
}

export interface Erasing {
  readonly digests?: string[];
  readonly gone?: readonly string[];
  readonly source?: 'mcp' | 'cli';
  readonly result?: JsonObject;
}

/** A call that only reads. */
export function read(
  log: ForgedLog,
  tool = 'task_get',
  args: JsonObject = { task_id: 'T-0001' },
  actor = ALICE,
): ForgedRow {
  return log.append({ tool, actor, args });
}

function text(value: unknown): string {
  return String(must(value ?? undefined, 'a text'));
}

function textOrNull(value: unknown): string | null {
  return value === undefined || value === null ? null : String(value);
}

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function idOrNull(value: unknown): number | null {
  return typeof value === 'string' ? Number(value.slice(2)) : null;
}

function ids(value: unknown): number[] {
  return Array.isArray(value) ? [...new Set(value.map((id) => Number(String(id).slice(2))))] : [];
}
