import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SessionRow, TaskRow, ThoughtRow } from '../domains/facts.ts';
import { type Leaf, sessionRecords, shownColumns } from '../domains/lookup.ts';
import { pick } from '../domains/records.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';

/** What verification said of the log: findings by record (`T-0001`), and how far a signed head reaches. */
export interface LogProof {
  readonly findings: ReadonlyMap<string, readonly string[]>;
  readonly checkpointedThrough: number;
}

/** One note per task and session, from one snapshot. Children, dependents and sessions of a task are its backlinks. */
export async function renderNotes(tx: Reader, proof: LogProof): Promise<Note[]> {
  const shownRows = <R extends object>(table: StateTable, rest: string, ...params: number[]) =>
    tx.all<R>(`SELECT ${shownColumns(table)} FROM ${table.name} ${rest}`, ...params);
  const notes: Note[] = [];
  for (const task of await shownRows<TaskRow>(TASKS, 'ORDER BY id')) {
    const ofTask = 'WHERE task_id = ? ORDER BY chain_position';
    notes.push(taskNote(task, await shownRows<ThoughtRow>(THOUGHTS, ofTask, task.id), proof));
  }
  for (const session of await shownRows<SessionRow>(SESSIONS, 'ORDER BY id')) {
    const leaves: Leaf[] = [];
    for await (const page of sessionRecords(tx, session.id)) leaves.push(...page);
    notes.push(sessionNote(session, leaves, proof));
  }
  return notes;
}

function taskNote(task: TaskRow, thoughts: readonly ThoughtRow[], proof: LogProof): Note {
  const id = formatId(TASKS, task.id);
  const { status, status_since, status_by, priority, assignee, project } = task;
  const fields = {
    colibri: 'task',
    id,
    aliases: [task.title],
    ...pick(task, 'project', 'status', 'workflow', 'priority', 'progress', 'assignee', 'type'),
    estimate_hours: task.estimate_hours,
    labels: JSON.parse(task.labels) as string[],
    proof_grade: task.proof_grade === 1,
    parent: task.parent_id === null ? null : taskLink(task.parent_id),
    depends_on: (JSON.parse(task.depends_on) as number[]).map(taskLink),
    created: task.created_at,
    updated: task.updated_at,
  };
  const records = [named(TASKS, task), ...thoughts.map((thought) => named(THOUGHTS, thought))];
  return note(`Tasks/${id}.md`, fields, proof, records, [
    `# ${id} ${inert(task.title)}`,
    `**${status}** since ${status_since} by ${inert(status_by)} · ${priority} · ${inert(assignee)} · ${project}`,
    task.blocked_reason === null ? '' : `> [!warning] Blocked\n${quoted(task.blocked_reason)}`,
    quoted(task.description ?? ''),
    thoughts.length === 0 ? '' : '## Thoughts',
    ...thoughts.map(thoughtSection),
  ]);
}

function sessionNote(session: SessionRow, leaves: readonly Leaf[], proof: LogProof): Note {
  const id = formatId(SESSIONS, session.id);
  const { merkle_root, auditor_id, started_at, started_by, finalized_at } = session;
  const task = taskLink(session.task_id);
  const records = leaves.map(
    ({ kind, ref, hash }, i) =>
      `${i + 1}. ${kind === 'thought' ? formatId(THOUGHTS, ref) : `audit row ${ref}`} \`${hash ?? 'gone'}\``,
  );
  const skills = JSON.parse(session.skills) as readonly { readonly name: string; readonly digest: string }[];
  const fields = {
    colibri: 'session',
    id,
    task,
    auditor: auditor_id,
    ...pick(session, 'scope', 'status', 'merkle_root'),
    started: started_at,
    finalized: finalized_at,
    records: session.leaf_count ?? records.length,
  };
  return note(
    `Sessions/${id}.md`,
    fields,
    proof,
    [named(SESSIONS, session)],
    [
      `# ${id}`,
      `Proof session on ${task}, opened by ${inert(started_by)} for ${inert(auditor_id)} at ${started_at}.`,
      quoted(session.reason ?? ''),
      merkle_root === null ? 'Still open.' : `Sealed at ${finalized_at} with root \`${merkle_root}\`.`,
      skills.length === 0 ? '' : '## Skills in force',
      skills.map(({ name, digest }) => `- ${inert(name)} \`${digest}\``).join('\n'),
      records.length === 0 ? '' : '## Records',
      records.join('\n'),
    ],
  );
}

