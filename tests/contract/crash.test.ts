import { expect } from 'vitest';
import { CuttingProxy } from '../driver/cutting-proxy.ts';
import { openDatabase } from '../driver/database.ts';
import { straceMissing } from '../driver/linux.ts';
import type { Playground } from '../driver/playground.ts';
import { holdTableAt } from '../driver/postgres.ts';
import { type Random, seededRandom } from '../driver/random.ts';
import { type ServerProcess, sleepMs, until } from '../driver/server-process.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { toolsMissing } from '../driver/surface.ts';
import { FULL, figure, tier } from '../driver/tier.ts';
import { injection, Tracer } from '../reliability/strace.ts';
import { proves } from './proves.ts';

/** Each part has a file of its own: the second reader reads all of it after each kill. */
const PARTS = tier(2, 10);
const ROUNDS = tier(4, 30);
const IN_FLIGHT = 16;

const noTasks = await toolsMissing('task_create', 'task_update', 'thought_record');
const noHold = noTasks ?? (process.env.COLIBRI_TEST_POSTGRES === undefined ? straceMissing() : undefined);

for (let part = 1; part <= PARTS; part += 1) {
  proves(
    ['write.durable', 'write.whole', 'recovery.crashed', 'log.chain'],
    `R1, R2: kill -9 at a random moment, ${ROUNDS} times: nothing acknowledged is lost, every call begun is explained once (part ${part})`,
    ({ colibri }) => killAgainAndAgain(colibri, seededRandom(`R1, part ${part}`)),
    // In the full tier one after the other, so that a restart is measured and not the crowd.
    { unless: noTasks, timeoutMs: 60_000 + ROUNDS * 20_000, concurrent: !FULL },
  );
}

async function killAgainAndAgain(colibri: Playground, random: Random): Promise<void> {
  const acked: string[] = [];
  let [unacked, crashed, worstStartMs] = [0, 0, 0];

  for (let round = 0; round < ROUNDS; round += 1) {
    const load = await runUntilKilled(colibri, random, round);
    acked.push(...load.acked);
    unacked += load.unknown;

    const began = performance.now();
    const server = await colibri.start();
    const { envelope } = await server.call('server_health');
    worstStartMs = Math.max(worstStartMs, performance.now() - began);
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
  figure('R1', {
    kills: ROUNDS,
    acked: acked.length,
    acked_lost: 0,
    unanswered: unacked,
    stored_unanswered: stored.size - acked.length,
    explained_as_crashed: crashed,
    worst_start_ms: Math.round(worstStartMs),
  });
}

proves(
  ['enter.survives', 'recovery.crashed', 'boot.order'],
  'R2: a call that was begun and killed is in the log, and the next start explains it before it serves',
  async ({ colibri }) => {
    const { server } = await stoppedInsideACall(colibri);
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
  { unless: noHold },
);

proves(
  'recovery.living',
  'a call of a process that still lives is left to it by one that starts',
  async ({ colibri }) => {
    const { server: stopped, resume } = await (colibri.isOnFile ? stoppedInsideACall : heldInALongRead)(
      colibri,
    );

    const other = await colibri.start();
    await other.call('server_ping');
    await other.closeInput();
    resume();
    await stopped.call('server_ping');
    await stopped.closeInput();

    const { calls, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    const outcomes = new Set(calls.flatMap(({ exits }) => exits.map((row) => row.outcome)));
    // On a busy machine, a server of a database ends what waits for longer than 10 s: the process itself says so.
    if (!colibri.isOnFile) outcomes.delete('error');
    expect(outcomes).toEqual(new Set(['ok']));
    expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
  },
  { unless: noHold },
);

/** Mixed writing load from a fresh process, cut off after a random number of answers. */
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
        const [tool, args] = anyCall(random, mark);
        const { error } = await server.call(tool, args);
        if (error === undefined && JSON.stringify(args).includes(mark)) acked.push(mark);
      } catch {
        unknown += 1;
        return;
      }
    }
  };
  const workers = Array.from({ length: IN_FLIGHT }, worker);
  const enough = random.between(0, tier(60, 250));
  await until(
    () => acked.length >= enough,
    30_000,
    () => 'the load does not get on',
  );
  await sleepMs(random.between(0, 5));
  await server.killHard();
  await Promise.all(workers);
  return { acked, unknown };
}

