import { expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import { openDatabase } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { readAt } from '../driver/postgres.ts';
import { type ServerProcess, sleepMs } from '../driver/server-process.ts';
import { openCalls, stateFindings } from '../driver/state-file.ts';
import { toolsMissing } from '../driver/surface.ts';
import { figure, tier } from '../driver/tier.ts';
import { holdWriteLock } from '../driver/write-lock.ts';
import { proves } from './proves.ts';

const PROCESSES = tier(4, 8);
const CALLS = tier(60, 2_000);
const ROUNDS = tier(2, 50);
/** As many as an agent with parallel tools has. */
const IN_FLIGHT = 8;
/** More processes than two cores can serve at a time: the holder of the lock is often not running. */
const CROWD = tier(10, 120);
const CROWD_CALLS = ['task_create', 'server_ping', 'task_create', 'task_create', 'server_health'];
const CROWD_MS_MAX = tier(60_000, 300_000);
const TASK = { title: 'a task', project: 'demo' };
const LOOP_WATCH = new URL('../driver/loop-watch.mjs', import.meta.url).href;

const noTasks = await toolsMissing('task_create', 'task_get');

proves(
  ['processes.one-chain', 'processes.no-busy', 'log.positions', 'log.pairs'],
  `R7: ${PROCESSES} processes × ${CALLS} reads on one file: one chain, no gap, no error`,
  async ({ colibri }) => {
    const servers = await Promise.all(Array.from({ length: PROCESSES }, () => colibri.start()));

    const errors = await Promise.all(servers.map((server) => callMany(server, 'server_ping', () => ({}))));

    expect(errors.flat()).toEqual([]);
    const { rows, findings, calls } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(rows).toHaveLength(2 * PROCESSES * CALLS);
    expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
    report('reads', servers, IN_FLIGHT);
  },
  { timeoutMs: 60_000 + PROCESSES * CALLS * 50 },
);

proves(
  [
    'processes.one-chain',
    'processes.no-busy',
    'processes.unique-ids',
    'ids.global',
    'ids.sequence',
    'write.whole',
  ],
  `R7: ${PROCESSES} processes × ${CALLS} writes on one file: one chain, no id twice, no error`,
  async ({ colibri }) => {
    const env = { NODE_OPTIONS: `--import ${LOOP_WATCH}` };
    const servers = await Promise.all(Array.from({ length: PROCESSES }, () => colibri.start({ env })));

    const errors = await Promise.all(
      servers.map((server, p) =>
        callMany(server, 'task_create', (i) => ({ title: `${p}/${i}`, project: i % 2 ? 'odd' : 'even' })),
      ),
    );

    expect(errors.flat()).toEqual([]);
    const { rows, findings, calls } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(rows).toHaveLength(2 * PROCESSES * CALLS);
    expect(calls.filter(({ exits }) => exits.map((row) => row.outcome).join() !== 'ok')).toEqual([]);
    const tasks = withDatabase(colibri.dbPath, (db) =>
      db
        .prepare(
          'SELECT tasks.id, text AS title, project, sequence FROM tasks JOIN texts ON digest = title ORDER BY tasks.id',
        )
        .all(),
    ) as { id: number; title: string; project: string; sequence: number }[];
    expect(tasks.map((task) => task.id)).toEqual(Array.from({ length: PROCESSES * CALLS }, (_, i) => i + 1));
    expect(new Set(tasks.map((task) => task.title)).size).toBe(PROCESSES * CALLS);
    for (const project of ['odd', 'even']) {
      const sequences = tasks.filter((task) => task.project === project).map((task) => task.sequence);
      expect(sequences).toEqual(sequences.map((_, i) => i + 1));
    }
    expect(stateFindings(colibri.dbPath)).toEqual([]);
    expect(openCalls(colibri.dbPath)).toEqual([]);
    report('writes', servers, IN_FLIGHT);
    for (const server of servers) await server.closeInput();
    figure('R7', { loop_stopped_ms: Math.max(...servers.map(loopStoppedMs)) });
  },
  { unless: noTasks, timeoutMs: 60_000 + PROCESSES * CALLS * 100 },
);

proves(
  ['processes.one-chain', 'processes.no-busy'],
  `R7: ${PROCESSES} agents × ${CALLS} writes on one file, each waiting for its answer: one chain, no error`,
  async ({ colibri }) => {
    const servers = await Promise.all(Array.from({ length: PROCESSES }, () => colibri.start()));

    const errors = await Promise.all(
      servers.map((server) =>
        callMany(server, 'task_create', (i) => ({ title: `${i}`, project: 'demo' }), { inFlight: 1 }),
      ),
    );

    expect(errors.flat()).toEqual([]);
    expect(colibri.readAudit()).toMatchObject({ findings: [], rows: { length: 2 * PROCESSES * CALLS } });
    report('writes', servers, 1);
  },
  { unless: noTasks, timeoutMs: 60_000 + PROCESSES * CALLS * 100 },
);

proves(
  ['processes.no-busy', 'processes.first-start', 'protocol.one-answer'],
  `R7, H8: ${CROWD} processes that start at once on no file and write at once: every call is answered, none is refused as busy`,
  async ({ colibri }) => {
    // To start so many programs takes longer than one program may: this is about the lock.
    const env = { COLIBRI_STARTUP_TIMEOUT_MS: String(CROWD_MS_MAX) };
    const servers = Array.from({ length: CROWD }, () => colibri.spawn({ env, answerMsMax: CROWD_MS_MAX }));

    const errors = await Promise.all(
      servers.map(async (server) => {
        // Nobody waits for anybody: all calls are sent before the first process is up.
        const shaken = server.initialize();
        const calls = CROWD_CALLS.map((tool) => server.call(tool, tool === 'task_create' ? TASK : {}));
        await shaken;
        return (await Promise.all(calls)).flatMap(({ message, error }) => message.error ?? error ?? []);
      }),
    );

    expect(errors.flat()).toEqual([]);
    const { rows, findings, calls } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(rows).toHaveLength(2 * CROWD * CROWD_CALLS.length);
    expect(calls.filter(({ exits }) => exits.length !== 1)).toEqual([]);
    report('crowd', servers, CROWD_CALLS.length);
    await Promise.all(servers.map((server) => server.closeInput()));
  },
  { unless: noTasks, timeoutMs: 2 * CROWD_MS_MAX },
);

proves(
  ['processes.first-start', 'processes.no-busy'],
  `R8: eight processes that start at once on no file all come up healthy, ${ROUNDS} times`,
  async ({ colibri }) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { dbPath, env } = colibri.another(`round-${round}`);

      expect(await reasonsOfEight(() => colibri.start({ env }))).toEqual([]);

      expect(colibri.readAudit(dbPath)).toMatchObject({ findings: [], rows: { length: 16 } });
    }
  },
  { timeoutMs: 60_000 + ROUNDS * 20_000 },
);

