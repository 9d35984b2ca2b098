import { mkdirSync, writeFileSync } from 'node:fs';
import { type Fact, STATE_TABLES, type StateTable } from '../../src/log/tables.ts';
import { repository } from '../driver/anchor-places.ts';
import { withDatabase } from '../driver/audit-file.ts';
import { openDatabase } from '../driver/database.ts';
import type { ToolAnswer } from '../driver/message.ts';
import type { Playground } from '../driver/playground.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { type Cells, ForgedLog } from './forge.ts';

/** A log that nobody has touched, and every version of every row of state it ever had. */
export interface HonestLog {
  readonly dbPath: string;
  readonly configDir: string;
  readonly versions: ReadonlyMap<number, readonly { readonly table: StateTable; readonly row: Cells }[]>;
}

/**
 * A log with something of everything, made by the built server: both workflows, parents, dependencies, every field of
 * an update, every refusal of a rule, rejected and denied calls, a crash, sessions of both scopes, three processes.
 * Ids are always the same; see the calls.
 */
export async function makeHonestLog(colibri: Playground): Promise<HonestLog> {
  const git = repository(colibri);
  git('checkout', '-q', '-b', 'trunk');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  mkdirSync(colibri.path('.agents', 'skills', 'review'), { recursive: true });
  writeFileSync(
    colibri.path('.agents', 'skills', 'review', 'SKILL.md'),
    '---\nname: review\ndescription: How to review.\n---\nRead it twice.\n',
  );
  const desk = new Desk(colibri);
  await desk.start({ COLIBRI_AGENT_ID: 'alice' });
  await makeTasks(desk);
  await fillProofs(desk);
  await provokeRefusals(desk);
  await readAround(desk);
  await desk.stop();
  crash(colibri, desk);
  await desk.start({ COLIBRI_AGENT_ID: 'bob', COLIBRI_PROJECTS: 'core,web', COLIBRI_WORKFLOW: 'pipeline' });
  await goOn(desk);
  await desk.stop();
  await desk.start({ COLIBRI_AGENT_ID: 'carol', COLIBRI_MODE: 'READONLY' });
  await desk.refused('TOOL_NOT_ADMITTED', 'task_create', { title: 'Not today', project: 'core' });
  await desk.ok('task_get', { task_id: 'T-0001' });
  await desk.stop();
  mergeFile(colibri.dbPath);
  return { dbPath: colibri.dbPath, configDir: desk.configDir, versions: desk.versions };
}

/** One server at a time, and a look at the rows of state after each call. */
class Desk {
  readonly versions = new Map<number, { table: StateTable; row: Cells }[]>();
  readonly #colibri: Playground;
  #server: ServerProcess | undefined;
  #seen = 0;

  constructor(colibri: Playground) {
    this.#colibri = colibri;
  }

  get configDir(): string {
    return this.#colibri.path('config', 'colibri');
  }

  async start(env: Readonly<Record<string, string>>): Promise<void> {
    this.#server = await this.#colibri.start({ env });
  }

  async stop(): Promise<void> {
    await this.#server?.closeInput();
  }

  async ok(tool: string, args: object): Promise<void> {
    const answer = await this.#call(tool, args);
    if (codeOf(answer) !== undefined) throw new Error(`${tool}: ${JSON.stringify(answer.envelope)}`);
  }

  async refused(code: string, tool: string, args: object): Promise<void> {
    const answer = await this.#call(tool, args);
    if (codeOf(answer) !== code) throw new Error(`${tool}, not ${code}: ${JSON.stringify(answer)}`);
  }

  /** A call whose answer is not looked at. */
  async any(tool: string, args: object): Promise<void> {
    await this.#call(tool, args);
  }

  async #call(tool: string, args: object): Promise<ToolAnswer> {
    if (this.#server === undefined) throw new Error('no server');
    const answer = await this.#server.call(tool, args);
    this.#look();
    return answer;
  }

