import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { wiredTools } from '../../src/catalogue.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { Config } from '../../src/config.ts';
import { columnsOf } from '../../src/domains/lookup.ts';
import { READING_TOOLS } from '../../src/domains/rules.ts';
import { createAuditLog, recoverOpenCalls } from '../../src/log/audit-log.ts';
import type { AuditRow } from '../../src/log/row.ts';
import { parseId, STATE_TABLES, type StateTable } from '../../src/log/tables.ts';
import { composeCall } from '../../src/middleware/compose.ts';
import type { StorageEngine } from '../../src/storage/engine.ts';
import { processIdentity } from '../../src/storage/process-identity.ts';
import { openSqlite } from '../../src/storage/sqlite/engine.ts';
import { LogSigner } from '../../src/trust/signer.ts';
import type { Random } from '../driver/random.ts';
import type { Cells, JsonObject } from './forge.ts';

// A history drawn at random and played through the real stages, on a real file, with everything that may happen to a log:
// both workflows, projects named and not, sessions, dependencies, refusals, and calls whose process died.

export interface PlayedHistory {
  readonly dbPath: string;
  readonly configDir: string;
  readonly versions: Map<number, { table: StateTable; row: Cells }[]>;
  /** How many calls ended in which way. */
  readonly ends: ReadonlyMap<string, number>;
}

const PROJECTS = ['alpha', 'beta'];
const ACTORS = ['ana', 'ben', 'cleo'];
const KANBAN = ['todo', 'in_progress', 'blocked', 'review', 'done', 'cancelled', 'backlog'] as const;
const PIPELINE = ['GATHER', 'ANALYZE', 'PLAN', 'APPLY', 'VERIFY', 'DONE', 'CANCELLED'] as const;

export async function playHistory(folder: string, random: Random, calls: number): Promise<PlayedHistory> {
  const [dbPath, configDir] = [join(folder, 'db', 'colibri.db'), join(folder, 'config')];
  const opened = await openSqlite({ path: dbPath });
  const quiet = () => undefined;
  const diagnostics = { error: quiet, warn: quiet, info: quiet, debug: quiet };
  const process = processIdentity();
  const signer = new LogSigner({
    storage: opened,
    dbPath,
    configDir,
    diagnostics,
    clock: systemClock,
    process,
  });
  await signer.start();
  const { storage } = signer;
  const log = { storage, clock: systemClock, keeper: signer };
  const living = createAuditLog({ ...log, process });
  // A process that ended: its calls begin, and never end.
  const gone = processIdentity(spawnSync('true').pid);
  const died = () => Promise.reject(new Error('died'));
  const dying = { ...createAuditLog({ ...log, process: gone }), write: died, exit: died };
  const callers = [callerOn(storage, living, undefined), callerOn(storage, living, PROJECTS)];
  const crashing = callerOn(storage, dying, undefined);

  const ends = new Map<string, number>();
  const versions = new Map<number, { table: StateTable; row: Cells }[]>();
  for (let i = 0; i < calls; i += 1) {
    const [tool, args] = drawCall(random, i);
    // Calls that come together are one batch.
    const reads = Array.from(
      { length: random.between(0, 2) },
      () => ['task_get', { task_id: 'T-0001' }] as const,
    );
    if (random.oneIn(40)) {
      const all = [[tool, args] as const, ...reads];
      await Promise.all(all.map(([name, sent]) => crashing(name, sent, random.pick(ACTORS))));
      await recoverOpenCalls({ ...log, process }, READING_TOOLS);
      continue;
    }
    const call = random.pick(callers);
    const ended = call(tool, args, random.pick(ACTORS));
    await Promise.all(reads.map(([name, sent]) => call(name, sent, random.pick(ACTORS))));
    const end = await ended;
    ends.set(end, (ends.get(end) ?? 0) + 1);
    await noteVersions(storage, versions);
  }
  await storage.sync();
  signer.durable(signer.committed());
  await signer.stop();
  await opened.close();
  return { dbPath, configDir, versions, ends };
}

type Caller = (tool: string, args: JsonObject, actor: string) => Promise<string>;

function callerOn(
  storage: StorageEngine,
  sink: ReturnType<typeof createAuditLog>,
  projects: readonly string[] | undefined,
): Caller {
  const config = {
    skillsDirs: [],
    workspace: '',
    isProject: false,
    workflow: 'kanban',
    leaseMinutes: 30,
    projects,
  } as unknown as Config;
  const clock: Clock = systemClock;
  const { call } = composeCall({
    tools: new Map(wiredTools(config, clock, '0').map((tool) => [tool.name, tool])),
    clock,
    source: 'mcp',
    admission: { mode: 'FULL', degraded: () => undefined },
    log: () => undefined,
    ready: () => Promise.resolve({ storage, sink }),
  });
  return async (tool, args, actor) => {
    const envelope = await call(tool, args, actor);
    const inner = envelope.ok ? (envelope.data as { ok?: boolean; error?: { code: string } }) : envelope;
    return inner.ok === false ? codeIn(inner.error) : 'ok';
  };
}

