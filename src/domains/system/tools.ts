import * as z from 'zod';
import { MODES, type RuntimeMode } from '../../modes.ts';
import { createNoStorage, type Reader, type StorageFacts } from '../../storage/engine.ts';
import { type Tool, toolsOf } from '../../tool.ts';
import { each, texts } from '../fields.ts';

/** What the two system tools report on. Asked at each call: most of it is not known before boot is over. */
export interface SystemFacts {
  readonly version: string;
  readonly mode: RuntimeMode;
  uptimeMs(): number;
  now(): number;
  storage(): StorageFacts | undefined;
  degraded(): string | undefined;
  /** The signed log, where there is one: its keys are those that sign it, in their text form. */
  log():
    | { origin: string | undefined; signedThrough: number; refused: string | undefined; keys: string[] }
    | undefined;
  /** Of a log that machines share: which keys signed its rows, and which of them somebody has vouched for. */
  signers(tx: Reader): Promise<readonly z.output<typeof Signer>[] | undefined>;
  toolNames(): readonly string[];
  /** How calls shared their commits since the start. */
  batches(): z.output<typeof Batches>;
  /** The skills in force, and which were passed over and why. */
  skills(): Promise<{ skills: readonly object[]; skipped: readonly z.output<typeof Skipped>[] }>;
}

const NoInput = z.strictObject({});

const Skipped = z.strictObject(texts('path', 'reason'));

const Signer = z.strictObject({ key: z.string(), through: z.int(), vouched: z.boolean() });

const Identity = {
  version: z.string(),
  mode: z.enum(MODES),
  uptime_ms: z.int().nonnegative(),
  timestamp: z.iso.datetime(),
};

const Batches = z.strictObject(each(z.int(), 'calls', 'commits', 'largest', 'longest_wait_ms'));

const HealthOutput = z.strictObject({
  status: z.enum(['ok', 'degraded']),
  ...Identity,
  db: z.strictObject({
    open: z.boolean(),
    user_version: z.int(),
    ...texts('path', 'schema', 'engine', 'journal'),
    writable: z.boolean(),
    reason: z.string().optional(),
  }),
  log: z.strictObject({
    origin: z.string(),
    signed_through: z.int(),
    refused: z.string().optional(),
    keys: z.array(z.string()).optional(),
    signed_by: z.array(Signer).optional(),
  }),
  middleware: z.strictObject({ stages: z.array(z.string()) }),
  batches: Batches,
  tools: z.strictObject({ registered: z.int(), names: z.array(z.string()) }),
  process: z.strictObject({ pid: z.int(), memory_bytes: z.int() }),
  skills: z.strictObject({ loaded: z.int(), skipped: z.int(), reasons: z.array(Skipped).optional() }),
});

/** skill_list shows all of them; here a glance is enough. */
const REASONS_MAX = 10;

const STAGES = ['tool-lock', 'schema-validate', 'audit-enter', 'dispatch', 'audit-exit'];

const tool = toolsOf('system');

export function systemTools(facts: SystemFacts): Tool[] {
  const identity = () => ({
    version: facts.version,
    mode: facts.mode,
    uptime_ms: Math.max(0, Math.floor(facts.uptimeMs())),
    timestamp: new Date(facts.now()).toISOString(),
  });
  return [
    tool({
      name: 'server_ping',
      title: 'Ping',
      summary: 'Check that the server is alive. Returns version, mode and uptime.',
      effect: 'reads',
      kind: 'point',
      input: NoInput,
      output: z.strictObject(Identity),
      handle: () => identity(),
    }),
    tool({
      name: 'server_health',
      title: 'Health',
      summary: 'Report database, mode, tools, memory and skills, and the reason if something is degraded.',
      effect: 'reads',
      // The skills are read from their folders.
      kind: 'snapshot',
      input: NoInput,
      output: HealthOutput,
      handle: async (_args, _call, tx) => ({ ...identity(), ...(await describe(facts, tx)) }),
    }),
  ];
}

async function describe(facts: SystemFacts, tx: Reader) {
  const [storage, log, reason] = [facts.storage(), facts.log(), facts.degraded()];
  const { schemaVersion, ...opened } = storage ?? createNoStorage().facts;
  const names = facts.toolNames();
  const { skills, skipped } = await facts.skills();
  const signers = await facts.signers(tx);
  // Either the database or the signing of its log is not as it should be.
  const isDegraded = reason !== undefined || log?.refused !== undefined;
  return {
    status: isDegraded ? ('degraded' as const) : ('ok' as const),
    db: {
      open: storage !== undefined,
      user_version: schemaVersion,
      schema: storage === undefined ? 'none' : `colibri ${schemaVersion}`,
      ...opened,
      ...(reason !== undefined && { reason }),
    },
    log: {
      origin: log?.origin ?? '',
      signed_through: log?.signedThrough ?? 0,
      ...(log?.refused !== undefined && { refused: log.refused }),
      ...(log !== undefined && { keys: [...log.keys] }),
      ...(signers !== undefined && { signed_by: signers.map((one) => ({ ...one })) }),
    },
    middleware: { stages: STAGES },
    batches: facts.batches(),
    tools: { registered: names.length, names: [...names] },
    process: { pid: process.pid, memory_bytes: process.memoryUsage.rss() },
    skills: {
      loaded: skills.length,
      skipped: skipped.length,
      ...(skipped.length > 0 && { reasons: skipped.slice(0, REASONS_MAX) }),
    },
  };
}