  #look(): void {
    withDatabase(this.#colibri.dbPath, (db) => {
      const before = this.#seen;
      for (const table of STATE_TABLES) {
        const sql = `SELECT ${table.facts.join(', ')} FROM ${table.name} WHERE position > ? ORDER BY position, id`;
        const rows = db.prepare(sql).all(before) as Record<string, Fact>[];
        for (const row of rows) this.#keep(table, row);
      }
      this.#seen = Number(db.prepare('SELECT max(position) FROM actions').pluck().get());
    });
  }

  #keep(table: StateTable, row: Cells): void {
    const position = Number(row.position);
    this.versions.set(position, [...(this.versions.get(position) ?? []), { table, row }]);
  }
}

function codeOf({ envelope }: ToolAnswer): unknown {
  // The trail says its code at the front of the message.
  const text = JSON.stringify(envelope ?? {});
  return (/"message":"([A-Z_]+): /.exec(text) ?? /"code":"(\w+)"/.exec(text))?.[1];
}

/** T-0001 to T-0003: a parent, its child, and a pipeline task that waits. */
async function makeTasks(desk: Desk): Promise<void> {
  const task = (number: number, change: object) =>
    desk.ok('task_update', { task_id: `T-000${number}`, ...change });
  await desk.ok('server_ping', {});
  await desk.ok('task_create', {
    ...{ title: 'Ship the release', project: 'core', description: 'All of it.', labels: ['a', 'b', 'a'] },
    ...{ priority: 'high', assignee: 'alice', estimate_hours: 8, type: 'implementation' },
  });
  await desk.ok('task_create', { title: 'Write the notes', project: 'core', parent_id: 'T-0001' });
  await desk.ok('task_create', {
    title: 'Measure',
    project: 'web',
    workflow: 'pipeline',
    depends_on: ['T-0002'],
  });
  for (const change of [
    ...[
      { title: 'Ship 0.2.0' },
      { description: 'Most of it.' },
      { priority: 'critical' },
      { assignee: 'bob' },
    ],
    ...[
      { labels: ['b', 'c'] },
      { estimate_hours: 6.5 },
      { progress: 10 },
      { depends_on: ['T-0003', 'T-0002'] },
    ],
  ])
    await task(1, change);
  await task(1, { status: 'todo' });
  await task(1, { status: 'in_progress', progress: 20 });
  await task(1, { status: 'blocked', blocked_reason: 'Waits for the notes.' });
  await task(1, { status: 'in_progress' });
  await task(1, { status: 'review', progress: 100 });
  await desk.refused('ERR_WRITEBACK_REQUIRED', 'task_update', { task_id: 'T-0001', status: 'done' });
  await desk.ok('thought_record', { task_id: 'T-0001', type: 'plan', content: 'First the notes.' });
  await desk.ok('thought_record', {
    ...{
      task_id: 'T-0001',
      type: 'decision',
      content: 'Ship it.',
      branch: 'release',
      commit_sha: 'f'.repeat(40),
    },
    ...{ tests_run: ['unit', 'contract'], blockers: ['none'], metadata: { b: [1, 2], a: 'x' } },
  });
  await task(1, { status: 'done', progress: 90 });
  await desk.refused('ERR_INVALID_TRANSITION', 'task_update', { task_id: 'T-0001', status: 'todo' });
  for (const status of ['GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'GATHER']) await task(3, { status });
  await desk.refused('ERR_INVALID_TRANSITION', 'task_update', { task_id: 'T-0003', status: 'APPLY' });
}

/** T-0004 is proof-grade and finished under the deep session A-0001; A-0002 on T-0006 is shallow and sealed for one task. */
async function fillProofs(desk: Desk): Promise<void> {
  const thought = (task: string, content: string, more: object = {}) =>
    desk.ok('thought_record', { task_id: task, type: 'analysis', content, ...more });
  await desk.ok('task_create', { title: 'Prove it', project: 'core', proof_grade: true });
  const early = { task_id: 'T-0004', type: 'risk', content: 'Too early.' };
  await desk.refused('ERR_SESSION_REQUIRED', 'thought_record', early);
  const session = { task_id: 'T-0004', auditor_id: 'eve', reason: 'For the record.', scope: 'deep' };
  await desk.ok('audit_session_start', session);
  await desk.refused('ERR_SESSION_EXISTS', 'audit_session_start', { task_id: 'T-0004', auditor_id: 'eve' });
  await desk.ok('task_create', {
    title: 'A part of it',
    project: 'core',
    parent_id: 'T-0004',
    type: 'spike',
  });
  await thought('T-0004', 'It can be proved.', { tests_run: ['lemma'], metadata: { sure: true } });
  await thought('T-0005', 'So can its part.');
  await thought('T-0004', 'And it was.', { session_id: 'A-0001', blockers: [] });
  for (const status of ['todo', 'in_progress', 'review'])
    await desk.ok('task_update', { task_id: 'T-0004', status });
  await desk.refused('ERR_PROOF_REQUIRED', 'task_update', { task_id: 'T-0004', status: 'done' });
  await desk.ok('merkle_finalize', { session_id: 'A-0001' });
  await desk.refused('ERR_ALREADY_FINALIZED', 'merkle_finalize', { session_id: 'A-0001' });
  const late = { task_id: 'T-0004', type: 'risk', content: 'Too late.', session_id: 'A-0001' };
  await desk.refused('ERR_ALREADY_FINALIZED', 'thought_record', late);
  await desk.ok('task_update', { task_id: 'T-0004', status: 'done' });
  await desk.ok('task_create', { title: 'Look again', project: 'core', workflow: 'kanban' });
  await desk.ok('audit_session_start', { task_id: 'T-0006', auditor_id: 'eve' });
  await desk.refused('ERR_NO_RECORDS', 'merkle_finalize', { session_id: 'A-0002' });
  await thought('T-0006', 'Looked.');
  await desk.ok('task_update', { task_id: 'T-0006', description: 'Looked at twice.' });
  await desk.ok('merkle_finalize', { session_id: 'A-0002', task_id: 'T-0006' });
}

async function provokeRefusals(desk: Desk): Promise<void> {
  await desk.refused('ERR_TASK_NOT_FOUND', 'task_update', { task_id: 'T-0999', progress: 1 });
  await desk.refused('ERR_CIRCULAR_DEPENDENCY', 'task_update', { task_id: 'T-0002', depends_on: ['T-0001'] });
  await desk.refused('ERR_SESSION_NOT_FOUND', 'merkle_finalize', { session_id: 'A-0099' });
  await desk.refused('INVALID_PARAMS', 'task_create', { title: 3 });
  await desk.any('no_such_tool', { a: 1 });
  await desk.refused('ERR_TASK_NOT_FOUND', 'task_get', { task_id: 'T-0998' });
}

/** T-0007 is cancelled, T-0008 in the backlog, T-0009 to be done under the open deep session A-0003, T-0010 its child. */
async function readAround(desk: Desk): Promise<void> {
  for (const title of ['Give up', 'Later', 'Next']) await desk.ok('task_create', { title, project: 'web' });
  await desk.ok('task_update', { task_id: 'T-0007', status: 'cancelled' });
  await desk.ok('task_update', { task_id: 'T-0009', status: 'todo', priority: 'low' });
  await desk.ok('audit_session_start', { task_id: 'T-0009', auditor_id: 'mallory', scope: 'deep' });
  await desk.ok('task_create', {
    title: 'Part of next',
    project: 'web',
    parent_id: 'T-0009',
    depends_on: ['T-0008'],
  });
  await desk.ok('thought_record', { task_id: 'T-0009', type: 'reflection', content: 'Next is near.' });
  await desk.ok('task_get', { task_id: 'T-0001', include_thought_trail: true });
  await desk.ok('task_list', { search: 'ship' });
  await desk.ok('task_next_actions', {});
  await desk.ok('thought_record_list', { task_id: 'T-0001' });
  await desk.ok('merkle_root', { session_id: 'A-0001' });
  await desk.ok('skill_list', {});
  await desk.ok('server_health', {});
}

/** A process that was killed between its enter row and its exit row leaves exactly this. */
function crash(colibri: Playground, desk: Desk): void {
  const log = new ForgedLog(colibri.dbPath, desk.configDir, desk.versions);
  log.begin({
    tool: 'task_update',
    args: { task_id: 'T-0008', priority: 'low' },
    texts: { title: 'Never said' },
  });
  log.remembers = false;
  const [db, config] = [colibri.path('crashed.db'), colibri.path('crashed-config')];
  log.write(db, config);
  const copy = openDatabase(colibri.dbPath);
  copy.exec(`ATTACH '${db}' AS crashed`);
  copy.transaction(() => {
    const position = log.last.fields.position;
    for (const table of [
      'actions (position, text, content, chain)',
      'action_payloads (position, salt, body)',
      'open_calls (position, process)',
    ] as const) {
      const [name, columns = ''] = table.split(' (');
      copy
        .prepare(
          `INSERT INTO ${table} SELECT ${columns.slice(0, -1)} FROM crashed.${name} WHERE position = ?`,
        )
        .run(position);
    }
    copy.exec(
      'INSERT INTO texts SELECT * FROM crashed.texts WHERE digest NOT IN (SELECT digest FROM main.texts)',
    );
    copy.exec('DELETE FROM log_heads');
    copy.exec('INSERT INTO log_heads SELECT * FROM crashed.log_heads');
    copy.exec('INSERT OR REPLACE INTO processes SELECT * FROM crashed.processes');
    copy.exec('INSERT OR IGNORE INTO log_blocks SELECT * FROM crashed.log_blocks');
  })();
  copy.close();
}

/**
 * T-0011 is what the configured defaults make; T-0012 is proof-grade and in review under the open session A-0004;
 * T-0013 is in review without a thought; T-0003 is taken over from an agent that is gone. The rest passes the first block of 256 rows.
 */
async function goOn(desk: Desk): Promise<void> {
  await desk.refused('ERR_PROJECT_NOT_FOUND', 'task_create', { title: 'Elsewhere', project: 'other' });
  await desk.ok('task_create', { title: 'By default', project: 'web' });
  await desk.ok('task_update', { task_id: 'T-0011', status: 'GATHER', labels: ['c'] });
  await desk.ok('task_update', { task_id: 'T-0009', status: 'in_progress' });
  await desk.ok('task_update', { task_id: 'T-0010', priority: 'high' });
  await desk.refused('ERR_TASK_HELD', 'task_update', { task_id: 'T-0003', status: 'ANALYZE' });
  await desk.ok('task_update', { task_id: 'T-0003', status: 'ANALYZE', takeover: true });
  await desk.ok('thought_record', { task_id: 'T-0010', type: 'discovery', content: 'A part was found.' });
  await desk.ok('thought_record', {
    task_id: 'T-0002',
    type: 'blockers',
    content: 'None.',
    session_id: undefined,
  });
  await desk.refused('ERR_SESSION_NOT_FOUND', 'thought_record', {
    ...{ task_id: 'T-0002', type: 'plan', content: 'Not covered.', session_id: 'A-0003' },
  });
  await desk.ok('task_create', {
    title: 'Prove that too',
    project: 'core',
    workflow: 'kanban',
    proof_grade: true,
  });
  await desk.ok('task_create', { title: 'In a hurry', project: 'core', workflow: 'kanban' });
  await desk.ok('audit_session_start', { task_id: 'T-0012', auditor_id: 'eve' });
  await desk.ok('thought_record', { task_id: 'T-0012', type: 'plan', content: 'Not sealed yet.' });
  for (const task_id of ['T-0012', 'T-0013'])
    for (const status of ['todo', 'in_progress', 'review']) await desk.ok('task_update', { task_id, status });
  await desk.ok('audit_verify_chain', { task_id: 'T-0001' });
  for (let i = 0; i < 33; i += 1) await desk.any('server_ping', {});
}

function mergeFile(path: string): void {
  const db = openDatabase(path);
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}
