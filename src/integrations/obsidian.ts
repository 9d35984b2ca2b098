import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionRow, TaskRow, ThoughtRow } from '../domains/facts.ts';
import { type Leaf, sessionRecords, shownColumns } from '../domains/lookup.ts';
import { pick } from '../domains/records.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { formatId, SESSIONS, type StateTable, TASKS, THOUGHTS } from '../log/tables.ts';
import { isThere, makePrivateFolder, readJson, readWhole, replaceFile } from '../private-files.ts';
import type { Reader } from '../storage/engine.ts';
import { jsonText, listIn, markdownLine, textFrom, visibleLine } from '../untrusted.ts';

/** What verification said of the log: findings by record (`T-0001`), and how far a signed head reaches. */
export interface LogProof {
  readonly findings: ReadonlyMap<string, readonly string[]>;
  readonly checkpointedThrough: number;
  /** Set where anything at all is wrong: nobody can say what the calls behind a record were if any row of the log is forged. */
  readonly trouble?: string;
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
    labels: listIn(task.labels),
    proof_grade: task.proof_grade === 1,
    created: task.created_at,
    updated: task.updated_at,
  };
  const parent = task.parent_id === null ? null : taskLink(task.parent_id);
  const links = { parent, depends_on: listIn(task.depends_on).map(taskLink) };
  const records = [named(TASKS, task), ...thoughts.map((thought) => named(THOUGHTS, thought))];
  return note(`Tasks/${id}.md`, fields, links, proof, records, [
    md`# ${id} ${task.title}`,
    md`**${status}** since ${status_since} by ${status_by} · ${priority} · ${assignee} · ${project}`,
    blocked_reason === null ? '' : `> [!warning] Blocked\n${quoted(blocked_reason)}`,
    quoted(task.description ?? ''),
    thoughts.length === 0 ? '' : '## Thoughts',
    ...thoughts.map(thoughtSection),
  ]);
}

function sessionNote(session: SessionRow, leaves: readonly Leaf[], proof: LogProof): Note {
  const id = formatId(SESSIONS, session.id);
  const { merkle_root, auditor_id, started_at, started_by, finalized_at } = session;
  const task = taskLink(session.task_id);
  const records = leaves.map(({ kind, ref, hash }, i) => {
    const record = kind === 'thought' ? formatId(THOUGHTS, ref) : `audit row ${ref}`;
    return md`${i + 1}. ${record} ` + code(hash ?? 'gone');
  });
  const skills = listIn(session.skills).map((skill) => ({ name: '', digest: '', ...Object(skill) }));
  const fields = {
    colibri: 'session',
    id,
    auditor: auditor_id,
    ...pick(session, 'scope', 'status', 'merkle_root'),
    started: started_at,
    finalized: finalized_at,
    records: session.leaf_count ?? records.length,
  };
  const own = [named(SESSIONS, session)];
  return note(`Sessions/${id}.md`, fields, { task }, proof, own, [
    md`# ${id}`,
    `Proof session on ${task}, ${md`opened by ${started_by} for ${auditor_id} at ${started_at}.`}`,
    quoted(session.reason ?? ''),
    merkle_root === null ? 'Still open.' : `${md`Sealed at ${finalized_at} with root `}${code(merkle_root)}.`,
    skills.length === 0 ? '' : '## Skills in force',
    skills.map(({ name, digest }) => `${md`- ${name} `}${code(digest)}`).join('\n'),
    records.length === 0 ? '' : '## Records',
    records.join('\n'),
  ]);
}

/** A note of these sections, with YAML front matter. Every JSON value is also YAML, so no value can break out of its line. */
function note(
  path: string,
  fields: Readonly<Record<string, unknown>>,
  links: Readonly<Record<string, string | readonly string[] | null>>,
  proof: LogProof,
  records: readonly ReturnType<typeof named>[],
  sections: readonly string[],
) {
  const { trouble, checkpointedThrough } = proof;
  const findings = records.flatMap(({ name }) => proof.findings.get(name) ?? []);
  const intact = trouble === undefined;
  const checkpointed = intact && records.every(({ position }) => position <= checkpointedThrough);
  const inert = Object.entries(fields).map(([key, value]) => [key, property(value)] as const);
  const lines = [...inert, ...Object.entries({ ...links, intact, checkpointed })]
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${jsonText(value)}`);
  const verification = [
    ...(intact
      ? ['[!success] Intact: every column is as the log recorded it.']
      : [`[!danger] Not ${findings.length === 0 ? 'known to be ' : ''}intact`, md`${trouble}`]),
    ...findings.map((finding) => md`- ${finding}`),
    `${checkpointed ? 'Covered' : 'Not covered'} by a signed checkpoint.`,
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

function taskLink(id: unknown): string {
  return typeof id === 'number' ? `[[${formatId(TASKS, id)}]]` : md`${id}`;
}

function thoughtSection(thought: ThoughtRow): string {
  const { id, type, recorded_at, recorded_by, branch, commit_sha, content, hash } = thought;
  const facts = [
    md`${formatId(THOUGHTS, id)} by ${recorded_by}`,
    ...(branch === null ? [] : [md`branch ${branch}`]),
    ...(commit_sha === null ? [] : [md`commit ${commit_sha}`]),
    code(hash),
  ];
  return [md`### ${recorded_at} ${type} ^th-${id}`, quoted(content), facts.join(' · ')].join('\n\n');
}