/** One writing call of any of the five tools that leaves a text of its own somewhere, or is refused. */
function anyCall(random: Random, mark: string): [tool: string, args: object] {
  const number = String(random.between(1, 9)).padStart(4, '0');
  return random.pick<[string, object]>([
    ['task_create', { title: mark, project: 'demo' }],
    ['thought_record', { task_id: 'T-0001', type: 'plan', content: mark }],
    ['task_update', { task_id: `T-${number}`, description: mark }],
    ['audit_session_start', { task_id: `T-${number}`, auditor_id: mark }],
    ['merkle_finalize', { session_id: `A-${number}` }],
  ]);
}

/** The texts of all calls that the log says were done, from what it keeps of their arguments. */
function marksIn(colibri: Playground): Set<string> {
  const { rows, payloads, texts } = colibri.readAudit();
  const done = rows.filter((row) => row.stage === 'exit' && row.outcome === 'ok');
  return new Set(
    done.flatMap((row) => {
      const kept = Object.values(JSON.parse(payloads.get(row.sequence_no)?.body ?? '{}') as object);
      const said = kept.map((value) => texts.get(String(value))?.text ?? String(value));
      return said.find((text) => /^mark-\d+-\d+$/.test(text)) ?? [];
    }),
  );
}

/**
 * A server stopped between a call's enter row and its end, and not while it holds a lock. Each commit takes locks and lets
 * them go: it is stopped at the first of these steps, the second, and so on, until that is between the commits of one call.
 */
async function stoppedInsideACall(
  colibri: Playground,
): Promise<{ readonly server: ServerProcess; resume(): void }> {
  if (!colibri.isOnFile) return await heldInsideACall(colibri);
  const server = await colibri.start();
  await server.call('server_ping');
  for (let nth = 1; nth < 40; nth += 1) {
    const fault = { syscall: 'fcntl', when: String(nth), signal: 'STOP' } as const;
    const tracer = await Tracer.attach(colibri, server, injection(fault));
    let isAnswered = false;
    const call = server.call('task_create', { title: `${nth}`, project: 'demo' });
    call.then(
      () => (isAnswered = true),
      () => undefined,
    );
    await until(
      // Not by its state: at each system call that is watched, it is stopped for a moment, too.
      () => isAnswered || tracer.log.includes('--- stopped by SIGSTOP'),
      10_000,
      () => 'the server neither stops nor answers',
    );
    await tracer.detach();
    if (isInsideACall(colibri.dbPath)) return { server, resume: () => server.kill('SIGCONT') };
    server.kill('SIGCONT');
    await call;
  }
  throw new Error('the server was never met inside a call');
}

/** The same where the database is on a server: what the server sends behind the first commit of its call does not get through. */
async function heldInsideACall(colibri: Playground) {
  const { proxy, url } = await CuttingProxy.before(colibri.dbPath);
  colibri.onDispose(() => proxy.close());
  const server = await colibri.start({ env: { COLIBRI_DATABASE_URL: url } });
  await server.call('server_ping');
  proxy.holdBehind();
  server.call('task_create', { title: 'held', project: 'demo' }).catch(() => undefined);
  await until(
    () => proxy.isHolding,
    10_000,
    () => 'the call never began',
  );
  expect(openCalls(colibri.dbPath)).toHaveLength(1);
  return { server, resume: () => proxy.release() };
}

/** One whose call is open and that holds no lock: what it verifies cannot be read. */
async function heldInALongRead(colibri: Playground) {
  const server = await colibri.start();
  await server.call('task_create', { title: 'a task', project: 'demo' });
  await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'first' });
  const lock = holdTableAt(colibri.dbPath, 'thoughts');
  colibri.onDispose(lock.release);
  server.call('audit_verify_chain', { task_id: 'T-0001' }).catch(() => undefined);
  await until(
    () => openCalls(colibri.dbPath).length === 1,
    10_000,
    () => 'the call never began',
  );
  return { server, resume: lock.release };
}

/** One call is open, and nobody holds a lock: looking through the writer's eyes answers both at once. */
function isInsideACall(path: string): boolean {
  const db = openDatabase(path, { timeout: 0 });
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
