import Sqlite from 'better-sqlite3';
import { expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import type { Playground } from '../driver/playground.ts';
import { type Random, seededRandom } from '../driver/random.ts';
import { type ServerProcess, sleepMs } from '../driver/server-process.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const ROUNDS = Number(process.env.COLIBRI_TEST_KILLS ?? 10);
const IN_FLIGHT = 16;

const noTasks = await toolsMissing('task_create', 'task_update', 'thought_record');

proves(
  ['write.durable', 'write.whole', 'recovery.crashed', 'log.chain'],
  `kill -9 at a random moment, ${ROUNDS} times: nothing acknowledged is lost, every call begun is explained once`,
  async ({ colibri }) => {
    const random = seededRandom('kill -9');
    const acked: string[] = [];
    let [unacked, crashed] = [0, 0];

    for (let round = 0; round < ROUNDS; round += 1) {
      const load = await runUntilKilled(colibri, random, round);
      acked.push(...load.acked);
      unacked += load.unknown;

      const server = await colibri.start();
      const { envelope } = await server.call('server_health');
      await server.closeInput();

      expect(envelope?.data).toMatchObject({ status: 'ok' });
      const { findings, calls } = colibri.readAudit();
      expect(findings).toEqual([]);
      expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
      crashed = calls.filter(({ exits }) => exits[0]?.outcome === 'crashed').length;
      expect(openCalls(colibri.dbPath)).toEqual([]);
    }

    const stored = marksIn(colibri);
    expect(acked.filter((mark) => !stored.has(mark))).toEqual([]);
    expect(stored.size - acked.length).toBeLessThanOrEqual(unacked);
    expect(stateFindings(colibri.dbPath)).toEqual([]);
    const before = colibri.readAudit().rows.length;
    await (await colibri.start()).closeInput();
    expect(colibri.readAudit().rows).toHaveLength(before);
    console.error(
      `measured ${ROUNDS} kills: ${acked.length} acknowledged, 0 lost, ${unacked} unanswered, ${crashed} explained as crashed`,
    );
  },
  { unless: noTasks, timeoutMs: 60_000 + ROUNDS * 5_000 },
);

proves(
  ['enter.survives', 'recovery.crashed', 'boot.order'],
  'a call that was begun and killed is in the log, and the next start explains it before it serves',
  async ({ colibri }) => {
    const server = await stoppedInsideACall(colibri);
    const [position] = openCalls(colibri.dbPath);
    const entered = colibri.readAudit().rows.find((row) => row.position === position);
    await server.killHard();

    const next = await colibri.start();
    await next.call('server_ping');
    await next.closeInput();
    const last = colibri.readAudit().rows.length;
    await (await colibri.start()).closeInput();

    const { rows, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(rows).toHaveLength(last);
    expect(entered).toMatchObject({ stage: 'enter', tool: 'task_create', outcome: 'running' });
    expect(rows.slice(-3)).toMatchObject([
      {
        stage: 'exit',
        outcome: 'crashed',
        sequence_no: entered?.sequence_no,
        correlation_id: entered?.correlation_id,
        effects: [],
      },
      { stage: 'enter', tool: 'server_ping' },
      { stage: 'exit', tool: 'server_ping' },
    ]);
    expect(stateFindings(colibri.dbPath)).toEqual([]);
    expect(openCalls(colibri.dbPath)).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  'recovery.living',
  'a call of a process that still lives is left to it by one that starts',
  async ({ colibri }) => {
    const stopped = await stoppedInsideACall(colibri);

    const other = await colibri.start();
    await other.call('server_ping');
    await other.closeInput();
    stopped.kill('SIGCONT');
    await stopped.call('server_ping');
    await stopped.closeInput();

    const { calls, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(new Set(calls.flatMap(({ exits }) => exits.map((row) => row.outcome)))).toEqual(new Set(['ok']));
    expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
  },
  { unless: noTasks },
);

/** Mixed writing load from a fresh process, cut off after a random time. */
async function runUntilKilled(
  colibri: Playground,
  random: Random,
  round: number,
): Promise<{ acked: string[]; unknown: number }> {
  const server = await colibri.start();
  await server.call('task_create', { title: 'base', project: 'demo' });
  const acked: string[] = [];
  let [next, unknown] = [0, 0];
  const worker = async () => {
    for (;;) {
      const mark = `mark-${round}-${next++}`;
      try {
        const { error } = await callWith(server, random, mark);
        if (error === undefined) acked.push(mark);
      } catch {
        unknown += 1;
        return;
      }
    }
  };
  const workers = Array.from({ length: IN_FLIGHT }, worker);
  await sleepMs(random.between(0, 150));
  await server.killHard();
  await Promise.all(workers);
  return { acked, unknown };
}

/** One writing call that leaves a text of its own somewhere. */
function callWith(server: ServerProcess, random: Random, mark: string) {
  if (random.oneIn(2)) return server.call('task_create', { title: mark, project: 'demo' });
  return server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: mark });
}

function marksIn(colibri: Playground): Set<unknown> {
  return withDatabase(
    colibri.dbPath,
    (db) =>
      new Set(
        db
          .prepare("SELECT title FROM tasks WHERE title LIKE 'mark-%' UNION ALL SELECT content FROM thoughts")
          .pluck()
          .all(),
      ),
  );
}

/**
 * A server stopped between a call's enter row and its end, and not while it holds a lock. Such moments are common, so
 * it is tried until one is met.
 */
async function stoppedInsideACall(colibri: Playground): Promise<ServerProcess> {
  const server = await colibri.start();
  await server.call('server_ping');
  let made = 0;
  for (let attempt = 0; attempt < 400; attempt += 1) {
    const calls = Array.from({ length: 10 }, () =>
      server.call('task_create', { title: `${made++}`, project: 'demo' }),
    );
    for (const call of calls) call.catch(() => undefined);
    await sleepMs(attempt % 7);
    server.kill('SIGSTOP');
    await sleepMs(1);
    if (isInsideACall(colibri.dbPath)) return server;
    server.kill('SIGCONT');
    await Promise.all(calls);
  }
  throw new Error('the server was never met inside a call');
}

/** One call is open, and nobody holds a lock: looking through the writer's eyes answers both at once. */
function isInsideACall(path: string): boolean {
  const db = new Sqlite(path, { timeout: 0 });
  try {
    db.exec('BEGIN IMMEDIATE');
    const open = db.prepare('SELECT count(*) FROM open_calls').pluck().get();
    db.exec('ROLLBACK');
    return open === 1;
  } catch {
    return false;
  } finally {
    db.close();
  }
}
