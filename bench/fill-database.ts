// Fills a database through the real stages, but in a few large transactions instead of one or two a call.
import { catalogue } from '../src/catalogue.ts';
import { systemClock } from '../src/clock.ts';
import { createAuditLog } from '../src/log/audit-log.ts';
import { composeCall } from '../src/middleware/compose.ts';
import { createToolLock } from '../src/middleware/tool-lock.ts';
import type { StorageEngine } from '../src/storage/engine.ts';
import { openSqlite } from '../src/storage/sqlite/engine.ts';

const BATCH_CALLS = 5_000;
const WORDS =
  'parser index retry schema ledger socket cursor widget harvest beacon lantern orchard copper meadow signal'.split(
    ' ',
  );

export interface Filling {
  readonly tasks: number;
  /** Audit rows to end with; the rest after the tasks are pings. */
  readonly rows: number;
  /** Every n-th task gets a child or a dependency and moves on; the rest wait in the backlog. */
  readonly thoughtsOnFirst?: number;
}

export async function fillDatabase(
  path: string,
  { tasks, rows, thoughtsOnFirst = 0 }: Filling,
): Promise<void> {
  const engine = await openSqlite({ path });
  const inBatch = async (work: (call: Caller) => Promise<void>) => {
    await engine.write(async (tx) => {
      const storage: StorageEngine = {
        ...engine,
        facts: engine.facts,
        read: (w) => w(tx),
        write: (w) => w(tx),
        sync: async () => undefined,
        selfCheck: async () => [],
        close: async () => undefined,
      };
      await work(callerOn(storage));
    });
  };
  for (let from = 0; from < tasks; from += BATCH_CALLS) {
    await inBatch(async (call) => {
      for (let i = from; i < Math.min(tasks, from + BATCH_CALLS); i += 1) await createOne(call, i);
    });
  }
  for (let from = 0; from < thoughtsOnFirst; from += BATCH_CALLS) {
    await inBatch(async (call) => {
      for (let i = from; i < Math.min(thoughtsOnFirst, from + BATCH_CALLS); i += 1) {
        await call('thought_record', {
          task_id: 'T-0001',
          type: 'analysis',
          content: `step ${i}: ${words(i, 8)}`,
        });
      }
    });
  }
  for (let left = await rowsLeft(engine, rows); left > 0; left = await rowsLeft(engine, rows)) {
    await inBatch(async (call) => {
      for (let i = 0; i < Math.min(BATCH_CALLS, Math.ceil(left / 2)); i += 1) await call('server_ping', {});
    });
  }
  await engine.sync();
  await engine.close();
}

async function createOne(call: Caller, i: number): Promise<void> {
  await call('task_create', {
    title: `${words(i, 3)} number ${i}`,
    project: `project-${i % 10}`,
    description: words(i * 7, 30),
    priority: (['low', 'normal', 'high', 'critical'] as const)[i % 4],
    labels: [`team-${i % 5}`],
  });
  const task_id = `T-${String(i + 1).padStart(4, '0')}`;
  if (i % 3 === 0) await call('task_update', { task_id, status: 'todo' });
  if (i % 6 === 0) await call('task_update', { task_id, status: 'cancelled' });
}

/** Words as an owner of a hundred thousand tasks would use them: some in every tenth task, some in few. */
function words(seed: number, count: number): string {
  return Array.from(
    { length: count },
    (_, k) => `${WORDS[(seed + k * 3) % WORDS.length]}${(seed * 31 + k) % 97}`,
  ).join(' ');
}

type Caller = (name: string, args: object) => Promise<unknown>;

function callerOn(storage: StorageEngine): Caller {
  const sink = createAuditLog({ storage, clock: systemClock, process: 'bench.bench.1.x' });
  const tools = catalogue({
    system: {
      version: '0',
      mode: 'FULL',
      uptimeMs: () => 0,
      now: () => Date.now(),
      storage: () => undefined,
      degraded: () => undefined,
      log: () => undefined,
      toolNames: () => [],
      skills: async () => ({ loaded: 0, skipped: [] }),
    },
    tasks: { project: undefined, projects: undefined, workflow: 'kanban' },
    trail: {
      evidence: { current: async () => undefined, commitExists: async () => undefined },
      monotonic: () => performance.now(),
    },
    proof: { skillsInForce: async () => [] },
  } as unknown as Parameters<typeof catalogue>[0]);
  const call = composeCall({
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    lock: createToolLock(),
    clock: systemClock,
    admission: { mode: 'FULL', degraded: () => undefined },
    log: () => undefined,
    ready: async () => ({ storage, sink }),
  });
  return async (name, args) => {
    const envelope = (await call(name, args, 'bench')) as { ok: boolean; data?: { ok?: boolean } };
    if (!envelope.ok || envelope.data?.ok === false) throw new Error(`${name}: ${JSON.stringify(envelope)}`);
    return envelope.data;
  };
}

async function rowsLeft(engine: StorageEngine, rows: number): Promise<number> {
  const found = await engine.read((tx) =>
    tx.get<{ position: number }>('SELECT max(position) AS position FROM actions'),
  );
  return rows - (found?.position ?? 0);
}
