import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SessionRow, TaskRow, ThoughtRow } from '../domains/facts.ts';
import { type Leaf, sessionRecords, shownColumns } from '../domains/lookup.ts';
import { pick } from '../domains/records.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import { jsonText, markdownLine, visibleLine } from '../untrusted.ts';

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
  const { status, status_since, status_by, priority, assignee, project, blocked_reason } = task;
  const fields = {
    colibri: 'task',
    id,
    aliases: [task.title],
    ...pick(task, 'project', 'status', 'workflow', 'priority', 'progress', 'assignee', 'type'),
    estimate_hours: task.estimate_hours,
    labels: listIn(task.labels).filter((label) => typeof label === 'string'),
    proof_grade: task.proof_grade === 1,
    parent: task.parent_id === null ? null : taskLink(task.parent_id),
    depends_on: listIn(task.depends_on).map(taskLink),
    created: task.created_at,
    updated: task.updated_at,
  };
  const records = [named(TASKS, task), ...thoughts.map((thought) => named(THOUGHTS, thought))];
  return note(`Tasks/${id}.md`, fields, proof, records, [
    md`# ${id} ${task.title}`,
    md`**${status}** since ${status_since} by ${status_by} · ${priority} · ${assignee} · ${project}`,
    blocked_reason === null ? NOTHING : md`> [!warning] Blocked\n${quoted(blocked_reason)}`,
    quoted(task.description ?? ''),
    thoughts.length === 0 ? NOTHING : md`## Thoughts`,
    ...thoughts.map(thoughtSection),
  ]);
}

function sessionNote(session: SessionRow, leaves: readonly Leaf[], proof: LogProof): Note {
  const id = formatId(SESSIONS, session.id);
  const { merkle_root, auditor_id, started_at, started_by, finalized_at } = session;
  const task = taskLink(session.task_id);
  const records = leaves.map(({ kind, ref, hash }, i) => {
    const record = kind === 'thought' ? formatId(THOUGHTS, ref) : `audit row ${ref}`;
    return md`${i + 1}. ${record} ${code(hash ?? 'gone')}`;
  });
  const skills = listIn(session.skills).map((skill) => ({
    ...(skill as { name?: unknown; digest?: unknown }),
  }));
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
      md`# ${id}`,
      md`Proof session on ${task}, opened by ${started_by} for ${auditor_id} at ${started_at}.`,
      quoted(session.reason ?? ''),
      merkle_root === null ? md`Still open.` : md`Sealed at ${finalized_at} with root ${code(merkle_root)}.`,
      skills.length === 0 ? NOTHING : md`## Skills in force`,
      joined(
        skills.map(({ name, digest }) => md`- ${name} ${code(digest)}`),
        '\n',
      ),
      records.length === 0 ? NOTHING : md`## Records`,
      joined(records, '\n'),
    ],
  );
}

/** A note of these sections, with YAML front matter. Every JSON value is also YAML, so no value can break out of its line. */
function note(
  path: string,
  fields: Readonly<Record<string, unknown>>,
  proof: LogProof,
  records: readonly ReturnType<typeof named>[],
  sections: readonly Markdown[],
) {
  const findings = records.flatMap(({ name }) => proof.findings.get(name) ?? []);
  const checkpointed = records.every(({ position }) => position <= proof.checkpointedThrough);
  const lines = Object.entries({ ...fields, intact: findings.length === 0, checkpointed })
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${jsonText(property(value))}`);
  const verification = [
    ...(findings.length === 0
      ? [md`> [!success] Intact: every column is as the log recorded it.`]
      : [md`> [!danger] Not intact`, ...findings.map((finding) => md`> - ${finding}`)]),
    checkpointed ? md`> Covered by a signed checkpoint.` : md`> Not covered yet by a signed checkpoint.`,
  ];
  const body = [
    ...sections.filter(({ text }) => text !== ''),
    md`## Verification`,
    joined(verification, '\n'),
  ];
  return { path, text: `---\n${lines.join('\n')}\n---\n\n${joined(body, '\n\n').text}\n` };
}

function named(table: StateTable, { id, position }: Pick<TaskRow, 'id' | 'position'>) {
  return { name: formatId(table, id), position };
}

function taskLink(id: unknown): Markdown {
  return typeof id === 'number' ? new Markdown(`[[${formatId(TASKS, id)}]]`) : md`${id}`;
}

function thoughtSection(thought: ThoughtRow): Markdown {
  const { id, type, recorded_at, recorded_by, branch, commit_sha, content, hash } = thought;
  const facts = [
    md`${formatId(THOUGHTS, id)} by ${recorded_by}`,
    ...(branch === null ? [] : [md`branch ${branch}`]),
    ...(commit_sha === null ? [] : [md`commit ${commit_sha}`]),
    code(hash),
  ];
  return joined([md`### ${recorded_at} ${type} ^th-${id}`, quoted(content), joined(facts, ' · ')], '\n\n');
}

/** Markdown of ours, told by its class from anything that a stranger's JSON can hold. */
class Markdown {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const NOTHING = new Markdown('');

/** Markdown in which every value is text that only shows, unless it was made here. */
function md(ours: TemplateStringsArray, ...values: readonly unknown[]): Markdown {
  const shown = values.map((value) => (value instanceof Markdown ? value.text : markdownLine(String(value))));
  return new Markdown(ours.map((text, i) => `${text}${shown[i] ?? ''}`).join(''));
}

function joined(parts: readonly Markdown[], separator: string): Markdown {
  return new Markdown(parts.map(({ text }) => text).join(separator));
}

/** Several lines of text as a quote, or inside a callout. */
function quoted(text: string): Markdown {
  const lines = text.split(/\r\n?|\n/).map((line) => new Markdown(md`> ${line}`.text.trimEnd()));
  return text === '' ? NOTHING : joined(lines, '\n');
}

/** A hash. In code nothing can be escaped, and some code is run: whatever is not a hash is text. */
function code(hash: unknown): Markdown {
  return /^(?:[0-9a-f]+|gone)$/.test(String(hash)) ? new Markdown(`\`${hash}\``) : md`${hash}`;
}

/**
 * A value of the front matter. Queries show it as Markdown and templates run what is in it. One without their syntax stays
 * exactly as it is, so that it can be searched for.
 */
function property(value: unknown): unknown {
  if (value instanceof Markdown) return value.text;
  if (Array.isArray(value)) return value.map(property);
  const isLive = typeof value === 'string' && (LIVE.test(value) || visibleLine(value) !== value);
  return isLive ? markdownLine(value) : value;
}

const LIVE = /[`<$]|\[\[|\]\(|%%|::|(?<!\bhttps?):\/\//i;

/** A JSON list; anybody may have changed the file, and then it may be anything. */
function listIn(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
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