/** A note of these sections, with YAML front matter. Every JSON value is also YAML, so no value can break out of its line. */
function note(
  path: string,
  fields: Readonly<Record<string, unknown>>,
  proof: LogProof,
  records: readonly ReturnType<typeof named>[],
  sections: readonly string[],
) {
  const findings = records.flatMap(({ name }) => proof.findings.get(name) ?? []);
  const checkpointed = records.every(({ position }) => position <= proof.checkpointedThrough);
  const lines = Object.entries({ ...fields, intact: findings.length === 0, checkpointed })
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const verification = [
    ...(findings.length === 0
      ? ['[!success] Intact: every column is as the log recorded it.']
      : ['[!danger] Not intact', ...findings.map((finding) => `- ${inert(finding)}`)]),
    `${checkpointed ? 'Covered' : 'Not covered yet'} by a signed checkpoint.`,
  ];
  const text = [
    ['---', ...lines, '---'].join('\n'),
    ...sections.filter((section) => section !== ''),
    '## Verification',
    verification.map((line) => `> ${line}`).join('\n'),
  ];
  return { path, text: `${text.join('\n\n')}\n` };
}

function named(table: StateTable, { id, position }: Pick<TaskRow, 'id' | 'position'>) {
  return { name: formatId(table, id), position };
}

function taskLink(id: number): string {
  return `[[${formatId(TASKS, id)}]]`;
}

function thoughtSection(thought: ThoughtRow): string {
  const { id, type, recorded_at, recorded_by, branch, commit_sha, content, hash } = thought;
  const facts = [
    `${formatId(THOUGHTS, id)} by ${inert(recorded_by)}`,
    ...(branch === null ? [] : [`branch ${inert(branch)}`]),
    ...(commit_sha === null ? [] : [`commit ${inert(commit_sha)}`]),
    `\`${hash}\``,
  ];
  return [`### ${recorded_at} ${type} ^th-${id}`, quoted(content), facts.join(' · ')].join('\n\n');
}

/** Text of strangers as Markdown that only shows it: a query block, script or link in it would be run by the vault. */
function inert(text: string): string {
  return text
    .replace(/[\\`*_{}[\]<>#|$%~^=!&]/g, '\\$&')
    .replace(/^(\s*)([-+:]|\d+[.)])/gm, '$1\\$2')
    .replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (c) =>
      c === '\n' || c === '\t' ? c : '\ufffd',
    );
}

/** Several lines of text as a quote, or inside a callout. */
function quoted(text: string): string {
  const lines = inert(text).split('\n');
  return text === '' ? '' : lines.map((line) => `> ${line}`.trimEnd()).join('\n');
}

/** A note to be written: path inside the export folder, with forward slashes, and text. */
type Note = ReturnType<typeof note>;

/** Holds the digest of each note as it was last written here: a note with another digest was edited and is not ours any more. */
const MANIFEST = '.colibri-notes.json';

type Digests = Readonly<Record<string, string>>;

/** Brings the folder up to date. What is not exactly as it was written here is `kept` as it is. */
export function writeNotes(folder: string, notes: readonly Note[]) {
  const before = readManifest(folder);
  const after: Record<string, string> = {};
  const report = { written: [] as string[], unchanged: 0, deleted: [] as string[], kept: [] as string[] };
  for (const { path: name, text } of notes) {
    const path = join(folder, name);
    const [known, wanted, found] = [before[name], sha256Hex(text), digestAt(path)];
    if (found === wanted) report.unchanged += 1;
    else if (found === undefined || found === known) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      report.written.push(name);
    } else {
      report.kept.push(name);
      // Still remembered: if it is put back as it was, it is ours again.
      if (known !== undefined) after[name] = known;
      continue;
    }
    after[name] = wanted;
  }
  const stale = Object.keys(before).filter((name) => after[name] === undefined && isInside(name));
  for (const name of stale.filter((other) => !report.kept.includes(other))) {
    const found = digestAt(join(folder, name));
    if (found === undefined) continue;
    if (found === before[name]) rmSync(join(folder, name));
    report[found === before[name] ? 'deleted' : 'kept'].push(name);
  }
  if (textOf(before) !== textOf(after)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, MANIFEST), textOf(after));
  }
  return report;
}

/** The digest of the note at a path, undefined if nothing is there; null for a link or a folder, which is never ours. */
function digestAt(path: string): string | null | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  return stat.isFile() ? sha256Hex(readFileSync(path, 'utf8')) : null;
}

/** The manifest is in the vault, where anybody can edit it: a name in it must not lead out of the folder. */
function isInside(name: string): boolean {
  return !name.split(/[\\/]/).includes('..') && !/^([\\/]|[a-z]:)/i.test(name) && name.endsWith('.md');
}

function readManifest(folder: string): Digests {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
    const entries = Object.entries(value ?? {});
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  } catch {
    return {};
  }
}

function textOf(digests: Digests): string {
  const sorted = Object.entries(digests).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify(Object.fromEntries(sorted), null, 1)}\n`;
}
