import { basename } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import type { Config } from '../config.ts';
import type { TaskRow } from '../domains/facts.ts';
import { CreateInput, UpdateInput } from '../domains/tasks/schema.ts';
import { ARROWS, allowedFrom, STATUSES, type Status } from '../domains/tasks/workflows.ts';
import { RecordInput } from '../domains/trail/schema.ts';
import { formatId, TASKS } from '../log/tables.ts';
import { type Envelope, isFailure } from '../middleware/envelope.ts';
import { redactedNote, redactText } from '../secrets.ts';
import { storageRuntime } from '../storage/open.ts';
import { visibleLine } from '../untrusted.ts';
import { type JsonObject, objectIn } from '../verify/rules/payloads.ts';
import { normalRecordId, parseRecordId } from './brought.ts';
import { command, UsageError } from './command.ts';
import { fieldOptions, fieldsGiven } from './fields.ts';
import { readStatuses } from './filters.ts';
import { readProjects, type Stages, withTools } from './open.ts';
import type { Output } from './output.ts';
import { personOf } from './person.ts';

// A person's daily work without JSON. Each command makes the calls that an agent would make, through the same five
// stages, under the person's own name.

/** Makes a task. */
export const add = command({
  name: 'add',
  usage: 'TITLE [--project NAME] [OPTIONS]',
  summary: 'add a task',
  details:
    'Without --project, the task goes to COLIBRI_PROJECT, or to the only project there is. The very first task creates a project named after the folder.',
  options: fieldOptions(CreateInput, ['title']),
  positionals: [1, 1],
  async run({ values, positionals: [title = ''], out, config }) {
    return await work(config, out, async (stages, call) => {
      const given = { title, ...withIds(fieldsGiven(CreateInput, values)) };
      const project = 'project' in given ? given.project : await projectFor(stages, config);
      const made = await call('task_create', { ...given, project });
      return tell(
        made,
        out,
        ({ task_id, status }) => `${task_id} added to ${project}, in ${status}: ${redactText(title)}`,
      );
    });
  },
});

/** Moves a task one step. */
export const move = command({
  name: 'move',
  usage: 'T-0001 STATUS [OPTIONS]',
  summary: 'move a task one step',
  details:
    'If a step is refused, the message lists the allowed ones. To block a task, say with --reason what it waits for.',
  options: fieldOptions(UpdateInput, ['task_id', 'status']),
  positionals: [2, 2],
  words: STATUSES,
  async run({ values, positionals: [given = '', word = ''], out, config }) {
    const [, id] = parseRecordId(given, [TASKS]);
    const meant = readStatuses(word);
    return await work(config, out, async (stages, call) => {
      const task = await findTask(stages, id);
      // Two workflows have a "done". For a task that does not exist, either word gets the right answer.
      const status = meant.find((one) => task !== undefined && one in ARROWS[task.workflow]) ?? meant[0];
      const fields = withIds(fieldsGiven(UpdateInput, values));
      const task_id = formatId(TASKS, id);
      const moved = await call('task_update', { ...fields, task_id, status });
      const isMoved = tellMove(moved, out);
      if (codeOf(moved) === 'ERR_TASK_HELD' && !out.json)
        out.error(`To take it over: colibri move ${task_id} ${status} --takeover`);
      return isMoved;
    });
  },
});

/** Says whose task it is. */
export const assign = command({
  name: 'assign',
  usage: 'T-0001 NAME',
  summary: 'assign a task to someone',
  options: {},
  positionals: [2, 2],
  async run({ positionals: [given = '', assignee = ''], out, config }) {
    const [, id] = parseRecordId(given, [TASKS]);
    return await work(config, out, async (_, call) => {
      const changed = await call('task_update', { task_id: formatId(TASKS, id), assignee });
      return tell(changed, out, ({ task_id }) => `${task_id} is assigned to ${redactText(assignee)}`);
    });
  },
});

