import { readFileSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import * as z from 'zod';
import type { AuditSink, ToolEnterEvent, ToolExitEvent } from './audit-sink.ts';
import type { Booted } from './boot.ts';
import { INSTRUCTIONS, wiredTools } from './catalogue.ts';
import { type Clock, systemClock } from './clock.ts';
import { type Config, readConfig } from './config.ts';
import { createDiagnostics, type Diagnostics, type Logger, withoutSecrets } from './diagnostics.ts';
import { asError, ColibriError } from './errors.ts';
import { LIMITS } from './limits.ts';
import { type Backing, composeCall } from './middleware/compose.ts';
import { createToolLock, NotBegunError, type ToolLock } from './middleware/tool-lock.ts';
import { capabilitiesFor, type RuntimeMode } from './modes.ts';
import { redactText } from './secrets.ts';
import { createNoStorage, type Transaction } from './storage/engine.ts';
import type { CallContext, Tool, ToolFamily } from './tool.ts';
import { EXIT, superviseProcess, within } from './transport/lifecycle.ts';
import { type Product, serveProtocol, type Transport } from './transport/protocol.ts';
import { StdioTransport } from './transport/stdio.ts';

export type { AuditSink, ToolEnterEvent, ToolExitEvent };

/** What registers a tool. `mutates` drives the mode gate, the annotations and the transaction. */
export interface ColibriToolConfig {
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: z.ZodObject;
  readonly outputSchema?: z.ZodObject;
  readonly mutates: boolean;
  readonly idempotent?: boolean;
  readonly family?: ToolFamily;
}

/** Every seam a test may put something else into. All have defaults. */
interface CreateServerOptions {
  readonly auditSink?: AuditSink;
  readonly transport?: Transport;
  readonly version?: string;
  readonly mode?: RuntimeMode;
  readonly nowMs?: () => number;
  readonly bootStartMs?: number;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** With a config, `start` opens the database it names; without one, calls go to `auditSink` and there is no database. */
  readonly config?: Config;
  readonly startupTimeoutMs?: number;
  /** Off in tests: the runner has handlers of its own, and ours end the process. */
  readonly installGlobalHandlers?: boolean;
  readonly exit?: (code: number) => void;
}

/** A server before and after its start. Opaque but for the methods below. */
export interface ColibriServerContext {
  readonly version: string;
  readonly mode: RuntimeMode;
  readonly transport: Transport;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly bootStartMs: number;
  registerColibriTool: (name: string, config: ColibriToolConfig, handler: Handler) => void;
  start: () => Promise<void>;
  stop: () => Promise<void>;
  getVersion: () => string;
  getMode: () => RuntimeMode;
  isConnected: () => boolean;
}

type Handler<A = Record<string, unknown>> = (args: A, call: CallContext, tx: Transaction) => unknown;

/** The moving parts of a context, kept where only this file reaches them. */
interface Internals {
  readonly options: CreateServerOptions;
  readonly tools: Map<string, Tool>;
  readonly lock: ToolLock;
  readonly clock: Clock;
  readonly diagnostics: Diagnostics;
  /** Calls that were received and have no answer yet. */
  readonly answering: Set<Promise<unknown>>;
  readonly ready: { promise: Promise<Backing>; open: (backing: Backing) => void; shut: () => void };
  booted?: Booted;
  connection?: ReturnType<typeof serveProtocol>;
  /** Ends the process in order, with this code. */
  abort?: (code: number) => void;
}

const CHECKPOINT_META_KEY = 'colibri/checkpoint';
const UNSIGNED_META_KEY = 'colibri/unsigned';

const INTERNALS = new WeakMap<ColibriServerContext, Internals>();

/** Builds a server that is not connected to anything yet. Reads the environment only for what the options leave out. */
export function createServer(options: CreateServerOptions = {}): ColibriServerContext {
  const mode = options.mode ?? options.config?.mode ?? readConfig().mode;
  const nowMs = options.nowMs ?? (() => systemClock.monotonic());
  const logger = options.logger ?? console.error;
  const tools = new Map<string, Tool>();
  const ctx: ColibriServerContext = {
    version: options.version ?? readPackageVersion(),
    mode,
    transport: options.transport ?? new StdioTransport(),
    tools,
    logger,
    nowMs,
    bootStartMs: options.bootStartMs ?? nowMs(),
    registerColibriTool: (name, config, handler) => registerColibriTool(ctx, name, config, handler),
    start: () => start(ctx),
    stop: () => stop(ctx),
    getVersion: () => ctx.version,
    getMode: () => ctx.mode,
    isConnected: () => internalsOf(ctx).connection !== undefined,
  };
  INTERNALS.set(ctx, {
    options,
    tools,
    lock: createToolLock(),
    clock: { ...(options.clock ?? systemClock), monotonic: nowMs },
    diagnostics: createDiagnostics(logger, options.config?.logLevel ?? 'info'),
    answering: new Set(),
    ready: createGate(),
  });
  return ctx;
}

/** Adds a tool behind the five stages. There is no other way to add one. */
export function registerColibriTool<I extends z.ZodRawShape>(
  ctx: ColibriServerContext,
  name: string,
  config: Omit<ColibriToolConfig, 'inputSchema'> & { readonly inputSchema: z.ZodObject<I> },
  handler: Handler<z.output<z.ZodObject<I>>>,
): void {
  const { title = name, description: summary = '', family = 'system', idempotent = false } = config;
  const { inputSchema: input, outputSchema: output = z.object({}), mutates } = config;
  if (!(input instanceof z.ZodObject)) throw new Error('inputSchema must be a Zod object');
  const effect = mutates ? 'writes' : 'reads';
  const tool = { name, title, summary, family, input, output, effect, idempotent, handle: handler };
  addTool(internalsOf(ctx), tool as unknown as Tool);
}

function addTool({ tools }: Internals, tool: Tool): void {
  if (typeof tool.name !== 'string' || !/^[a-z_][a-z0-9_]*$/.test(tool.name))
    throw new Error(`invalid tool name: ${tool.name}`);
  if (tools.has(tool.name)) throw new Error(`tool already registered: ${tool.name}`);
  tools.set(tool.name, tool);
}

/** Transport first, so that a client hears from us at once; then the database; then the gate opens for waiting calls. */
export async function start(ctx: ColibriServerContext): Promise<void> {
  const internals = internalsOf(ctx);
  const { options, diagnostics } = internals;
  if (internals.connection !== undefined) return;
  if (options.installGlobalHandlers !== false) installGlobalHandlers(ctx, options.exit ?? process.exit);
  diagnostics.info(`starting in mode=${ctx.mode} version=${ctx.version}`);
  const timeoutMs = options.startupTimeoutMs ?? options.config?.startupTimeoutMs ?? 30_000;
  const booting = connectAndBoot(ctx, internals);
  if (!(await within(booting, timeoutMs)))
    throw new StartupTimeoutError(`startup timeout exceeded (${timeoutMs} ms)`);
  await booting;
  diagnostics.info('ready');
}

/** Ends the connection after the running call, and closes the database. */
export async function stop(ctx: ColibriServerContext): Promise<void> {
  const internals = internalsOf(ctx);
  // The lock is free before the answer has left: closing the connection then would lose it.
  const answered = finishRunning(internals).then(() => Promise.allSettled(internals.answering));
  await within(answered, LIMITS.stopWaitMsMax);
  await new Promise((resolve) => setImmediate(resolve));
  await internals.connection?.close();
  delete internals.connection;
  await closeStorage(internals);
}

/** Takes every event and keeps none. */
export function createNoOpAuditSink(): AuditSink {
  return NO_OP_SINK;
}

const NO_OP_SINK: AuditSink = Object.freeze({ enter() {}, exit() {} });

/** The program: read the configuration, serve stdin and stdout, end with the client. */
export async function main(): Promise<void> {
  // A stray console.log of any dependency would break the protocol; it may talk on stderr.
  console.log = console.info = console.debug = console.error;
  // V8 would give short-lived objects 16 times the room they need here, and let the heap grow fourfold before it looks what
  // is still in use: 24 and 20 MB for nothing measurable.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=50');
  try {
    const config = readConfig();
    const transport = new StdioTransport();
    const ctx = createServer({ config, transport });
    const internals = internalsOf(ctx);
    for (const warning of config.warnings) internals.diagnostics.warn(warning);
    for (const tool of wiredTools(config, internals.clock, ctx.version, () => internals.booted))
      addTool(internals, tool);
    internals.abort = superviseProcess(
      {
        transport,
        finishRunning: () => finishRunning(internals),
        close: () => closeStorage(internals),
      },
      internals.diagnostics.info,
    );
    await start(ctx);
  } catch (thrown) {
    const error = asError(thrown);
    const code = error instanceof ColibriError ? `${error.code}: ` : 'fatal: ';
    console.error(redactText(`[colibri] ${code}${error.message}`));
    process.exit(error instanceof StartupTimeoutError ? EXIT.startupTimeout : EXIT.refused);
  }
}

class StartupTimeoutError extends Error {}

async function connectAndBoot(ctx: ColibriServerContext, internals: Internals): Promise<void> {
  const { options, diagnostics, clock } = internals;
  internals.connection = serveProtocol(ctx.transport, {
    version: ctx.version,
    instructions: INSTRUCTIONS,
    tools: () => [...ctx.tools.values()].filter(capabilitiesFor(ctx.mode).admits),
    call: callThrough(ctx, internals),
    meta: () => checkpointMeta(internals),
    onError: (error) => diagnostics.debug('protocol:', error.message),
  });
  await internals.connection.started;
  const { config, auditSink } = options;
  if (config !== undefined) {
    const { bootStorage } = await import('./boot.ts');
    const onUncertain = (error: Error) => {
      diagnostics.error(error.message);
      internals.abort?.(EXIT.io);
    };
    internals.booted = await bootStorage({ config, clock, diagnostics, onUncertain });
  }
  const backing = internals.booted ?? { storage: createNoStorage(), sink: NO_OP_SINK };
  internals.ready.open({ ...backing, sink: auditSink ?? backing.sink });
}

function callThrough(ctx: ColibriServerContext, internals: Internals): Product['call'] {
  const call = composeCall({
    tools: internals.tools,
    lock: internals.lock,
    clock: internals.clock,
    source: 'mcp',
    log: internals.diagnostics.error,
    admission: { mode: ctx.mode, degraded: () => internals.booted?.degraded },
    ready: () => internals.ready.promise,
  });
  const { agentId } = internals.options.config ?? {};
  const agent = agentId === undefined ? undefined : redactText(agentId);
  return (name, raw, clientName, tellRedacted) => {
    const answer = call(name, raw, agent ?? clientName ?? 'unknown', tellRedacted);
    internals.answering.add(answer);
    const forget = () => internals.answering.delete(answer);
    answer.then(forget, forget);
    return answer;
  };
}

/** The newest durable checkpoint travels with each answer, so that every client is a witness to the log. */
function checkpointMeta({ booted }: Internals): Record<string, string> | undefined {
  const note = booted?.signer?.newest();
  const refused = booted?.signer?.state().refused;
  if (refused !== undefined) return { [UNSIGNED_META_KEY]: refused };
  return note === undefined ? undefined : { [CHECKPOINT_META_KEY]: note };
}

/** The last rows are signed before the file is closed. */
async function closeStorage({ booted }: Internals): Promise<void> {
  await within(booted?.signer?.stop() ?? Promise.resolve(), LIMITS.signAtStopMsMax);
  await booted?.opened?.close();
}

function installGlobalHandlers(ctx: ColibriServerContext, exit: (code: number) => void): void {
  for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
    if (process.listenerCount(event) > 0) continue;
    process.on(event, (reason: unknown) => {
      ctx.logger(`[colibri] ${event}:`, withoutSecrets(reason));
      exit(EXIT.refused);
    });
  }
}

