import type { Playground } from '../../../tests/driver/playground.ts';
import type { ServerProcess } from '../../../tests/driver/server-process.ts';

/** A log as agents leave it: a proof-grade task in a session, dependencies, a parent, odd text, refused and failed calls. */
export interface RealLog {
  readonly colibri: Playground;
  readonly dbPath: string;
  readonly configDir: string;
  /** The proof-grade task, its session and its first thought. */
  readonly task: string;
  readonly session: string;
  readonly thought: string;
}

const ODD = 'naïve Θ 漢字 🐦 \u202Eover\u202C "quotes" \\ \t tab\nnew line \u2028';

/** Plays one through the built server over stdio and stops it cleanly, so that everything is signed. */
export async function playRealLog(colibri: Playground, rounds = 2): Promise<RealLog> {
  const server = await colibri.start({ clientName: 'builder' });
  const first = await createTask(server, { title: 'Foundations', project: 'house' });
  const parent = await createTask(server, { title: `House ${ODD}`.slice(0, 200), project: 'house' });
  const task = await createTask(server, {
    title: 'Roof',
    project: 'house',
    proof_grade: true,
    depends_on: [first],
    parent_id: parent,
    labels: ['ünï', 'b'],
    estimate_hours: 2.5,
  });
  const session = await startSession(server, task, 'deep');
  for (let round = 0; round < rounds; round += 1) {
    await server.call('thought_record', {
      task_id: task,
      type: 'decision',
      content: `${ODD} ${round}`,
      metadata: { round, ratio: 0.1, nested: { list: [1, null, 'x'] } },
      tests_run: ['unit'],
    });
    await server.call('task_update', { task_id: task, progress: 10 * (round + 1) });
  }
  await server.call('task_update', { task_id: task, status: 'done' });
  await server.call('task_update', { task_id: task, status: 'nonsense' });
  await server.call('task_update', { task_id: 'T-9999', status: 'todo' });
  await server.call('no_such_tool', { a: 1 });
  for (const status of ['todo', 'in_progress', 'review'])
    await server.call('task_update', { task_id: task, status });
  await server.call('task_update', { task_id: task, status: 'done' });
  await server.call('merkle_finalize', { session_id: session });
  await server.call('task_update', { task_id: task, status: 'done' });
  await server.call('thought_record', { task_id: first, type: 'plan', content: 'dig' });
  await server.call('task_update', { task_id: first, status: 'cancelled' });
  await startSession(server, parent, 'shallow');
  await server.call('task_get', { task_id: task, include_thought_trail: true });
  await server.closeInput();
  const configDir = colibri.path('config', 'colibri');
  return { colibri, dbPath: colibri.dbPath, configDir, task, session, thought: 'Θ-0001' };
}

async function createTask(server: ServerProcess, args: object): Promise<string> {
  const answer = await server.call('task_create', args);
  return String(answer.envelope?.data?.task_id);
}

async function startSession(server: ServerProcess, task_id: string, scope: string): Promise<string> {
  const answer = await server.call('audit_session_start', { task_id, auditor_id: 'auditor', scope });
  return String(answer.envelope?.data?.session_id);
}