/** Records why. */
export const think = command({
  name: 'think',
  usage: 'T-0001 TEXT [--type WORD] [OPTIONS]',
  summary: 'record a thought about a task: a decision, a risk, a plan',
  details: '"-" as TEXT reads it from standard input. Default type: reflection.',
  options: fieldOptions(RecordInput, ['task_id', 'content']),
  positionals: [2, 2],
  async run({ values, positionals: [given = '', text = ''], out, config }) {
    const [, id] = parseRecordId(given, [TASKS]);
    const content = text === '-' ? (await readAll(process.stdin)).trimEnd() : text;
    return await work(config, out, async (_, call) => {
      const fields = fieldsGiven(RecordInput, values);
      const thought = { type: 'reflection', ...fields, task_id: formatId(TASKS, id), content };
      return tellThought(await call('thought_record', thought), out);
    });
  },
});

/** Finishes a task that is one step from its end. */
export const done = command({
  name: 'done',
  usage: 'T-0001 [--because TEXT]',
  summary: 'finish a task, or say which step is next',
  details:
    'Takes only the last step. If another step comes first, the task does not move, the reason is not recorded, and you are told which step that is. --because first records the reason as a decision; a task can be finished only after at least one thought was recorded.',
  options: { because: { value: 'TEXT', help: 'record this decision first' } },
  positionals: [1, 1],
  async run({ values: { because }, positionals: [given = ''], out, config }) {
    const [, id] = parseRecordId(given, [TASKS]);
    const task_id = formatId(TASKS, id);
    return await work(config, out, async (stages, call) => {
      const task = await findTask(stages, id);
      const end: Status = task?.workflow === 'pipeline' ? 'DONE' : 'done';
      const mayEnd = task !== undefined && allowedFrom(task.workflow, task.status).includes(end);
      // A step that is refused anyway is refused before anything is written.
      if (because !== undefined && mayEnd) {
        const thought = await call('thought_record', { task_id, type: 'decision', content: because });
        if (isFailure(thought) || !out.json) tellThought(thought, out);
        if (isFailure(thought)) {
          const first = nextStep(task, task_id, thought, personOf(config));
          if (first !== undefined && !out.json) out.error(first);
          return false;
        }
      }
      const ended = await call('task_update', { task_id, status: end });
      const isEnded = tellMove(ended, out);
      if (because !== undefined && task !== undefined && !mayEnd && !out.json)
        out.error('The reason was not recorded.');
      const next =
        isEnded || task === undefined ? undefined : nextStep(task, task_id, ended, personOf(config));
      if (next !== undefined && !out.json) out.error(next);
      return isEnded;
    });
  },
});

type Call = (tool: string, args: JsonObject) => Promise<Envelope>;

/** Runs the calls of one command. Answers the exit code. */
async function work(
  config: Config,
  out: Output,
  run: (stages: Stages, call: Call) => Promise<boolean>,
): Promise<number> {
  // Without SQLite nothing could be called: that is said once, and not as the answer of a tool.
  await storageRuntime();
  const person = personOf(config);
  const isFine = await withTools(config, out, async (stages) => {
    // What is wrong was said when the database was opened.
    if (stages.degraded !== undefined) return false;
    const tell = (notes: readonly string[]) => out.error(redactedNote(notes));
    return await run(stages, (tool, args) => stages.call(tool, args, person, tell));
  });
  return isFine ? 0 : 1;
}

/** Prints what a call answered: its data for programs, one line for people, or why it was refused. */
function tell(envelope: Envelope, out: Output, line: (data: JsonObject) => string): boolean {
  const data: JsonObject = envelope.ok ? (objectIn(envelope.data) ?? {}) : { ...envelope };
  const isFine = !isFailure(envelope);
  if (out.json) out.value(data, 2);
  else if (isFine) {
    out.line(line(data));
    for (const warning of listOf(data.warnings)) out.line(out.paint('yellow', warning));
  } else out.error(messageIn(data));
  return isFine;
}

