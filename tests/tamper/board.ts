import { copyFileSync } from 'node:fs';
import { withDatabase } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { openDatabase } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { type ServerProcess, sleepMs } from '../driver/server-process.ts';

/** More than one block of 256, so that a root is stored. */
const AUDIT_ROWS_MIN = 300;

/**
 * A database with something in every table and every column, made by the built server: both workflows, labels,
 * dependencies, thoughts, a sealed and an open session, erased texts, refused and failed calls, and calls that kill -9 cut off.
 * Returns the path of a file that nobody has open and that has no write-ahead log.
 */
export async function leaveBoard(colibri: Playground): Promise<string> {
  const server = await colibri.start({ clientName: 'ada' });
  await fillTasks(server);
  await fillTrail(server);
  await provokeRefusals(server);
  await eraseTask(colibri);
  await talkUntil(server, AUDIT_ROWS_MIN);
  await cutOffCalls(colibri, server);
  const path = colibri.path('board.db');
  const db = openDatabase(colibri.dbPath);
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
  copyFileSync(colibri.dbPath, path);
  return path;
}

async function fillTasks(server: ServerProcess): Promise<void> {
  const create = (args: object) => ok(server, 'task_create', { project: 'demo', ...args });
  const update = (task: number, args: object) =>
    ok(server, 'task_update', { task_id: `T-000${task}`, ...args });
  await create({ title: 'alpha first', description: 'beta \ufffd', labels: ['x', 'new'] });
  await create({ title: 'alpha second', description: 'gamma', labels: ['x', 'y'], priority: 'high' });
  await create({
    title: 'alpha third',
    description: 'delta',
    labels: ['x', 'y'],
    depends_on: ['T-0002'],
    parent_id: 'T-0001',
    type: 'spike',
    estimate_hours: 3,
    assignee: 'bob',
  });
  await create({ title: 'alpha fourth', workflow: 'pipeline', proof_grade: true, project: 'other' });
  await create({ title: 'alpha fifth', parent_id: 'T-0003', depends_on: ['T-0002', 'T-0004'] });
  await create({ title: 'alpha sixth', depends_on: ['T-0001'] });
  await create({ title: 'erased seventh', description: 'and all of it' });
  await update(3, { depends_on: ['T-0002', 'T-0004'] });
  await update(3, { status: 'todo' });
  await update(3, { status: 'blocked', blocked_reason: 'waits for the second' });
  await update(4, { status: 'GATHER' });
  await update(3, { progress: 40 });
}

/** T-0007 has no texts any more. */
async function eraseTask(colibri: Playground): Promise<void> {
  const args = ['erase', 'T-0007', '--reason', 'nobody must know', '--yes'];
  const { code, stderr } = await runColibri(colibri, args);
  if (code !== 0) throw new Error(stderr);
}

async function fillTrail(server: ServerProcess): Promise<void> {
  const think = (task: number, content: string, more: object = {}) =>
    ok(server, 'thought_record', { task_id: `T-000${task}`, type: 'decision', content, ...more });
  await ok(server, 'audit_session_start', {
    task_id: 'T-0003',
    auditor_id: 'carol',
    scope: 'deep',
    reason: 'release',
  });
  for (let i = 1; i <= 20; i += 1) {
    await think(3, `thought ${i} \ufffd`, {
      branch: 'main',
      commit_sha: `${i}`.padStart(40, 'a'),
      tests_run: ['unit', 'contract'],
      blockers: ['none'],
      metadata: { round: i },
    });
  }
  await ok(server, 'task_update', { task_id: 'T-0003', title: 'alpha third, reworded' });
  await ok(server, 'merkle_finalize', { session_id: 'A-0001' });
  await ok(server, 'audit_session_start', { task_id: 'T-0002', auditor_id: 'carol' });
  for (const content of ['one', 'two', 'three']) await think(2, content);
}

async function provokeRefusals(server: ServerProcess): Promise<void> {
  const refused = [
    ['task_create', { title: '', project: 'demo' }],
    ['task_create', { nonsense: true }],
    ['task_get', { task_id: 'T-9999' }],
    ['task_update', { task_id: 'T-0001', status: 'done' }],
    ['thought_record', { task_id: 'T-9999', type: 'plan', content: 'to nobody' }],
  ] as const;
  for (const [tool, args] of refused) {
    const { error } = await server.call(tool, args);
    if (error === undefined) throw new Error(`${tool} was not refused`);
  }
}

/** Reading calls and, now and then, one that writes. */
async function talkUntil(server: ServerProcess, rows: number): Promise<void> {
  for (let i = 0; 2 * i < rows; i += 1) {
    if (i % 10 === 0)
      await ok(server, 'task_create', { title: `filler ${i} \ufffd`, project: 'demo', labels: ['f'] });
    else await ok(server, 'server_ping', {});
  }
}

async function ok(server: ServerProcess, tool: string, args: object): Promise<void> {
  const { error } = await server.call(tool, args);
  if (error !== undefined) throw new Error(`${tool}: ${error.message}`);
}

/** Kills the server while calls are marked as running: the marks stay until the next start. */
async function cutOffCalls(colibri: Playground, first: ServerProcess): Promise<void> {
  let server = first;
  for (let attempt = 0; attempt < 400; attempt += 1) {
    const calls = Array.from({ length: 10 }, (_, i) =>
      server.call('task_create', { title: `cut ${attempt}.${i}`, project: 'demo' }),
    );
    const settled = Promise.allSettled(calls);
    await sleepMs(attempt % 7);
    server.kill('SIGSTOP');
    await sleepMs(1);
    if (marksOf(colibri.dbPath) > 0) {
      await server.killHard();
      await settled;
      if (marksOf(colibri.dbPath) > 0) return;
      // A commit was on its way when the server was stopped, and ended the call after all.
      server = await colibri.start({ clientName: 'ada' });
      continue;
    }
    server.kill('SIGCONT');
    await settled;
  }
  throw new Error('the server was never met inside a call');
}

function marksOf(path: string): number {
  return withDatabase(path, (db) => db.prepare('SELECT count(*) FROM open_calls').pluck().get() as number);
}
