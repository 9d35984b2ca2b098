import { realpathSync } from 'node:fs';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { type AuditSink, inTurn, type ToolEnterEvent, type ToolExitEvent } from './audit-sink.ts';
import { type Booted, bootStorage } from './boot.ts';
import { instructionsFor, wiredTools } from './catalogue.ts';
import { type Clock, systemClock } from './clock.ts';
import { type Config, packageVersion, readConfig } from './config.ts';
import { createDiagnostics, type Diagnostics, harmless, type Logger } from './diagnostics.ts';
import { asError, ColibriError } from './errors.ts';
import { LIMITS } from './limits.ts';
import { type Backing, composeCall } from './middleware/compose.ts';
import { NotBegunError } from './middleware/tool-lock.ts';
import { capabilitiesFor, type RuntimeMode } from './modes.ts';
import { tuneRuntime } from './runtime.ts';
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
  /** Told after each batch how many calls there were since the start. */
  readonly served?: (calls: number) => void;
}

/** A server before and after its start. */
export type ColibriServerContext = Pick<
  ColibriServer,
  | ('version' | 'mode' | 'transport' | 'tools' | 'logger' | 'nowMs' | 'bootStartMs')
  | ('registerColibriTool' | 'start' | 'stop' | 'getVersion' | 'getMode' | 'isConnected')
>;

type Handler<A = Record<string, unknown>> = (args: A, call: CallContext, tx: Transaction) => unknown;

const CHECKPOINT_META_KEY = 'colibri/checkpoint';
const UNSIGNED_META_KEY = 'colibri/unsigned';

/** Builds a server that is not connected to anything yet. Reads the environment only for what the options leave out. */
export function createServer(options: CreateServerOptions = {}): ColibriServerContext {
  return new ColibriServer(options);
}

/** Adds a tool behind the five stages. There is no other way to add one. */
export function registerColibriTool<I extends z.ZodRawShape>(
  ctx: ColibriServerContext,
  name: string,
  config: Omit<ColibriToolConfig, 'inputSchema'> & { readonly inputSchema: z.ZodObject<I> },
  handler: Handler<z.output<z.ZodObject<I>>>,
): void {
  ctx.registerColibriTool(name, config, handler as Handler);
}

export function start(ctx: ColibriServerContext): Promise<void> {
  return ctx.start();
}

export function stop(ctx: ColibriServerContext): Promise<void> {
  return ctx.stop();
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
  const served = tuneRuntime();
  try {
    const config = readConfig();
    const transport = new StdioTransport();
    const server = new ColibriServer({ config, transport, served });
    const { clock, diagnostics, version } = server;
    for (const warning of config.warnings) diagnostics.warn(warning);
    const { figures } = server.stages;
    for (const tool of wiredTools(config, clock, version, () => server.booted, figures)) server.addTool(tool);
    server.abort = superviseProcess(transport, server, diagnostics.info);
    await server.start();
  } catch (thrown) {
    const error = asError(thrown);
    const code = error instanceof ColibriError ? `${error.code}: ` : 'fatal: ';
    console.error(harmless(`[colibri] ${code}${error.message}`));
    process.exit(error instanceof StartupTimeoutError ? EXIT.startupTimeout : EXIT.refused);
  }
}

class StartupTimeoutError extends Error {}

class ColibriServer {
  readonly version: string;
  readonly mode: RuntimeMode;
  readonly transport: Transport;
  readonly tools = new Map<string, Tool>();
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly bootStartMs: number;
  readonly clock: Clock;
  readonly diagnostics: Diagnostics;
  booted: Booted | undefined;
  /** Ends the process in order, with this code. */
  abort: ((code: number) => void) | undefined;
  readonly #options: CreateServerOptions;
  readonly stages: ReturnType<typeof composeCall>;
  #meta: Record<string, string> | undefined;
  readonly #ready = createGate();
  readonly #stopping = new AbortController();
  #connection: ReturnType<typeof serveProtocol> | undefined;

  constructor(options: CreateServerOptions) {
    this.#options = options;
    this.version = options.version ?? packageVersion();
    this.mode = options.mode ?? options.config?.mode ?? readConfig().mode;
    this.transport = options.transport ?? new StdioTransport();
    this.logger = options.logger ?? console.error;
    this.nowMs = options.nowMs ?? (() => systemClock.monotonic());
    this.bootStartMs = options.bootStartMs ?? this.nowMs();
    this.clock = { ...(options.clock ?? systemClock), monotonic: this.nowMs };
    this.diagnostics = createDiagnostics(this.logger, options.config?.logLevel ?? 'info');
    this.stages = composeCall({
      tools: this.tools,
      clock: this.clock,
      source: 'mcp',
      log: this.diagnostics.error,
      admission: { mode: this.mode, degraded: () => this.booted?.degraded },
      ready: () => this.#backing(),
      room: () => this.transport.room?.(),
      served: options.served,
    });
  }

  registerColibriTool(name: string, config: ColibriToolConfig, handle: Handler): void {
    const { title = name, description: summary = '', family = 'system' } = config;
    const { inputSchema: input, outputSchema: output = z.object({}), mutates } = config;
    if (!(input instanceof z.ZodObject)) throw new Error('inputSchema must be a Zod object');
    const effect = mutates ? 'writes' : 'reads';
    const tool = { name, title, summary, family, input, output, effect, kind: 'snapshot', handle };
    this.addTool(tool as unknown as Tool);
  }