function tellMove(envelope: Envelope, out: Output): boolean {
  return tell(envelope, out, ({ task_id, status, previous_status, taken_over_from }) => {
    const holder = objectIn(taken_over_from)?.held_by;
    const from = holder === undefined ? '' : `, taken over from ${holder}`;
    if (previous_status === undefined) return `${task_id} changed${from}`;
    const step = previous_status === status ? status : `${previous_status} → ${status}`;
    return `${task_id}: ${step}${from}`;
  });
}

function tellThought(envelope: Envelope, out: Output): boolean {
  return tell(
    envelope,
    out,
    ({ thought_id, task_id, type }) => `${thought_id} recorded on ${task_id}: ${type}`,
  );
}

/** Of a refusal. Some families say their code at the front of the message. */
function codeOf(envelope: Envelope): unknown {
  const error = objectIn(envelope.ok ? objectIn(envelope.data)?.error : envelope.error);
  const [, said] = /^(ERR_[A-Z_]+): /.exec(String(error?.message)) ?? [];
  return said ?? error?.code;
}

function messageIn(data: JsonObject): string {
  return String(objectIn(data.error)?.message ?? '');
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

type KnownTask = Pick<TaskRow, 'workflow' | 'status' | 'held_by' | 'held_process'>;

async function findTask({ storage }: Stages, id: number): Promise<KnownTask | undefined> {
  const sql = 'SELECT workflow, status, held_by, held_process FROM tasks WHERE id = ?';
  return await storage.read((tx) => tx.get<KnownTask>(sql, id));
}

/** Which command takes the task on, after the last step was refused; nothing where the refusal itself says so. */
function nextStep(
  { workflow, status, held_by, held_process }: KnownTask,
  id: string,
  refusal: Envelope,
  person: string,
): string | undefined {
  const code = codeOf(refusal);
  if (code === 'ERR_WRITEBACK_REQUIRED') return `Next: colibri done ${id} --because "WHY"`;
  if (code === 'ERR_SESSION_REQUIRED' || code === 'ERR_PROOF_REQUIRED') {
    // The refusal names the session, if one is open.
    const [session] = /\bA-\d+/.exec(JSON.stringify(refusal)) ?? [];
    return session === undefined
      ? `Next: colibri call audit_session_start '{"task_id":"${id}","auditor_id":"WHO CHECKS IT"}'`
      : `Next: colibri call merkle_finalize '{"session_id":"${session}"}'`;
  }
  // The first arrow of each status leads on; the others lead aside.
  const [next] = allowedFrom(workflow, status);
  if (next === undefined || code !== 'ERR_INVALID_TRANSITION') return undefined;
  // A person holds a task without a process; with one, it is an agent of the same name.
  const isTheirs = held_by !== null && (held_by !== person || held_process !== null);
  return `Next: colibri move ${id} ${next}${isTheirs ? ` --takeover (${visibleLine(held_by)} holds it)` : ''}`;
}

/** The project of a task that names none: the one that was set, the only one there is, or one named after the folder. */
async function projectFor({ storage }: Stages, config: Config): Promise<string> {
  if (config.project !== undefined) return config.project;
  const [only, ...others] = config.projects ?? (await storage.read(readProjects));
  if (others.length > 0)
    throw new UsageError(`Name the project with --project: ${[only, ...others].join(', ')}, or a new one.`);
  const slug = basename(config.workspace)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  const project = only ?? slug.slice(0, 64);
  if (project === '') throw new UsageError('Name the project with --project.');
  return project;
}

/** Ids as a person writes them, in the fields that hold some. */
function withIds(fields: Record<string, unknown>): Record<string, unknown> {
  const { depends_on, parent_id } = fields;
  return {
    ...fields,
    ...(Array.isArray(depends_on) && { depends_on: depends_on.map((id) => normalRecordId(String(id))) }),
    ...(parent_id !== undefined && { parent_id: normalRecordId(String(parent_id)) }),
  };
}