/** Markdown in which every value is text that only shows. All values of a note go through here. */
function md(ours: TemplateStringsArray, ...values: readonly unknown[]): string {
  return String.raw({ raw: ours }, ...values.map((value) => markdownLine(textFrom(value))));
}

/** Several lines of text as a quote, or inside a callout. */
function quoted(text: string): string {
  const lines = text.split(/\r\n?|\n/).map((line) => md`> ${line}`.trimEnd());
  return text === '' ? '' : lines.join('\n');
}

/** A hash. In code nothing can be escaped, and some code is run: whatever is not a hash is text. */
function code(hash: unknown): string {
  return typeof hash === 'string' && /^(?:[0-9a-f]+|gone)$/.test(hash) ? `\`${hash}\`` : md`${hash}`;
}

/**
 * A value of the front matter. Queries show it as Markdown and templates run what is in it. One without their syntax stays
 * exactly as it is, so that it can be searched for.
 */
function property(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => property(textFrom(item)));
  const isLive = typeof value === 'string' && (LIVE.test(value) || visibleLine(value) !== value);
  return isLive ? markdownLine(value) : value;
}

const LIVE = /[`<$]|\[\[|\]\(|%%|::|(?<!\bhttps?):\/\//i;

/** A note to be written: path inside the export folder, with forward slashes, and text. */
type Note = ReturnType<typeof note>;

/** Holds the digest of each note as it was last written here: a note with another digest was edited and is not ours any more. */
const MANIFEST = '.colibri-notes.json';

/** Brings the folder up to date. What is not exactly as it was written here is `kept` as it is. */
export function writeNotes(folder: string, notes: readonly Note[]) {
  // Before anything is read, written or deleted: a folder that is a link could lead to any notes of the user's.
  for (const inner of ['', 'Tasks', 'Sessions']) makePrivateFolder(join(folder, inner));
  const before = readJson(join(folder, MANIFEST));
  const after: Record<string, unknown> = {};
  const report = { written: [] as string[], unchanged: 0, deleted: [] as string[], kept: [] as string[] };
  const texts = new Map(notes.map(({ path, text }) => [path, text]));
  for (const name of new Set([...texts.keys(), ...Object.keys(before).filter(isInside)])) {
    const [path, text, known] = [join(folder, name), texts.get(name), before[name]];
    const [wanted, found] = [text && sha256Hex(text), digestAt(path)];
    const isOurs = found === undefined || (found !== null && [known, wanted].includes(found));
    if (!isOurs) report.kept.push(name);
    else if (found === wanted) report.unchanged += text === undefined ? 0 : 1;
    else if (text === undefined) {
      rmSync(path);
      report.deleted.push(name);
    } else {
      replaceFile(path, text, false);
      report.written.push(name);
    }
    // One that was edited is still remembered: if it is put back as it was, it is ours again.
    if (text !== undefined) after[name] = isOurs ? wanted : known;
  }
  if (textOf(before) !== textOf(after)) replaceFile(join(folder, MANIFEST), textOf(after), false);
  return report;
}

/** The digest of the note at a path, undefined if nothing is there; null for a link or a folder, which is never ours. */
function digestAt(path: string): string | null | undefined {
  if (!isThere(path)) return undefined;
  const bytes = readWhole(path);
  return bytes === undefined ? null : sha256Hex(bytes);
}

/** The manifest is in the vault, where anybody can edit it: a name in it must not lead out of the folder. */
function isInside(name: string): boolean {
  return /^(?:(?:Tasks|Sessions)\/)?[^\\/:]+\.md$/.test(name);
}

function textOf(digests: Readonly<Record<string, unknown>>): string {
  const sorted = Object.entries(digests).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify(Object.fromEntries(sorted), null, 1)}\n`;
}