proves(
  ['processes.first-start', 'processes.no-busy', 'recovery.crashed'],
  'R8: eight processes that start at once on the file of a crashed one all come up healthy',
  async ({ colibri }) => {
    for (let round = 0; round < Math.ceil(ROUNDS / 2); round += 1) {
      const { dbPath, env } = colibri.another(`round-${round}`);
      const crashed = await colibri.start({ env });
      await Promise.all(Array.from({ length: 300 }, () => crashed.call('server_ping')));
      await crashed.killHard();

      expect(await reasonsOfEight(() => colibri.start({ env }))).toEqual([]);

      expect(colibri.readAudit(dbPath).findings).toEqual([]);
    }
  },
  { timeoutMs: 60_000 + ROUNDS * 20_000 },
);

proves(
  'processes.first-start',
  'processes that come and go on one file never find it locked',
  async ({ colibri }) => {
    const comeAndGo = async () => {
      const reasons: unknown[] = [];
      for (let i = 0; i < 6; i += 1) {
        const server = await colibri.start();
        reasons.push(await reasonOf(server));
        expect((await server.closeInput()).code).toBe(0);
      }
      return reasons;
    };

    const reasons = await Promise.all([comeAndGo(), comeAndGo(), comeAndGo()]);

    expect(reasons.flat().filter((reason) => reason !== undefined)).toEqual([]);
    expect(colibri.readAudit()).toMatchObject({ findings: [], rows: { length: 36 } });
  },
);

proves(
  ['processes.slow-reader', 'processes.no-busy'],
  'a reader that takes its time does not hold up a writer',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { title: 'before', project: 'demo' });
    const seen = colibri.isOnFile ? snapshotOf(colibri) : onServer(colibri);

    const errors = await callMany(server, 'task_create', (i) => ({ title: `${i}`, project: 'demo' }), {
      count: 30,
    });

    expect(errors).toEqual([]);
    expect(seen()).toBe(1);
    expect((await server.call('task_get', { task_id: 'T-0031' })).envelope?.data).toMatchObject({
      task_id: 'T-0031',
    });
  },
  { unless: noTasks },
);

