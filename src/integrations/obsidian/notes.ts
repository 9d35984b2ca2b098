import { formatId, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import { frontMatter, inert, quoted, wikilink } from './markdown.ts';
import type { Note } from './vault.ts';

/** What a note needs of a task, with its texts. */
export interface TaskFacts {
  readonly id: number;
  readonly project: string;
  readonly title: string;
  readonly description: string;
  readonly workflow: string;
  readonly status: string;
  readonly status_since: string;
  readonly status_by: string;
  readonly blocked_reason: string | null;
  readonly progress: number;
  readonly priority: string;
  readonly type: string | null;
  readonly proof_grade: number;
  readonly assignee: string;
  readonly labels: readonly string[];
  readonly estimate_hours: number | null;
  readonly parent_id: number | null;
  readonly depends_on: readonly number[];
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ThoughtFacts {
  readonly id: number;
  readonly task_id: number;
  readonly type: string;
  readonly content: string;
  readonly hash: string;
  readonly recorded_at: string;
  readonly recorded_by: string;
  readonly branch: string | null;
  readonly commit_sha: string | null;
}

export interface SessionFacts {
  readonly id: number;
  readonly task_id: number;
  readonly auditor_id: string;
  readonly reason: string | null;
  readonly scope: string;
  readonly status: string;
  readonly started_at: string;
  readonly finalized_at: string | null;
  readonly merkle_root: string | null;
  readonly leaf_count: number | null;
  readonly skills: readonly { readonly name: string; readonly digest: string }[];
}

/** How well a record is proved. */
export interface ProofFacts {
  readonly findings: readonly string[];
  readonly checkpointed: boolean;
}

export interface TaskNeighbours {
  readonly children: readonly TaskFacts[];
  readonly dependencies: readonly TaskFacts[];
  readonly dependents: readonly TaskFacts[];
  readonly sessions: readonly SessionFacts[];
}

export function taskNote(
  task: TaskFacts,
  thoughts: readonly ThoughtFacts[],
  around: TaskNeighbours,
  proof: ProofFacts,
): Note {
  const id = taskName(task.id);
  const fields = {
    colibri: 'task',
    id,
    aliases: [task.title],
    project: wikilink(projectName(task.project)),
    status: task.status,
    workflow: task.workflow,
    priority: task.priority,
    progress: task.progress,
    assignee: task.assignee,
    labels: task.labels,
    type: task.type,
    proof_grade: task.proof_grade === 1,
    estimate_hours: task.estimate_hours,
    parent: task.parent_id === null ? undefined : wikilink(taskName(task.parent_id)),
    depends_on: task.depends_on.map((other) => wikilink(taskName(other))),
    created: task.created_at,
    updated: task.updated_at,
    intact: proof.findings.length === 0,
    checkpointed: proof.checkpointed,
  };
  const sections = [
    frontMatter(fields),
    `# ${id} ${inert(task.title)}`,
    `**${task.status}** since ${task.status_since} by ${inert(task.status_by)} · ${task.priority} · ${inert(task.assignee)} · ${wikilink(projectName(task.project))}`,
    ...(task.blocked_reason === null ? [] : [`> [!warning] Blocked\n${quoted(task.blocked_reason)}`]),
    ...(task.description === '' ? [] : [quoted(task.description)]),
    ...relations(task, around),
    ...(thoughts.length === 0 ? [] : ['## Thoughts', ...thoughts.map(thoughtSection)]),
    verification(proof),
  ];
  return { path: `Tasks/${id}.md`, text: `${sections.join('\n\n')}\n` };
}

export function sessionNote(
  session: SessionFacts,
  records: readonly { readonly name: string; readonly hash: string }[],
  proof: ProofFacts,
): Note {
  const id = formatId(SESSIONS, session.id);
  const fields = {
    colibri: 'session',
    id,
    task: wikilink(taskName(session.task_id)),
    auditor: session.auditor_id,
    scope: session.scope,
    status: session.status,
    started: session.started_at,
    finalized: session.finalized_at,
    merkle_root: session.merkle_root,
    records: session.leaf_count ?? records.length,
    intact: proof.findings.length === 0,
    checkpointed: proof.checkpointed,
  };
  const sections = [
    frontMatter(fields),
    `# ${id}`,
    `Proof session on ${wikilink(taskName(session.task_id))}, opened by ${inert(session.auditor_id)} at ${session.started_at}.`,
    ...(session.reason === null ? [] : [quoted(session.reason)]),
    ...(session.merkle_root === null
      ? ['Still open.']
      : [`Sealed at ${session.finalized_at} with root \`${session.merkle_root}\`.`]),
    ...(session.skills.length === 0
      ? []
      : [
          '## Skills in force',
          ...session.skills.map((skill) => `- ${inert(skill.name)} \`${skill.digest}\``),
        ]),
    ...(records.length === 0
      ? []
      : ['## Records', records.map((record, i) => `${i + 1}. ${record.name} \`${record.hash}\``).join('\n')]),
    verification(proof),
  ];
  return { path: `Sessions/${id}.md`, text: `${sections.join('\n\n')}\n` };
}

export function projectNote(project: string, tasks: readonly TaskFacts[]): Note {
  const open = tasks.filter((task) => !['done', 'cancelled', 'DONE', 'CANCELLED'].includes(task.status));
  const row = (task: TaskFacts) =>
    `| ${wikilink(taskName(task.id))} | ${inert(task.title)} | ${task.status} | ${task.priority} | ${inert(task.assignee)} |`;
  const sections = [
    frontMatter({ colibri: 'project', project, tasks: tasks.length, open: open.length }),
    `# ${project}`,
    [
      '| Task | Title | Status | Priority | Assignee |',
      '| --- | --- | --- | --- | --- |',
      ...tasks.map(row),
    ].join('\n'),
    graph(tasks),
  ];
  return {
    path: `Projects/${projectName(project)}.md`,
    text: `${sections.filter((section) => section !== '').join('\n\n')}\n`,
  };
}

/** With a prefix: a project may be called `con` or `nul`, which are device names on Windows. */
function projectName(project: string): string {
  return `project-${project}`;
}

function taskName(id: number): string {
  return formatId(TASKS, id);
}

function relations(
  task: TaskFacts,
  { children, dependencies, dependents, sessions }: TaskNeighbours,
): string[] {
  const list = (title: string, links: readonly string[]) =>
    links.length === 0 ? [] : [`**${title}:** ${links.join(', ')}`];
  const links = (tasks: readonly TaskFacts[]) => tasks.map((other) => wikilink(taskName(other.id)));
  return [
    ...list('Waits for', links(dependencies)),
    ...list('Children', links(children)),
    ...list('Awaited by', links(dependents)),
    ...list(
      'Sessions',
      sessions.map((session) => wikilink(formatId(SESSIONS, session.id))),
    ),
    ...[graph([task, ...children, ...dependencies, ...dependents])].filter((picture) => picture !== ''),
  ];
}

function thoughtSection(thought: ThoughtFacts): string {
  const evidence = [
    thought.branch === null ? '' : `branch ${inert(thought.branch)}`,
    thought.commit_sha === null ? '' : `commit ${inert(thought.commit_sha)}`,
  ].filter(Boolean);
  return [
    `### ${thought.recorded_at} ${thought.type} ^${`th-${thought.id}`}`,
    quoted(thought.content),
    `${formatId(THOUGHTS, thought.id)} by ${inert(thought.recorded_by)}${evidence.length === 0 ? '' : ` · ${evidence.join(' · ')}`} · \`${thought.hash}\``,
  ].join('\n\n');
}

function verification({ findings, checkpointed }: ProofFacts): string {
  const lines =
    findings.length === 0
      ? ['> [!success] Intact: every column is as the log recorded it.']
      : ['> [!danger] Not intact', ...findings.map((finding) => `> - ${inert(finding)}`)];
  lines.push(
    checkpointed ? '> Covered by a signed checkpoint.' : '> Not covered by a signed checkpoint yet.',
  );
  return ['## Verification', lines.join('\n')].join('\n\n');
}

/** Which of these tasks wait for which. Labels hold ids and statuses only: titles could be anything. */
function graph(tasks: readonly TaskFacts[]): string {
  const known = new Map(tasks.map((task) => [task.id, task]));
  const edges = new Set<string>();
  for (const task of known.values()) {
    for (const other of task.depends_on)
      if (known.has(other)) edges.add(`  t${task.id} -->|waits for| t${other}`);
    if (task.parent_id !== null && known.has(task.parent_id))
      edges.add(`  t${task.parent_id} -.->|child| t${task.id}`);
  }
  if (edges.size === 0) return '';
  const nodes = [...known.values()].map((task) => `  t${task.id}["${taskName(task.id)} ${task.status}"]`);
  return ['```mermaid', 'graph LR', ...nodes, ...[...edges].sort(), '```'].join('\n');
}
