import type { AuditSink, Reserved, ToolEnterEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { asError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { CallSource } from '../log/row.ts';
import { takeTexts } from '../log/texts.ts';
import { capabilitiesFor } from '../modes.ts';
import { nearest } from '../nearest.ts';
import { redactText } from '../secrets.ts';
import type { StorageEngine } from '../storage/engine.ts';
import type { CallContext, Effect, Prepared, ReadingTool, Tool, WritingTool } from '../tool.ts';
import { type AuditStage, createAuditStage, type EnterFacts, type Settled } from './audit.ts';
import { type Admission, assertAdmitted } from './dispatch.ts';
import { codeOf, type Envelope, fail, succeed } from './envelope.ts';
import type { ToolLock } from './tool-lock.ts';
import { type Judged, validate } from './validate.ts';

/** What exists once boot is over. Stages ask for it at each call, because calls may arrive before. */
export interface Backing {
  readonly storage: StorageEngine;
  readonly sink: AuditSink;
  /** Told what became durable, where the log is signed. */
  readonly signer?: Witness | undefined;
}

/** What leaves the process must be durable: the signer learns when it is. */
export interface Witness {
  /** What was signed and committed so far. */
  committed(): unknown;
  /** What `committed` answered before an fsync that has ended. */
  durable(mark: unknown): void;
}

export interface StageDeps {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly lock: ToolLock;
  readonly clock: Clock;
  readonly admission: Admission;
  readonly source: CallSource;
  readonly log: (...parts: unknown[]) => void;
  /** Resolves when boot is over, well or badly. */
  readonly ready: () => Promise<Backing>;
}

/** Told which secrets were taken out of a call's arguments, and where they stood. */
export type TellRedacted = (notes: readonly string[]) => void;

/** Thrown for a name outside the closed surface, after the attempt was audited. */
export class UnknownToolError extends Error {}

/** The five stages in their only order: lock, validate, enter, dispatch, exit. Nothing else in Colibri calls a handler. */
export function composeCall(
  deps: StageDeps,
): (name: string, raw: unknown, actor: string, tellRedacted?: TellRedacted) => Promise<Envelope> {
  return async (name, raw, actor, tellRedacted) => {
    const backing = await deps.ready();
    const audit = createAuditStage(backing.sink, deps.clock, deps.log);
    const tool = deps.tools.get(name);

    const { settled, mark } = await deps.lock.run(async () => {
      const outcome =
        tool === undefined
          ? await refuseUnknown(deps, audit, name, raw, actor)
          : await runStages(deps, backing, audit, tool, raw, actor, tellRedacted);
      // Taken while no other call of this process can have begun a commit that the next fsync might not cover.
      return { settled: outcome, mark: backing.signer?.committed() };
    });

    if (tool === undefined) throw 'error' in settled ? settled.error : new UnknownToolError(name);
    const durable = await makeDurable(deps, backing, tool, settled, mark);
    return 'error' in durable ? fail(tool.family, durable.error) : succeed(durable.result);
  };
}

async function runStages(
  deps: StageDeps,
  backing: Backing,
  audit: AuditStage,
  tool: Tool,
  raw: unknown,
  actor: string,
  tellRedacted: TellRedacted | undefined,
): Promise<Settled> {
  try {
    const judged = validate(tool, raw);
    if (judged.redacted.length > 0) tellRedacted?.(judged.redacted);
    const prepared = await prepare(tool, judged);
    const entered = await audit.enter(enterFacts(deps, tool, judged, prepared, actor));
    return await perform(deps, backing, audit, tool, judged, entered, prepared.outside);
  } catch (thrown) {
    return { error: asError(thrown) };
  }
}

/** What lies outside the database is read now, before any transaction; what was seen is kept with the call. */
async function prepare(tool: Tool, judged: Judged): Promise<Prepared> {
  if (!judged.valid) return { args: {}, outside: {} };
  if (tool.effect === 'reads' || tool.prepare === undefined) return { args: judged.args, outside: {} };
  return await tool.prepare(judged.args);
}

function enterFacts(
  deps: StageDeps,
  tool: Tool,
  judged: Judged,
  { args }: Prepared,
  actor: string,
): EnterFacts {
  const texts = tool.effect === 'writes' ? (tool.texts ?? []) : [];
  return {
    tool: tool.name,
    args: judged.valid ? args : judged.raw,
    kept: judged.valid ? takeTexts(args, texts, deps.clock) : undefined,
    actor,
    source: deps.source,
    mutates: tool.effect === 'writes',
    schemaValid: judged.valid,
    repaired: [...judged.repaired, ...judged.redacted],
  };
}

/** Stages 4 and 5. A failure's exit row stands alone: what the handler wrote is rolled back. */
async function perform(
  deps: StageDeps,
  backing: Backing,
  audit: AuditStage,
  tool: Tool,
  judged: Judged,
  entered: ToolEnterEvent,
  outside: Prepared['outside'],
): Promise<Settled> {
  try {
    if (!judged.valid) throw judged.error;
    assertAdmitted(deps.admission, tool);
    return tool.effect === 'reads'
      ? await performRead(deps, backing, audit, tool, judged.args, entered)
      : await performWrite(deps, backing, audit, tool, entered, outside);
  } catch (thrown) {
    const failure = { error: asError(thrown) };
    // Nobody knows what that commit did; the next start finds the open call and explains it.
    if (codeOf(failure.error) !== 'ERR_STORAGE_UNCERTAIN') await audit.exit(entered, failure, { outside });
    return failure;
  }
}

async function performRead(
  deps: StageDeps,
  { storage }: Backing,
  audit: AuditStage,
  tool: ReadingTool,
  args: Record<string, unknown>,
  entered: ToolEnterEvent,
): Promise<Settled> {
  const call = {
    ...contextOf(entered, new Date(deps.clock.now()).toISOString()),
    yieldToWaiting: () => deps.lock.yieldToWaiting(),
  };
  const result = await storage.read(async (tx) => await tool.handle(args, call, tx));
  await audit.exit(entered, { result }, { outside: {} });
  return { result };
}

/** The effects of a writing call and its exit row are one transaction. */
async function performWrite(
  deps: StageDeps,
  { storage, sink }: Backing,
  audit: AuditStage,
  tool: WritingTool,
  entered: ToolEnterEvent,
  outside: Prepared['outside'],
): Promise<Settled> {
  return await storage.write(async (tx) => {
    const effects: Effect[] = [];
    const reserved = (await sink.reserve?.(tx)) ?? unreserved(deps.clock);
    const call = {
      ...contextOf(entered, reserved.at),
      position: reserved.position,
      process: reserved.process,
      outside,
      texts: entered.kept?.texts ?? [],
      effects,
      // It holds the database's write lock: whoever it let pass would wait for it in turn.
      yieldToWaiting: () => Promise.resolve(),
    };
    const settled = { result: await tool.handle(entered.kept?.args ?? {}, call, tx) };
    await audit.exit(entered, settled, { effects, outside, tx, reserved });
    return settled;
  });
}

/** For a sink that keeps no positions. */
function unreserved(clock: Clock): Reserved {
  return { position: 0, at: new Date(clock.now()).toISOString(), process: '' };
}

function contextOf(
  { tool, actor, source, correlationId }: ToolEnterEvent,
  at: string,
): Omit<CallContext, 'yieldToWaiting'> {
  return { tool, actor, source, correlationId, at };
}

/** The lock is free by now: the next call runs while this one waits for the disk, and their fsync is one. */
async function makeDurable(
  deps: StageDeps,
  { storage, signer }: Backing,
  tool: Tool,
  settled: Settled,
  mark: unknown,
): Promise<Settled> {
  const begun = !('error' in settled) || codeOf(settled.error) !== 'INVALID_PARAMS';
  if (tool.effect === 'reads' || !begun) return settled;
  try {
    await storage.sync({ alone: deps.lock.isFree });
    signer?.durable(mark);
    return settled;
  } catch (thrown) {
    return { error: asError(thrown) };
  }
}

/** A name outside the surface is audited like rejected input, then answered as the protocol asks. */
async function refuseUnknown(
  deps: StageDeps,
  audit: AuditStage,
  name: string,
  raw: unknown,
  actor: string,
): Promise<Settled> {
  // Redacted before it is cut: half a secret is not recognised any more.
  const shown = redactText(name).slice(0, LIMITS.toolNameCharsMax).toWellFormed();
  const entered = await audit.enter({
    tool: shown,
    args: raw,
    kept: undefined,
    actor,
    source: deps.source,
    mutates: false,
    schemaValid: false,
    repaired: [],
  });
  const { admits } = capabilitiesFor(deps.admission.mode);
  const admitted = [...deps.tools.values()].filter(admits).map((tool) => tool.name);
  const meant = nearest(shown, admitted);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  const wrong =
    shown === ''
      ? 'A call needs "name", the name of a tool, as a text.'
      : `Unknown tool ${JSON.stringify(shown)}.${hint}`;
  const error = new UnknownToolError(`${wrong} The tools are: ${admitted.join(', ')}.`);
  await audit.exit(entered, { error }, { outside: {} });
  return { error };
}
