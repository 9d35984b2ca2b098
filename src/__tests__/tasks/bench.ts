import { join } from 'node:path';
import { type Clock, systemClock } from '../../clock.ts';
import { proofTools } from '../../domains/proof/tools.ts';
import { type TaskSettings, taskTools } from '../../domains/tasks/tools.ts';
import { trailTools } from '../../domains/trail/tools.ts';
import { UNSIGNED } from '../../log/append.ts';
import { createAuditLog } from '../../log/audit-log.ts';
import { composeCall } from '../../middleware/compose.ts';
import { parseAddress } from '../../storage/address.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openStorage } from '../../storage/open.ts';
import type { SqliteDriver } from '../../storage/sqlite/driver.ts';
import { openSqlite } from '../../storage/sqlite/engine.ts';
import type { Finding } from '../../verify/finding.ts';
import { findingsOf } from './findings.ts';

interface Fault {
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** What a call came to, whichever pattern carried it. */
export type Answer<T = Record<string, unknown>> =
  | { readonly ok: true; readonly data: T }
  | { readonly ok: false; readonly error: Fault };

/** The five stages on a real file, without a process around them. */
export interface Bench {
  readonly path: string;
  readonly storage: StorageEngine;
  call<T = Record<string, unknown>>(name: string, args: object, actor?: string): Promise<Answer<T>>;
  /** Calls that wait together. */
  together(calls: readonly (readonly [name: string, args: object, actor: string])[]): Promise<Answer[]>;
  findings(): Promise<Finding[]>;
  close(): Promise<void>;
}

const DEFAULTS: TaskSettings = {
  project: undefined,
  projects: undefined,
  workflow: 'kanban',
  leaseMinutes: 30,
};

/** What a bench may stand on instead of the real thing. */
export interface Ground {
  readonly driver?: SqliteDriver;
  readonly clock?: Clock;
  readonly process?: string;
  readonly log?: (...parts: unknown[]) => void;
}

export async function openBench(
  folder: string,
  settings: Partial<TaskSettings> = {},
  { driver, clock = systemClock, process = 'bench', log = console.error }: Ground = {},
): Promise<Bench> {
  const path = join(folder, 'colibri.db');
  const storage = await openSqlite({ path, ...(driver !== undefined && { driver }) });
  const sink = createAuditLog({ storage, clock, process, keeper: UNSIGNED });
  const tools = [
    ...taskTools({ ...DEFAULTS, ...settings }),
    ...trailTools({
      gitEvidence: async () => undefined,
      verifyChain: async (tx, subject, options) => {
        const { verifyChain } = await import('../../verify/chain.ts');
        return await verifyChain(tx, subject, { ...options, clock });
      },
    }),
    ...proofTools({ skillsInForce: async () => [] }),
  ];
  const { call } = composeCall({
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    clock,
    source: 'mcp',
    admission: { mode: 'FULL', degraded: () => undefined },
    log,
    ready: async () => ({ storage: withoutWaitingForTheDisk(storage), sink }),
  });
  const answered = async <T = Record<string, unknown>>(name: string, args: object, actor = 'ada') =>
    toAnswer<T>(await call(name, args, actor));
  return {
    path,
    storage,
    call: answered,
    together: (calls) => Promise.all(calls.map(([name, args, actor]) => answered(name, args, actor))),
    findings: () => findingsAt(path),
    close: () => storage.close(),
  };
}

/** What the verifier finds, on connections of its own: as `colibri verify` does. */
export async function findingsAt(path: string): Promise<Finding[]> {
  const storage = await openStorage({ dbPath: path, server: parseAddress(path) }, {});
  try {
    return await findingsOf(storage);
  } finally {
    await storage.close();
  }
}

/** Durability is proved elsewhere; thousands of calls need not wait for it here. */
function withoutWaitingForTheDisk(storage: StorageEngine): StorageEngine {
  return {
    facts: storage.facts,
    read: (work) => storage.read(work),
    write: (work, durable) => storage.write(work, durable),
    sync: async () => undefined,
    assertInPlace: async () => undefined,
    purge: () => storage.purge(),
    selfCheck: (tx) => storage.selfCheck(tx),
    isGone: (tx, process, ageMs) => storage.isGone(tx, process, ageMs),
    close: () => storage.close(),
  };
}

function toAnswer<T>(envelope: { ok: boolean; data?: unknown; error?: unknown }): Answer<T> {
  const inner = envelope.data as { ok?: boolean; error?: Fault } | undefined;
  const error = (envelope.error ?? (inner?.ok === false ? inner.error : undefined)) as Fault | undefined;
  return error === undefined ? { ok: true, data: envelope.data as T } : { ok: false, error };
}
