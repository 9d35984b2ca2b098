import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StorageEngine } from '../../storage/engine.ts';
import type { Finding } from '../../verify/finding.ts';
import { DatabaseSource } from '../../verify/sources/database.ts';
import type { Verdict } from '../../verify/verdict.ts';
import { verify } from '../../verify/verify.ts';
import { type Bench, openBench } from '../tasks/bench.ts';

/** A fresh database and the five stages on it. */
export async function freshBench(): Promise<Bench> {
  return await openBench(mkdtempSync(join(tmpdir(), 'verify-')), {}, { log: () => undefined });
}

/** Verifies a database as it is. */
export async function verdictOf(
  storage: StorageEngine,
  now = Date.now(),
): Promise<{ verdict: Verdict; findings: Finding[] }> {
  const findings: Finding[] = [];
  const report = (finding: Finding) => void findings.push(finding);
  const verdict = await storage.read((tx) =>
    verify(new DatabaseSource(storage, tx), { report, now, keys: { trusted: [] } }),
  );
  return { verdict, findings };
}

/** One of everything: tasks with parents and dependencies, thoughts, sessions, seals, refusals, reads and bad input. */
export async function tellStory(bench: Bench): Promise<void> {
  const call = async (name: string, args: object, actor?: string) => await bench.call(name, args, actor);
  await call('task_create', { title: 'Parent', project: 'p', proof_grade: true, labels: ['a', 'b', 'a'] });
  await call('task_create', {
    title: 'Kind',
    description: 'text',
    project: 'p',
    parent_id: 'T-0001',
    workflow: 'pipeline',
  });
  await call('task_create', {
    title: 'Other',
    project: 'q',
    depends_on: ['T-0001', 'T-0002'],
    estimate_hours: 2.5,
  });
  await call('task_create', { title: 'Lost', project: 'q', parent_id: 'T-0099' });
  await call('task_update', { task_id: 'T-0001', status: 'todo' });
  await call('task_update', { task_id: 'T-0001', status: 'done' });
  await call('task_update', { task_id: 'T-0001', status: 'in_progress' }, 'bob');
  await call('thought_record', { task_id: 'T-0001', type: 'decision', content: 'no session' });
  await call('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve', reason: 'why', scope: 'deep' });
  await call('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve' });
  await call('thought_record', {
    task_id: 'T-0001',
    type: 'decision',
    content: 'first ü',
    tests_run: ['x'],
    metadata: { k: 1 },
  });
  await call('thought_record', { task_id: 'T-0002', type: 'plan', content: 'child thought' });
  await call('task_update', { task_id: 'T-0002', status: 'GATHER', title: 'Child' });
  await call('task_update', { task_id: 'T-0003', depends_on: ['T-0002'], labels: ['z'] });
  await call('task_update', { task_id: 'T-0002', depends_on: ['T-0003'] });
  await call('merkle_finalize', { session_id: 'A-0001' });
  await call('merkle_finalize', { session_id: 'A-0001' });
  await call('task_update', { task_id: 'T-0001', status: 'review' }, 'bob');
  await call('task_update', { task_id: 'T-0001', status: 'done', progress: 3 });
  await call('thought_record', { task_id: 'T-0002', type: 'risk', content: 'second child thought' });
  await call('task_update', { task_id: 'T-0003', status: 'blocked', blocked_reason: 'waits' });
  await call('task_update', { task_id: 'T-0003', status: 'todo' });
  await call('task_update', { task_id: 'T-0003', status: 'blocked', blocked_reason: 'waits' });
  await call('task_get', { task_id: 'T-0001' });
  await call('task_list', { search: 'Kind' });
  await call('task_update', { task_id: 'T-0001', nonsense: true });
  await call('no_such_tool', {}).catch(() => undefined);
  await call('audit_session_start', { task_id: 'T-0003', auditor_id: 'eve' });
  await call('thought_record', { task_id: 'T-0003', type: 'analysis', content: 'open' });
}
