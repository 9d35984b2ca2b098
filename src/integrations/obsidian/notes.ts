import type { SessionRow, TaskRow, ThoughtRow } from '../../domains/facts.ts';
import type { Leaf } from '../../domains/lookup.ts';
import { pick } from '../../domains/records.ts';
import { isFinal } from '../../domains/tasks/workflows.ts';
import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Note } from './vault.ts';

// The rows come with their texts in the place of digests.

/** How well a record is proved. */
export interface ProofFacts {
  readonly findings: readonly string[];
  readonly checkpointed: boolean;
}

export interface TaskNeighbours {
  readonly children: readonly TaskRow[];
  readonly dependencies: readonly TaskRow[];
  readonly dependents: readonly TaskRow[];
  readonly sessions: readonly SessionRow[];
}

export function taskNote(
  task: TaskRow,
  thoughts: readonly ThoughtRow[],
  around: TaskNeighbours,
  proof: ProofFacts,
): Note {
  const id = taskName(task.id);
  const project = wikilink(projectName(task.project));
  const fields = {
    colibri: 'task',
    id,
    aliases: [task.title],
    project,
    ...pick(task, 'status', 'workflow', 'priority', 'progress', 'assignee', 'type', 'estimate_hours'),
    labels: JSON.parse(task.labels) as string[],
    proof_grade: task.proof_grade === 1,
    parent: task.parent_id === null ? null : wikilink(taskName(task.parent_id)),
    depends_on: dependsOn(task).map((other) => wikilink(taskName(other))),
    created: task.created_at,
    updated: task.updated_at,
  };
  return note(`Tasks/${id}.md`, fields, proof, [
    `# ${id} ${inert(task.title)}`,
    `**${task.status}** since ${task.status_since} by ${inert(task.status_by)} · ${task.priority} · ${inert(task.assignee)} · ${project}`,
    task.blocked_reason === null ? '' : `> [!warning] Blocked\n${quoted(task.blocked_reason)}`,
    quoted(task.description ?? ''),
    list('Waits for', TASKS, around.dependencies),
    list('Children', TASKS, around.children),
    list('Awaited by', TASKS, around.dependents),
    list('Sessions', SESSIONS, around.sessions),
    graph([task, ...around.children, ...around.dependencies, ...around.dependents]),
    thoughts.length === 0 ? '' : '## Thoughts',
    ...thoughts.map(thoughtSection),
  ]);
}

export function sessionNote(session: SessionRow, leaves: readonly Leaf[], proof: ProofFacts): Note {
  const id = formatId(SESSIONS, session.id);
  const { merkle_root, auditor_id, started_at, started_by, finalized_at } = session;
  const task = wikilink(taskName(session.task_id));
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
  return note(`Sessions/${id}.md`, fields, proof, [
    `# ${id}`,
    `Proof session on ${task}, opened by ${inert(started_by)} for ${inert(auditor_id)} at ${started_at}.`,
    quoted(session.reason ?? ''),
    merkle_root === null ? 'Still open.' : `Sealed at ${finalized_at} with root \`${merkle_root}\`.`,
    skills.length === 0 ? '' : '## Skills in force',
    skills.map(({ name, digest }) => `- ${inert(name)} \`${digest}\``).join('\n'),
    records.length === 0 ? '' : '## Records',
    records.join('\n'),
  ]);
}

export function projectNote(project: string, tasks: readonly TaskRow[]): Note {
  const open = tasks.filter(({ workflow, status }) => !isFinal(workflow, status));
  const row = (task: TaskRow) =>
    `| ${wikilink(taskName(task.id))} | ${inert(task.title)} | ${task.status} | ${task.priority} | ${inert(task.assignee)} |`;
  const head = ['| Task | Title | Status | Priority | Assignee |', '| --- | --- | --- | --- | --- |'];
  const fields = { colibri: 'project', project, tasks: tasks.length, open: open.length };
  const sections = [`# ${project}`, [...head, ...tasks.map(row)].join('\n'), graph(tasks)];
  return note(`Projects/${projectName(project)}.md`, fields, undefined, sections);
}

/** A note of these sections, with YAML front matter. Every JSON value is also YAML, so no value can break out of its line. */
function note(
  path: string,
  fields: Readonly<Record<string, unknown>>,
  proof: ProofFacts | undefined,
  sections: readonly string[],
): Note {
  const proved = proof && { intact: proof.findings.length === 0, checkpointed: proof.checkpointed };
  const lines = Object.entries({ ...fields, ...proved })
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const text = [
    ['---', ...lines, '---'].join('\n'),
    ...sections,
    proof === undefined ? '' : verification(proof),
  ]
    .filter((section) => section !== '')
    .join('\n\n');
  return { path, text: `${text}\n` };
}

/** The tasks that a task depends on. */
export function dependsOn(task: TaskRow): readonly number[] {
  return JSON.parse(task.depends_on) as number[];
}

/** With a prefix: a project may be called `con` or `nul`, which are device names on Windows. */
function projectName(project: string): string {
  return `project-${project}`;
}

function taskName(id: number): string {
  return formatId(TASKS, id);
}

function wikilink(name: string): string {
  return `[[${name}]]`;
}

function list(title: string, table: StateTable, rows: readonly { readonly id: number }[]): string {
  const links = rows.map(({ id }) => wikilink(formatId(table, id)));
  return links.length === 0 ? '' : `**${title}:** ${links.join(', ')}`;
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

function verification({ findings, checkpointed }: ProofFacts): string {
  const lines =
    findings.length === 0
      ? ['> [!success] Intact: every column is as the log recorded it.']
      : ['> [!danger] Not intact', ...findings.map((finding) => `> - ${inert(finding)}`)];
  const signed = checkpointed ? 'Covered by a signed checkpoint.' : 'Not covered by a signed checkpoint yet.';
  return ['## Verification', [...lines, `> ${signed}`].join('\n')].join('\n\n');
}

/** Which of these tasks wait for which. Labels hold ids and statuses only: titles could be anything. */
function graph(tasks: readonly TaskRow[]): string {
  const known = new Map(tasks.map((task) => [task.id, task]));
  const edges = new Set<string>();
  for (const task of known.values()) {
    for (const other of dependsOn(task))
      if (known.has(other)) edges.add(`  t${task.id} -->|waits for| t${other}`);
    if (task.parent_id !== null && known.has(task.parent_id))
      edges.add(`  t${task.parent_id} -.->|child| t${task.id}`);
  }
  if (edges.size === 0) return '';
  const nodes = [...known.values()].map((task) => `  t${task.id}["${taskName(task.id)} ${task.status}"]`);
  return ['```mermaid', 'graph LR', ...nodes, ...[...edges].sort(), '```'].join('\n');
}

/**
 * Text that strangers wrote, as Markdown that only shows it. Without this, a thought could hold a query block, a plug-in's
 * script or a link that loads something, and the vault would run it.
 */
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