proves(
  'processes.no-busy',
  'a writer that has to wait a second for another is not refused',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('server_ping');
    const lock = holdWriteLock(colibri);

    const calls = [server.call('task_create', { title: 'a', project: 'demo' }), server.call('server_ping')];
    await sleepMs(1_000);
    lock.release();

    for (const { envelope } of await Promise.all(calls))
      expect(envelope).toMatchObject({ ok: true, data: expect.not.objectContaining({ ok: false }) });
  },
  { unless: noTasks },
);

proves(
  ['processes.stuck', 'processes.one-chain'],
  'a process that is stopped while it works holds up nobody for good, and goes on where it was',
  async ({ colibri }) => {
    const [stopped, other] = [await colibri.start(), await colibri.start()];
    const calls = Array.from({ length: 50 }, (_, i) =>
      stopped.call('task_create', { title: `${i}`, project: 'demo' }),
    );
    await calls[2];

    stopped.kill('SIGSTOP');
    const meanwhile = await other.call('task_create', { title: 'other', project: 'demo' });
    stopped.kill('SIGCONT');
    const answers = await Promise.all(calls);

    const busy = meanwhile.error?.message.startsWith('ERR_STORAGE_BUSY: ');
    expect(busy || meanwhile.error === undefined).toBe(true);
    expect(answers.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(colibri.readAudit().findings).toEqual([]);
    expect(stateFindings(colibri.dbPath)).toEqual([]);
  },
  { unless: noTasks },
);

/** What a reader counts that began before. */
function snapshotOf(colibri: Playground): () => unknown {
  const reader = openDatabase(colibri.dbPath, { readOnly: true });
  colibri.onDispose(() => reader.close());
  reader.exec('BEGIN');
  const seen = () => reader.prepare('SELECT count(*) FROM tasks').pluck().get();
  seen();
  return seen;
}

/** A reader of a database on a server has counted once, and its transaction stays open. */
function onServer(colibri: Playground): () => unknown {
  const reader = readAt(colibri.dbPath, 'tasks');
  colibri.onDispose(reader.release);
  return () => 1;
}

/** Keeps a few calls in flight. Returns what went wrong. */
async function callMany(
  server: ServerProcess,
  tool: string,
  args: (i: number) => object,
  { count = CALLS, inFlight = IN_FLIGHT }: { readonly count?: number; readonly inFlight?: number } = {},
): Promise<unknown[]> {
  const errors: unknown[] = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const { message, error } = await server.call(tool, args(next++));
      if (message.error !== undefined || error !== undefined) errors.push(message.error ?? error);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return errors;
}

/** The longest time the event loop of a server stood still, as the watch in it says at its end. */
function loopStoppedMs({ stderr }: ServerProcess): number {
  return Number(/event loop stopped (\d+) ms/.exec(stderr)?.[1]);
}

/** Why any of eight servers started at once is not healthy. */
async function reasonsOfEight(start: () => Promise<ServerProcess>): Promise<unknown[]> {
  const servers = await Promise.all(Array.from({ length: 8 }, start));
  const reasons = await Promise.all(servers.map(reasonOf));
  await Promise.all(servers.map((server) => server.closeInput()));
  return reasons.filter((reason) => reason !== undefined);
}

async function reasonOf(server: ServerProcess): Promise<unknown> {
  const { envelope } = await server.call('server_health');
  const health = envelope?.data as { status: string; db: { reason?: string } } | undefined;
  return health?.status === 'ok' ? undefined : (health?.db.reason ?? 'no health');
}

/** The slowest calls, for whoever runs the big numbers. Never asserted: the machine is shared. */
function report(what: string, servers: readonly ServerProcess[], inFlight: number): void {
  const waits = servers
    .flatMap((server) => server.history)
    .filter((sent) => sent.what === 'tools/call')
    .map((sent) => (sent.settledMs ?? 0) - sent.sentMs)
    .sort((a, b) => a - b);
  const at = (share: number) => Math.round(waits[Math.floor((waits.length - 1) * share)] ?? 0);
  figure('R7', {
    what,
    processes: servers.length,
    calls: waits.length,
    errors: 0,
    in_flight_each: inFlight,
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    worst_ms: at(1),
  });
}