/** Pattern A wraps the code of a domain into its message. */
function codeIn(error: { readonly code: string; readonly message?: string } | undefined): string {
  return /^(ERR_[A-Z_]+):/.exec(error?.message ?? '')?.[1] ?? error?.code ?? 'unknown';
}

/** One call: mostly sensible, sometimes not. Ids reach a little beyond what exists. */
function drawCall(random: Random, i: number): [tool: string, args: JsonObject] {
  const task = `T-${String(random.between(1, 12)).padStart(4, '0')}`;
  const other = `T-${String(random.between(1, 12)).padStart(4, '0')}`;
  const session = `A-${String(random.between(1, 6)).padStart(4, '0')}`;
  const draws: readonly (() => [string, JsonObject])[] = [
    () => ['task_create', drawTask(random, i, other)],
    () => ['task_create', drawTask(random, i, other)],
    () => ['task_update', { task_id: task, ...drawMove(random) }],
    () => ['task_update', { task_id: task, ...drawMove(random) }],
    () => ['task_update', { task_id: task, ...drawMove(random) }],
    () => ['task_update', { task_id: task, ...drawChange(random, i, other) }],
    () => ['task_update', { task_id: task, takeover: true }],
    () => ['thought_record', drawThought(random, i, task, session)],
    () => ['thought_record', drawThought(random, i, task, session)],
    () => [
      'audit_session_start',
      { task_id: task, auditor_id: 'dora', ...maybe(random, { scope: 'deep', reason: `because ${i}` }) },
    ],
    () => ['merkle_finalize', { session_id: session, ...(random.oneIn(4) && { task_id: task }) }],
    () => ['task_get', { task_id: task }],
    () => ['task_create', { title: 7 }],
  ];
  return random.pick(draws)();
}

function drawTask(random: Random, i: number, other: string): JsonObject {
  return {
    title: `Task ${i}`,
    project: random.pick([...PROJECTS, 'gamma']),
    ...maybe(random, {
      description: `Details ${i}`,
      priority: random.pick(['low', 'high', 'critical']),
      labels: ['x', `l${i % 3}`],
      estimate_hours: 1.5,
      proof_grade: true,
      workflow: random.pick(['kanban', 'pipeline']),
      parent_id: other,
      depends_on: [other],
      type: 'doc',
      assignee: 'ben',
    }),
  };
}

/** Mostly along the arrows, because both lists are in their order. */
function drawMove(random: Random): JsonObject {
  const status = random.pick(random.oneIn(3) ? PIPELINE : KANBAN);
  return {
    status,
    ...(status === 'blocked' && { blocked_reason: 'waits' }),
    ...maybe(random, { progress: random.between(0, 100), takeover: true }),
  };
}

function drawChange(random: Random, i: number, other: string): JsonObject {
  const fields = {
    title: `Renamed ${i}`,
    priority: 'low',
    labels: [`m${i % 4}`],
    depends_on: [other],
    assignee: 'cleo',
    estimate_hours: 2,
  };
  return { progress: random.between(0, 100), ...maybe(random, fields) };
}

function drawThought(random: Random, i: number, task_id: string, session_id: string): JsonObject {
  const extras = {
    tests_run: ['a.test.ts'],
    blockers: [`b${i}`],
    metadata: { b: i, a: [1, 2] },
    branch: 'main',
    commit_sha: 'abc123',
  };
  return {
    task_id,
    type: random.pick(['decision', 'risk', 'plan']),
    content: `Thought ${i}`,
    ...maybe(random, extras),
    ...(random.oneIn(8) && { session_id }),
  };
}

/** Each of these fields, or not. */
function maybe(random: Random, fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(() => random.oneIn(4)));
}

/** What the last call left in state, before another one changes it. Reads that came with it may have rows behind its own. */
async function noteVersions(
  storage: StorageEngine,
  versions: Map<number, { table: StateTable; row: Cells }[]>,
): Promise<void> {
  await storage.read(async (tx) => {
    const rows = await tx.all<{ text: string }>('SELECT text FROM actions ORDER BY position DESC LIMIT 8');
    for (const { position, effects } of rows.map(({ text }) => JSON.parse(text) as AuditRow)) {
      if (versions.has(position)) continue;
      const written: { table: StateTable; row: Cells }[] = [];
      for (const { table: name, id } of effects ?? []) {
        const table = STATE_TABLES.find((one) => one.name === name);
        if (table === undefined) throw new Error(`an effect on ${name}`);
        const sql = `SELECT ${columnsOf(table)} FROM ${table.name} WHERE id = ? AND position = ?`;
        const row = await tx.get<Cells>(sql, parseId(table, id) ?? 0, position);
        if (row !== undefined) written.push({ table, row: { ...row } });
      }
      if (written.length > 0) versions.set(position, written);
    }
  });
}