function createGate(): Internals['ready'] {
  let open: (backing: Backing) => void = () => undefined;
  let shut: () => void = () => undefined;
  const promise = new Promise<Backing>((resolve, reject) => {
    open = resolve;
    shut = () => reject(new NotBegunError());
  });
  // Nobody may be waiting when it is shut.
  promise.catch(() => undefined);
  return { promise, open, shut };
}

/** Calls that wait for boot or for the lock are told that they will not begin. */
async function finishRunning({ ready, lock }: Internals): Promise<void> {
  ready.shut();
  await lock.close();
}

function internalsOf(ctx: ColibriServerContext): Internals {
  const internals = INTERNALS.get(ctx);
  if (internals === undefined) throw new Error('not a context made by createServer');
  return internals;
}

/** One file above both `src/` and `dist/`. */
function readPackageVersion(): string {
  try {
    const path = resolve(dirname(fileURLToPath(import.meta.url)), '..', 'package.json');
    return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
  } catch (error) {
    throw new Error(`Failed to read package.json version: ${asError(error).message}`, { cause: error });
  }
}

/** Whether this file is what Node was started with, directly or through the link a package manager made. */
function isEntryPoint(): boolean {
  const script = process.argv[1];
  if (script === undefined) return false;
  try {
    return import.meta.url === pathToFileURL(realpathSync(script)).href;
  } catch {
    return false;
  }
}

if (isEntryPoint()) await main();
