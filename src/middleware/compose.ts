import type { AuditSink, CallOutcome, ToolEnterEvent, ToolExitEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { asError, ColibriError, didYouMean } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { CallSource } from '../log/row.ts';
import { takeTexts } from '../log/texts.ts';
import { capabilitiesFor, type RuntimeMode } from '../modes.ts';
import { redactText } from '../secrets.ts';
import type { StorageEngine } from '../storage/engine.ts';
import type { Effect, Tool } from '../tool.ts';
import { codeOf, type Envelope, fail, succeed } from './envelope.ts';
import type { ToolLock } from './tool-lock.ts';
import { type Judged, type Valid, validate } from './validate.ts';

/** What exists once boot is over. Stages ask for it at each call, because calls may arrive before. */
export interface Backing {
  readonly storage: StorageEngine;
  readonly sink: AuditSink;
  /** Where the log is signed: `durable` is told what `committed` answered before an fsync that has ended. */
  readonly signer?: { committed(): unknown; durable(mark: unknown): void } | undefined;
}

/** What stage 4 looks at before it lets a handler run. */
export interface Admission {
  readonly mode: RuntimeMode;
  /** Why there is no database, if there should be one. */
  readonly degraded: () => string | undefined;
}

interface StageDeps {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly lock: ToolLock;
  readonly clock: Clock;
  readonly admission: Admission;
  readonly source: CallSource;
  readonly log: (...parts: unknown[]) => void;
  /** Resolves when boot is over, well or badly. */
  readonly ready: () => Promise<Backing>;
}

type Stages = StageDeps & Backing;

/** Told which secrets were taken out of a call's arguments, and where they were. */
export type TellRedacted = (notes: readonly string[]) => void;

/** Thrown for a name outside the closed surface, after the attempt was audited. */
export class UnknownToolError extends Error {}

/** How a handler ended. */
type Settled = { readonly result: unknown } | { readonly error: Error };

/** The five stages in their only order: lock, validate, enter, dispatch, exit. Nothing else in Colibri calls a handler. */
export function composeCall(deps: StageDeps) {
  return async (name: string, raw: unknown, actor: string, tell?: TellRedacted): Promise<Envelope> => {
    const stages = { ...deps, ...(await deps.ready()) };
    const tool = deps.tools.get(name);

    const { settled, mark } = await stages.lock.run(async () => ({
      settled: await settle(async () => {
        const judged = tool === undefined ? judgeUnknown(stages, name, raw) : validate(tool, raw);
        if (judged.redacted.length > 0) tell?.(judged.redacted);
        return await perform(stages, judged, await enter(stages, judged, actor));
      }),
      // Taken while no other call of this process can have begun a commit that the next fsync might not cover.
      mark: stages.signer?.committed(),
    }));

    if (tool === undefined) throw 'error' in settled ? settled.error : new UnknownToolError(name);
    const durable = await makeDurable(stages, tool, settled, mark);
    return 'error' in durable ? fail(tool.family, durable.error) : succeed(durable.result);
  };
}

async function settle(work: () => Promise<Settled>): Promise<Settled> {
  try {
    return await work();
  } catch (thrown) {
    return { error: asError(thrown) };
  }
}

/** A name outside the surface is audited like rejected input, then answered as the protocol asks. */
function judgeUnknown({ tools, admission }: StageDeps, name: string, raw: unknown): Judged {
  // Redacted before it is cut: half a secret is not recognised any more.
  const shown = redactText(name).slice(0, LIMITS.toolNameCharsMax).toWellFormed();
  const admitted = [...tools.values()]
    .filter(capabilitiesFor(admission.mode).admits)
    .map((tool) => tool.name);
  const wrong =
    shown === ''
      ? 'A call needs "name", the name of a tool, as a text.'
      : `Unknown tool ${JSON.stringify(shown)}.${didYouMean(shown, admitted)}`;
  const error = new UnknownToolError(`${wrong} The tools are: ${admitted.join(', ')}.`);
  return { valid: false, tool: { name: shown, effect: 'reads' }, raw, repaired: [], redacted: [], error };
}

/** Stage 3. A call that cannot be recorded is not begun. */
async function enter(stages: Stages, judged: Judged, actor: string): Promise<ToolEnterEvent> {
  const { clock, source, sink } = stages;
  const tool = judged.valid && judged.tool.effect === 'writes' ? judged.tool : undefined;
  const sent = judged.valid ? judged.args : {};
  // What is outside the database is read now, before any transaction; what was seen is kept with the call.
  const { args, outside } = (await tool?.prepare?.(sent)) ?? { args: sent, outside: {} };
  const event: ToolEnterEvent = Object.freeze({
    tool: judged.tool.name,
    args: judged.valid ? args : judged.raw,
    kept: judged.valid ? takeTexts(args, tool?.texts ?? [], clock) : undefined,
    actor,
    source,
    mutates: judged.tool.effect === 'writes',
    schemaValid: judged.valid,
    repaired: [...judged.repaired, ...judged.redacted],
    outside,
    timestamp: clock.monotonic(),
    correlationId: clock.uuid(),
  });
  try {
    await sink.enter(event);
    return event;
  } catch (thrown) {
    const cause = asError(thrown);
    const sentence = `The call could not be recorded and was not begun: ${cause.message}. Look at server_health, then call again.`;
    // Storage says what went wrong better than this stage can.
    const isSaid = cause instanceof ColibriError;
    const error = isSaid ? cause : new ColibriError('AUDIT_ENTER_FAILED', sentence, {}, { cause });
    await recordExit(stages, event, { error });
    throw error;
  }
}

/** Stages 4 and 5. A failure's exit row is written alone: what the handler wrote is rolled back. */
async function perform(stages: Stages, judged: Judged, entered: ToolEnterEvent): Promise<Settled> {
  const settled = await settle(async () => {
    if (!judged.valid) throw judged.error;
    assertAdmitted(stages.admission, judged.tool);
    return { result: await dispatch(stages, judged, entered) };
  });
  // A writing call that succeeded has its exit row already. What an uncertain commit did nobody knows; the next start
  // finds the open call and explains it.
  const isLeft = 'error' in settled ? codeOf(settled.error) === 'ERR_STORAGE_UNCERTAIN' : entered.mutates;
  if (!isLeft) await recordExit(stages, entered, settled);
  return settled;
}

/** Stage 4's gate, asked once, before a transaction is opened: a mode that admits no writing may have a file that takes none. */
export function assertAdmitted({ mode, degraded }: Admission, tool: Tool): void {
  if (!capabilitiesFor(mode).admits(tool)) {
    const sentence = `${tool.name} is not available in mode ${mode}. Ask the owner to start Colibri with COLIBRI_MODE=FULL.`;
    throw new ColibriError('TOOL_NOT_ADMITTED', sentence, { mode });
  }
  const reason = degraded();
  if (reason === undefined || tool.family === 'system') return;
  const sentence = `Colibri runs without its database: ${reason}`;
  throw new ColibriError('ERR_INIT_FAILED', sentence, { reason });
}

/** Runs the handler. The effects of a writing call and its exit row are one transaction. */
async function dispatch(stages: Stages, { tool, args }: Valid, entered: ToolEnterEvent): Promise<unknown> {
  const { clock, lock, storage, sink } = stages;
  const { actor, source, correlationId, outside } = entered;
  const call = { tool: tool.name, actor, source, correlationId };
  const now = () => new Date(clock.now()).toISOString();
  if (tool.effect === 'reads') {
    const context = { ...call, at: now(), yieldToWaiting: () => lock.yieldToWaiting() };
    return await storage.read(async (tx) => await tool.handle(args, context, tx));
  }
  return await storage.write(async (tx) => {
    const effects: Effect[] = [];
    // A sink that keeps no positions reserves none.
    const reserved = (await sink.reserve?.(tx)) ?? { position: 0, at: now(), process: '' };
    const { position, at, process } = reserved;
    const { args: kept = {}, texts = [] } = entered.kept ?? {};
    // It holds the database's write lock: a call it let pass would wait for it in turn.
    const yieldToWaiting = () => Promise.resolve();
    const context = { ...call, position, at, process, outside, texts, effects, yieldToWaiting };
    const result = await tool.handle(kept, context, tx);
    await sink.exit(exitEvent(clock, entered, { result }, effects), reserved);
    return result;
  });
}

/** Stage 5 outside a transaction: a failure is logged and changes no answer. */
async function recordExit(stages: Stages, entered: ToolEnterEvent, settled: Settled): Promise<void> {
  try {
    await stages.sink.exit(exitEvent(stages.clock, entered, settled, []));
  } catch (thrown) {
    const { tool, correlationId } = entered;
    stages.log(`the end of ${tool} (${correlationId}) could not be recorded:`, asError(thrown).message);
  }
}

function exitEvent(clock: Clock, entered: ToolEnterEvent, settled: Settled, effects: readonly Effect[]) {
  const { tool, correlationId, timestamp } = entered;
  return Object.freeze<ToolExitEvent>({
    entered,
    tool,
    correlationId,
    durationMs: Math.max(0, Math.floor(clock.monotonic() - timestamp)),
    effects: Object.freeze([...effects]),
    outcome: outcomeOf(entered, settled),
    ...('error' in settled ? { error: settled.error, errorCode: codeOf(settled.error) } : settled),
  });
}

function outcomeOf(entered: ToolEnterEvent, settled: Settled): CallOutcome {
  if ('result' in settled) return 'ok';
  if (!entered.schemaValid) return 'rejected';
  return codeOf(settled.error) === 'TOOL_NOT_ADMITTED' ? 'denied' : 'error';
}

/** The lock is free, and the next call shares the fsync. What comes out is true of the file at the path, or says it is not. */
async function makeDurable(stages: Stages, tool: Tool, settled: Settled, mark: unknown): Promise<Settled> {
  const { storage, signer, lock } = stages;
  const isRejected = 'error' in settled && codeOf(settled.error) === 'INVALID_PARAMS';
  return await settle(async () => {
    if (tool.effect === 'reads' || isRejected) await storage.assertInPlace();
    else {
      await storage.sync({ alone: lock.isFree });
      signer?.durable(mark);
    }
    return settled;
  });
}