  addTool(tool: Tool): void {
    if (typeof tool.name !== 'string' || !/^[a-z_][a-z0-9_]*$/.test(tool.name))
      throw new Error(`invalid tool name: ${tool.name}`);
    if (this.tools.has(tool.name)) throw new Error(`tool already registered: ${tool.name}`);
    this.tools.set(tool.name, tool);
  }

  /** Transport first, so that a client hears from us at once; then the database; then the gate opens for waiting calls. */
  async start(): Promise<void> {
    const { config, exit = process.exit, installGlobalHandlers: installs, startupTimeoutMs } = this.#options;
    if (this.#connection !== undefined) return;
    if (installs !== false) installGlobalHandlers(this.logger, exit);
    this.diagnostics.info(`starting in mode=${this.mode} version=${this.version}`);
    const timeoutMs = startupTimeoutMs ?? config?.startupTimeoutMs ?? 30_000;
    const booting = this.#connectAndBoot();
    if (!(await within(booting, timeoutMs)))
      throw new StartupTimeoutError(`startup timeout exceeded (${timeoutMs} ms)`);
    await booting;
    this.diagnostics.info('ready');
  }

  /** Ends the connection after the running call, and closes the database. */
  async stop(): Promise<void> {
    // The lock is free before the answer has left: closing the connection then would lose it.
    const answered = this.finishRunning().then(() => this.stages.answered());
    await within(answered, LIMITS.stopWaitMsMax);
    await new Promise((resolve) => setImmediate(resolve));
    await this.#connection?.close();
    this.#connection = undefined;
    await this.close();
  }

  readonly getVersion = () => this.version;
  readonly getMode = () => this.mode;
  readonly isConnected = () => this.#connection !== undefined;

  /** Calls that wait for boot or for the lock are told that they will not begin. */
  async finishRunning(): Promise<void> {
    this.#stopping.abort();
    this.#ready.shut();
    await this.stages.close();
  }

  /** The last rows are signed before the file is closed. */
  async close(): Promise<void> {
    await within(this.booted?.signer?.stop() ?? Promise.resolve(), LIMITS.signAtStopMsMax);
    await this.booted?.opened?.close();
  }

  async #connectAndBoot(): Promise<void> {
    const { clock, diagnostics, version } = this;
    this.#connection = serveProtocol(this.transport, {
      version,
      instructions: instructionsFor(this.mode),
      tools: () => [...this.tools.values()].filter(capabilitiesFor(this.mode).admits),
      call: this.#callThrough(),
      meta: () => this.#checkpointMeta(),
      onError: (error) => diagnostics.debug('protocol:', error.message),
    });
    await this.#connection.started;
    const { config } = this.#options;
    if (config !== undefined) {
      // What the client has sent by now is read in the second turn from here: its greeting is answered before the database is
      // opened.
      for (let turns = 0; turns < 2; turns += 1) await nextTurn();
      const onUncertain = (error: Error) => {
        diagnostics.error(error.message);
        this.abort?.(EXIT.io);
      };
      const stopping = this.#stopping.signal;
      const boot = () =>
        bootStorage({ config, clock, diagnostics, onUncertain, stopping, before: this.booted });
      this.booted = await boot();
      void this.#bootWhileLocked(boot);
    }
    this.#ready.open();
  }

  /** Goes on trying behind the gate, which is open: nobody needs to wait for a database that another process has for itself. */
  async #bootWhileLocked(boot: () => Promise<Booted>): Promise<void> {
    while (this.booted?.isLocked === true && !this.#stopping.signal.aborted) {
      await sleep(LIMITS.bootRetryMs, undefined, { ref: false });
      const booted = await boot();
      if (this.#stopping.signal.aborted) return await booted.opened?.close();
      this.booted = booted;
      if (booted.opened !== undefined) this.diagnostics.info('the database is free, and open now');
    }
  }

  async #backing(): Promise<Backing> {
    await this.#ready.promise;
    const { auditSink } = this.#options;
    if (this.booted !== undefined && auditSink === undefined) return this.booted;
    const storage = this.booted?.storage ?? createNoStorage();
    const sink = inTurn(auditSink ?? NO_OP_SINK, storage, this.clock);
    return { storage, sink, signer: this.booted?.signer };
  }

  #callThrough(): Product['call'] {
    const { agentId } = this.#options.config ?? {};
    const agent = agentId === undefined ? undefined : redactText(agentId);
    return (name, raw, clientName, tellRedacted) =>
      this.stages.call(name, raw, agent ?? clientName ?? 'unknown', tellRedacted);
  }

  /** The newest durable checkpoint travels with each answer, so that every client is a witness to the log. */
  #checkpointMeta(): Record<string, string> | undefined {
    const { signer } = this.booted ?? {};
    const [refused, note] = [signer?.refused, signer?.newest()];
    if (refused !== undefined) return { [UNSIGNED_META_KEY]: refused };
    if (note === undefined) return undefined;
    // The same object for the same checkpoint: its JSON is made once for all answers of a batch.
    if (this.#meta?.[CHECKPOINT_META_KEY] !== note) this.#meta = { [CHECKPOINT_META_KEY]: note };
    return this.#meta;
  }
}

function installGlobalHandlers(logger: Logger, exit: (code: number) => void): void {
  for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
    if (process.listenerCount(event) > 0) continue;
    process.on(event, (reason: unknown) => {
      logger(`[colibri] ${event}:`, harmless(reason));
      exit(EXIT.refused);
    });
  }
}

function createGate() {
  let open!: () => void;
  let shut!: () => void;
  const promise = new Promise<void>((resolve, reject) => {
    open = resolve;
    shut = () => reject(new NotBegunError());
  });
  // Nobody may be waiting when it is shut.
  promise.catch(() => undefined);
  return { promise, open, shut };
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
