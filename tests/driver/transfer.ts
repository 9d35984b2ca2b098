import { withDatabase } from './audit-file.ts';
import { runColibri } from './command-line.ts';
import type { Playground } from './playground.ts';

const READ = [
  'SELECT id, origin FROM log',
  'SELECT position, text, content_hash, chain_hash FROM audit_rows',
  'SELECT * FROM action_payloads',
  ...['texts', 'erased_texts', 'log_heads', 'checkpoints', 'open_calls', 'processes', 'task_calls'].map(
    (table) => `SELECT * FROM ${table}`,
  ),
  ...[
    'log_blocks',
    'tasks',
    'thoughts',
    'sessions',
    'session_records',
    'task_labels',
    'task_dependencies',
  ].map((table) => `SELECT * FROM ${table}`),
];

/** Every stored row of a database as a text, by the query that reads it. */
export function contentOf(place: string): Map<string, string[]> {
  const textOf = (row: object) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
  return withDatabase(
    place,
    (db) => new Map(READ.map((sql) => [sql, (db.prepare(sql).all() as object[]).map(textOf).sort()])),
  );
}

/** Tables in which the rows of the first database are all in the second. */
export function missingFrom(
  before: ReadonlyMap<string, string[]>,
  after: ReadonlyMap<string, string[]>,
): string[] {
  return [...before].flatMap(([sql, rows]) => {
    const there = new Set(after.get(sql));
    return rows.filter((row) => !there.has(row)).map((row) => `${sql}: ${row}`);
  });
}

/** A log with everything in it: sealed work, a session that is open, labels, dependencies, an erased text. */
export async function workOn(colibri: Playground): Promise<void> {
  const server = await colibri.start();
  await server.call('task_create', {
    title: 'Mend the “roof” 屋根',
    project: 'p',
    labels: ['b', 'a'],
    estimate_hours: 0.1,
  });
  await server.call('task_create', {
    title: 'Paint it',
    project: 'p',
    depends_on: ['T-0001'],
    description: 'unforgettable words',
  });
  await server.call('task_create', {
    title: 'Sell it',
    project: 'q',
    parent_id: 'T-0001',
    proof_grade: true,
  });
  await server.call('audit_session_start', { task_id: 'T-0003', auditor_id: 'ada' });
  await server.call('thought_record', {
    task_id: 'T-0003',
    type: 'plan',
    content: 'x',
    metadata: { a: [1, 2.5] },
  });
  await server.call('merkle_finalize', { session_id: 'A-0001' });
  await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' });
  await server.call('task_update', { task_id: 'T-0001', status: 'todo', progress: 33.3 });
  await server.call('task_update', { task_id: 'T-0001', status: 'done' });
  await server.closeInput();
  await runColibri(colibri, ['erase', 'T-0002', '--reason', 'they asked', '--yes']);
}

export const PASSWORD = 'opensesame';
export const withPassword = (url: string) => url.replace('owner@', `owner:${PASSWORD}@`);
export const onServer = (url: string) => ({ env: { COLIBRI_DB_PATH: '', COLIBRI_DATABASE_URL: url } });
