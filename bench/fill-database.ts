// Fills a database through the real stages, but in a few large transactions instead of one or two per call.
import { wiredTools } from '../src/catalogue.ts';
import { systemClock } from '../src/clock.ts';
import type { Config } from '../src/config.ts';
import type { Head, HeadKeeper } from '../src/log/append.ts';
import { createAuditLog } from '../src/log/audit-log.ts';
import { composeCall } from '../src/middleware/compose.ts';
import type { StorageEngine, Transaction } from '../src/storage/engine.ts';
import { openSqlite } from '../src/storage/sqlite/engine.ts';
import { LogSigner } from '../src/trust/signer.ts';

const BATCH_CALLS = 5_000;
/** Rows of writing calls among all rows, as the design asks of a log to verify. */
const WRITTEN_SHARE = 0.81;
const PROCESS = 'bench.bench.1.x';
const WORDS =
  'parser index retry schema ledger socket cursor widget harvest beacon lantern orchard copper meadow signal'.split(
    ' ',
  );

export interface Filling {
  readonly tasks: number;
  /** Audit rows to end with: thoughts and changes up to the share of writing calls, then pings. */
  readonly rows: number;
  readonly thoughtsOnFirst?: number;
  /** Where the key goes. */
  readonly configDir: string;
}

export async function fillDatabase(
  path: string,
  { tasks, rows, thoughtsOnFirst = 0, configDir }: Filling,
): Promise<void> {
  const engine = await openSqlite({ path });
  const quiet = () => undefined;
  const diagnostics = { error: console.error, warn: quiet, info: quiet, debug: quiet };
  const signer = new LogSigner({
    storage: engine,
    dbPath: path,
    configDir,
    diagnostics,
    clock: systemClock,
    process: PROCESS,
  });
  await signer.start();
  const batches = async (calls: number, one: (call: Caller, i: number) => Promise<void>) => {
    for (let from = 0; from < calls; from += BATCH_CALLS)
      await signer.storage.write((tx) =>
        inBatch(tx, engine, signer, async (call) => {
          for (let i = from; i < Math.min(calls, from + BATCH_CALLS); i += 1) await one(call, i);
        }),
      );
  };
  await batches(tasks, createOne);
  await batches(thoughtsOnFirst, (call, i) => think(call, 1, i));
  const written = Math.floor(((await rowsLeft(engine, rows * WRITTEN_SHARE)) / 2) * (tasks > 0 ? 1 : 0));
  await batches(Math.max(0, written), (call, i) => workOn(call, tasks, i));
  await batches(Math.ceil(Math.max(0, await rowsLeft(engine, rows)) / 2), async (call) => {
    await call('server_ping', {});
  });
  await engine.sync();
  signer.durable(signer.committed());
  await signer.stop();
  await engine.close();
}

/** Many calls in one transaction, signed once at its end. */
async function inBatch(
  tx: Transaction,
  engine: StorageEngine,
  signer: HeadKeeper,
  work: (call: Caller) => Promise<void>,
): Promise<void> {
  let head: Head = await signer.open(tx);
  const contentHashes: string[] = [];
  const keeper: HeadKeeper = {
    open: () => Promise.resolve(head),
    close: (_, now, hashes) => {
      head = now;
      contentHashes.push(...hashes);
      return Promise.resolve(undefined);
    },
  };
  const storage: StorageEngine = {
    ...engine,
    facts: engine.facts,
    read: (reading) => reading(tx),
    write: async (writing) => await writing(tx),
    sync: () => Promise.resolve(),
    assertInPlace: () => Promise.resolve(),
    selfCheck: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };
  await work(callerOn(storage, keeper));
  await signer.close(tx, head, contentHashes, false);
}

async function createOne(call: Caller, i: number): Promise<void> {
  await call('task_create', {
    title: `${words(i, 3)} number ${i}`,
    project: `project-${i % 10}`,
    description: words(i * 7, 30),
    priority: (['low', 'normal', 'high', 'critical'] as const)[i % 4],
    labels: [`team-${i % 5}`],
  });
  const task_id = idOf(i + 1);
  if (i % 3 === 0) await call('task_update', { task_id, status: 'todo' });
  if (i % 6 === 0) await call('task_update', { task_id, status: 'cancelled' });
}

/** Two changes for each thought: the loop that agents are taught has four moves and one or two thoughts. */
async function workOn(call: Caller, tasks: number, i: number): Promise<void> {
  const task = 1 + ((i * 7919) % tasks);
  if (i % 3 === 0) await think(call, task, i);
  else await call('task_update', { task_id: idOf(task), progress: i % 100 });
}

async function think(call: Caller, task: number, i: number): Promise<void> {
  await call('thought_record', {
    task_id: idOf(task),
    type: 'analysis',
    content: `step ${i}: ${words(i, 8)}`,
  });
}

function idOf(task: number): string {
  return `T-${String(task).padStart(4, '0')}`;
}

/** Words as an owner of a hundred thousand tasks would use them: some in every tenth task, some in few. */
function words(seed: number, count: number): string {
  return Array.from(
    { length: count },
    (_, k) => `${WORDS[(seed + k * 3) % WORDS.length]}${(seed * 31 + k) % 97}`,
  ).join(' ');
}

type Caller = (name: string, args: object) => Promise<unknown>;

function callerOn(storage: StorageEngine, keeper: HeadKeeper): Caller {
  const sink = createAuditLog({ storage, clock: systemClock, process: PROCESS, keeper });
  const config = { skillsDirs: [], workspace: '', isProject: false, workflow: 'kanban' } as unknown as Config;
  const tools = wiredTools(config, systemClock, '0');
  const { call } = composeCall({
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    clock: systemClock,
    source: 'mcp',
    admission: { mode: 'FULL', degraded: () => undefined },
    log: () => undefined,
    ready: () => Promise.resolve({ storage, sink }),
  });
  return async (name, args) => {
    const envelope = await call(name, args, 'bench');
    const inner = envelope.ok ? (envelope.data as { ok?: boolean }) : { ok: false };
    if (inner.ok === false) throw new Error(`${name}: ${JSON.stringify(envelope)}`);
    return inner;
  };
}

async function rowsLeft(engine: StorageEngine, rows: number): Promise<number> {
  const found = await engine.read((tx) =>
    tx.get<{ position: number | null }>('SELECT max(position) AS position FROM actions'),
  );
  return rows - (found?.position ?? 0);
}
