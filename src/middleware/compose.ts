import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CallOutcome, CallSink, OpenRows, ToolEnterEvent, ToolExitEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { asError, ColibriError, didYouMean } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { CallSource } from '../log/row.ts';
import { takeTexts } from '../log/texts.ts';
import { TransferredError } from '../log/transfer.ts';
import { capabilitiesFor, type RuntimeMode } from '../modes.ts';
import { redactText } from '../secrets.ts';
import { after, type Sooner } from '../sooner.ts';
import type { Reader, StorageEngine, Transaction } from '../storage/engine.ts';
import type { Effect, Prepared, Tool, WritingContext } from '../tool.ts';
import { codeOf, type Envelope, fail, succeed } from './envelope.ts';
import { createToolLock, NotBegunError, type Queued, type Served } from './tool-lock.ts';
import { type Judged, validate } from './validate.ts';

/** What exists once boot is over. Stages ask for it at each batch, because calls may arrive before. */
export interface Backing {
  readonly storage: StorageEngine;
  readonly sink: CallSink;
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
  readonly clock: Clock;
  readonly admission: Admission;
  readonly source: CallSource;
  readonly log: (...parts: unknown[]) => void;
  /** Resolves when boot is over, well or badly. */
  readonly ready: () => Promise<Backing>;
  /** While answers wait for a client that does not read: resolves when there is room for more. */
  readonly room?: () => Promise<void> | undefined;
  /** Told after each batch how many calls there were since the start. */
  readonly served?: ((calls: number) => void) | undefined;
}

type Stages = Pick<StageDeps, 'tools' | 'clock' | 'admission' | 'source' | 'log'> &
  Backing & {
    readonly lock: ReturnType<typeof createToolLock<Asked>>;
    /** Set once somebody has held the lock for as long as anybody waits for it: the same batch does not wait again. */
    held: Error | undefined;
  };

/** Told which secrets were taken out of a call's arguments, and where they were. */
export type TellRedacted = (notes: readonly string[]) => void;

/** Thrown for a name outside the closed surface, after the attempt was audited. */
export class UnknownToolError extends Error {}

/** How a handler ended. */
type Settled = { readonly result: unknown } | { readonly error: Error };

/** A call as it was received. */
interface Asked extends Queued {
  readonly name: string;
  readonly tool: Tool | undefined;
  readonly actor: string;
  readonly tell: TellRedacted | undefined;
  /** Monotonic milliseconds when it began to wait. */
  readonly since: number;
  answer(settled: Settled): void;
}

// Here and in the log, what each call makes is written out field by field: to spread one object over another costs V8 up to
// a microsecond, which for a call would come to a tenth of its time.

/** A call after stage 2. Its handler runs unless there is a reason to refuse it. */
interface Call {
  readonly asked: Asked;
  readonly entered: ToolEnterEvent;
  readonly refusal: Error | undefined;
}

type Ended = readonly [call: Call, settled: Settled];

/** How calls shared their commits since the start. */
export type BatchFigures = Record<'calls' | 'commits' | 'largest' | 'longest_wait_ms', number>;

/** The five stages in their only order: lock, validate, enter, dispatch, exit. Nothing else in Colibri calls a handler. */
export function composeCall(deps: StageDeps) {
  const figures: BatchFigures = { calls: 0, commits: 0, largest: 0, longest_wait_ms: 0 };
  const { tools, clock, admission, source, log } = deps;

  async function serveBatch(batch: readonly Asked[]): Promise<Served> {
    let served: Served = {};
    try {
      const { storage, sink, signer } = await deps.ready();
      const waited = deps.clock.monotonic() - Math.min(...batch.map(({ since }) => since));
      figures.longest_wait_ms = Math.max(figures.longest_wait_ms, Math.floor(waited));
      figures.largest = Math.max(figures.largest, batch.length);
      figures.calls += batch.length;
      // A plain sink is told of each call in turn.
      const parts = sink.takesBatches ? [batch] : batch.map((asked) => [asked]);
      for (const part of parts) {
        const held = undefined;
        served = await serve(
          { tools, clock, admission, source, log, storage, sink, signer, lock, held },
          part,
        );
      }
      figures.commits = sink.commits();
      deps.served?.(figures.calls);
    } catch (thrown) {
      for (const { answer } of batch) answer({ error: asError(thrown) });
    }
    return served;
  }

  const lock = createToolLock<Asked>({ serve: serveBatch, ...(deps.room && { room: deps.room }) });

  /** Calls that were received and have no answer yet, and who waits for there to be none. */
  let open = 0;
  const onAnswered: (() => void)[] = [];

  function call(name: string, raw: unknown, actor: string, tell?: TellRedacted): Promise<Envelope> {
    const tool = deps.tools.get(name);
    const kind = kindOf(tool, raw);
    open += 1;
    return new Promise((resolve) => {
      // Forgotten once it was called, and the result with it: a batch lasts longer than the first of its answers.
      let give: typeof resolve | undefined = resolve;
      const answer = (end: Settled) => {
        if (give === undefined) return;
        give(envelopeOf(tool, end));
        give = undefined;
        open -= 1;
        if (open === 0) for (const wake of onAnswered.splice(0)) wake();
      };
      const refuse = (error: Error) => answer({ error });
      lock.add({ name, raw, actor, tell, tool, kind, since: deps.clock.monotonic(), answer, refuse });
    });
  }

  /** Resolves when every call has its answer. */
  async function answered(): Promise<void> {
    if (open > 0) await new Promise<void>((resolve) => onAnswered.push(resolve));
  }

  return { call, answered, figures, close: () => lock.close() };
}

/** What a call is answered with; rejects where the protocol has to answer. An error may be anything that a handler threw. */
function envelopeOf(tool: Tool | undefined, end: Settled): Sooner<Envelope> {
  if ('result' in end) return succeed(end.result);
  if (tool === undefined || end.error instanceof NotBegunError) return Promise.reject(end.error);
  try {
    return fail(tool.family, end.error);
  } catch (thrown) {
    return Promise.reject(asError(thrown));
  }
}

function kindOf(tool: Tool | undefined, raw: unknown): Queued['kind'] {
  if (tool === undefined) return 'point';
  if (tool.effect === 'writes') return 'writes';
  return typeof tool.kind === 'function' ? tool.kind(raw) : tool.kind;
}

/** Stages 2 to 5 of calls that were taken together. Their enter rows come first, then one after the other runs and ends. */
async function serve(stages: Stages, batch: readonly Asked[]): Promise<Served> {
  const judging = batch.map((asked) => judge(stages, asked));
  const judged = judging.some((one) => one instanceof Promise) ? await Promise.all(judging) : judging;
  const valid = judged.filter((call): call is Call => call !== undefined);
  const isLong = valid[0]?.asked.kind === 'long' && valid[0].refusal === undefined;
  let calls = await enter(stages, valid, isLong);
  if (isLong) {
    // When it ends, the lock may long be free.
    stages.held = undefined;
    stages.lock.runBeside(async () => answer(stages, await readSome(stages, calls), false));
    return {};
  }
  const isRecorded = calls.some(isWriting);
  // By now the sync of the batch before is over: its answers leave, and the next calls come while this batch runs.
  if (isRecorded && calls.length > 1) await nextTurn();
  let left: Promise<void> | undefined;
  while (calls.length > 0) {
    const isTogether =
      calls.some(isWriting) ||
      (stages.held === undefined && calls.every((call) => isPointRead(stages, call)));
    const ended = await (isTogether ? writeSome(stages, calls, isRecorded) : readSome(stages, calls));
    calls = calls.slice(ended.length);
    left = answer(stages, ended, calls.length === 0);
    if (isRecorded || calls.length === 0 || (await stages.lock.hasRoom())) continue;
    for (const { asked } of calls) asked.refuse(new NotBegunError());
    return {};
  }
  // Nothing is gained by holding reads back: they have one commit, and no answer waits for the disk.
  return isRecorded ? { left } : {};
}

/** Stage 2. What is outside the database is read now, before any transaction; what was seen is kept with the call. */
function judge(stages: Stages, asked: Asked): Sooner<Call | undefined> {
  const { tool, name, raw } = asked;
  const fail = (thrown: unknown): undefined => {
    asked.answer({ error: asError(thrown) });
  };
  try {
    const judged = tool === undefined ? judgeUnknown(stages, name, raw) : validate(tool, raw);
    if (judged.redacted.length > 0) asked.tell?.(judged.redacted);
    const sent = judged.valid ? judged.args : {};
    const prepared = (judged.valid && judged.tool.effect === 'writes' && judged.tool.prepare?.(sent)) || {
      args: sent,
      outside: {},
    };
    const begun = after(prepared, (outcome) => begin(stages, asked, judged, outcome));
    return begun instanceof Promise ? begun.catch(fail) : begun;
  } catch (thrown) {
    return fail(thrown);
  }
}

function begin(stages: Stages, asked: Asked, judged: Judged, { args, outside }: Prepared): Call {
  const { clock, source } = stages;
  const texts = (judged.valid && judged.tool.effect === 'writes' && judged.tool.texts) || [];
  const entered: ToolEnterEvent = Object.freeze({
    tool: judged.tool.name,
    args: judged.valid ? args : judged.raw,
    kept: judged.valid ? takeTexts(args, texts, clock) : undefined,
    actor: asked.actor,
    source,
    mutates: judged.tool.effect === 'writes',
    schemaValid: judged.valid,
    repaired: judged.redacted.length === 0 ? judged.repaired : [...judged.repaired, ...judged.redacted],
    outside,
    timestamp: clock.monotonic(),
    correlationId: clock.uuid(),
  });
  const refusal = judged.valid ? objectionTo(judged.tool, stages.admission) : judged.error;
  return { asked, entered, refusal };
}

/** A name outside the surface is audited like rejected input, then answered as the protocol asks. */
function judgeUnknown({ tools, admission }: Stages, name: string, raw: unknown): Judged {
  // Redacted before it is cut: half a secret is not recognised any more.
  const shown = redactText(name).slice(0, LIMITS.toolNameCharsMax).toWellFormed();
  const admitted = [...tools.values()]
    .filter(capabilitiesFor(admission.mode).admits)
    .map((tool) => tool.name);
  const wrong =
    shown === ''
      ? 'A call needs "name", the name of a tool, as a string.'
      : `Unknown tool ${JSON.stringify(shown)}.${didYouMean(shown, admitted)}`;
  const error = new UnknownToolError(`${wrong} The tools are: ${admitted.join(', ')}.`);
  return { valid: false, tool: { name: shown, effect: 'reads' }, raw, repaired: [], redacted: [], error };
}

/** Stage 3. A call that cannot be recorded is not begun; one that only reads can still be recorded when it ends. */
async function enter(stages: Stages, calls: readonly Call[], isLong: boolean): Promise<readonly Call[]> {
  const { sink } = stages;
  try {
    const events = calls.map(({ entered }) => entered);
    await sink.enter(events, isLong, (tx) => foresee(stages, calls, tx));
    return calls;
  } catch (thrown) {
    const cause = noted(stages, asError(thrown));
    const sentence = `The call could not be recorded, so it was not started: ${cause.message.replace(/\.$/, '')}. Check server_health, then call again.`;
    // Storage says what went wrong better than this stage can.
    const isSaid = cause instanceof ColibriError;
    const error = isSaid ? cause : new ColibriError('AUDIT_ENTER_FAILED', sentence, {}, { cause });
    const isBegun = (call: Call) => sink.takesBatches && !isWriting(call);
    const ended = calls.filter((call) => !isBegun(call)).map((call): Ended => [call, { error }]);
    await recordExits(stages, ended);
    void answer(stages, ended, true);
    return calls.filter(isBegun);
  }
}

function noted(stages: Stages, failure: Error): Error {
  if (codeOf(failure) === 'ERR_STORAGE_BUSY') stages.held = failure;
  return failure;
}

function isWriting({ entered, refusal }: Call): boolean {
  return entered.mutates && refusal === undefined;
}

/** A read of a few rows: quickly done where its own rows are written, and without a snapshot. */
function isPointRead({ sink, storage }: Stages, { asked, refusal }: Call): boolean {
  return sink.takesBatches && storage.facts.writable && asked.kind === 'point' && refusal === undefined;
}

/** Stages 4 and 5 in one commit. A handler that fails is taken back alone. `isRecorded`: their enter rows are committed. */
async function writeSome(
  stages: Stages,
  calls: readonly Call[],
  isRecorded: boolean,
): Promise<readonly Ended[]> {
  try {
    return await stages.sink.write(
      async (rows) => {
        await foresee(stages, calls, rows.tx);
        return await forAWhile(stages, calls, (call) => runIn(stages, call, rows));
      },
      isRecorded ? undefined : 'soon',
    );
  } catch (thrown) {
    const failure = noted(stages, asError(thrown));
    if (!calls.some(isWriting)) return await readSome(stages, calls);
    // Nothing of it is stored, and what a read saw may be gone with it.
    const ended: Ended[] = [];
    for (const call of calls)
      if (isWriting(call)) ended.push([call, { error: failure }]);
      else ended.push(...(await readTogether(stages, [call])));
    // What an uncertain commit did nobody knows; the next start finds the open calls and explains them.
    if (codeOf(failure) !== 'ERR_STORAGE_UNCERTAIN') await recordExits(stages, ended);
    return ended;
  }
}

/** Stages 4 and 5 of calls that write nothing: they read one snapshot, and their rows are one commit. */
async function readSome(stages: Stages, calls: readonly Call[]): Promise<readonly Ended[]> {
  const ended = await readTogether(stages, calls);
  const transferred = await recordExits(stages, ended);
  if (transferred === undefined) return ended;
  // What was read is of the past: the log goes on elsewhere.
  const isAnswered = ({ asked: { tool } }: Call) => tool === undefined || tool.family === 'system';
  return ended.map(([call, settled]) => [call, isAnswered(call) ? settled : { error: transferred }]);
}

async function readTogether(stages: Stages, calls: readonly Call[]): Promise<readonly Ended[]> {
  try {
    return await stages.storage.read((tx) => forAWhile(stages, calls, (call) => runOn(stages, call, tx)));
  } catch (thrown) {
    return calls.map((call): Ended => [call, { error: call.refusal ?? asError(thrown) }]);
  }
}

/** Runs the calls from the first on, until they have taken long enough for one commit. */
async function forAWhile(
  { clock, storage }: Stages,
  calls: readonly Call[],
  run: (call: Call) => Promise<Settled>,
) {
  const ended: Ended[] = [];
  const began = clock.monotonic();
  for (const call of calls) {
    ended.push([call, await run(call)]);
    if (clock.monotonic() - began > (storage.batchMsMax ?? LIMITS.sliceMsMax)) break;
  }
  return ended;
}

/** Where the database is far away, what the calls will ask first is asked for all of them at once. */
async function foresee({ storage, sink }: Stages, calls: readonly Call[], tx: Transaction): Promise<void> {
  if (storage.isShared !== true) return;
  // Where and when they end is decided later, and is nothing that a rule asks about.
  const later = {
    at: '',
    enter: 0,
    position: 0,
    process: sink.process,
    effects: [],
    lastSeen: () => undefined,
  };
  const asking = calls.filter(isWriting).map(async ({ asked: { tool }, entered }) => {
    if (tool?.effect !== 'writes') return;
    const { args, texts } = entered.kept ?? NOTHING_KEPT;
    await tool.foresee?.(args, { ...entered, ...later, texts, outside: { ...entered.outside } }, tx);
  });
  await Promise.all(asking);
}

/** Runs a call in a transaction, up to and including its exit row: what it wrote and that row exist both or neither. */
async function runIn({ clock }: Stages, call: Call, rows: OpenRows): Promise<Settled> {
  const { entered, refusal } = call;
  const { tool } = call.asked;
  const outside = { ...entered.outside };
  const { lastSeen } = rows;
  // Not a failure of this call: the rows are of those before it, and without them nothing may be committed.
  if (tool?.effect === 'reads' ? rows.hasNewTexts() : tool?.readsLog) await rows.flush();
  try {
    if (tool === undefined || refusal !== undefined) throw refusal;
    const { args, texts } = entered.kept ?? NOTHING_KEPT;
    // Nothing to take back.
    if (tool.effect === 'reads') {
      const { at, process } = rows.reserve(entered);
      const result = await tool.handle(args, contextOf(entered, at, process), rows.tx);
      await rows.exit(exitEvent(clock, entered, { result }, []));
      return { result };
    }
    return await rows.savepoint(async () => {
      const effects: Effect[] = [];
      const reserved = rows.reserve(entered);
      const context: WritingContext = {
        tool: entered.tool,
        actor: entered.actor,
        source: entered.source,
        correlationId: entered.correlationId,
        process: reserved.process,
        at: reserved.at,
        enter: reserved.enter,
        position: reserved.position,
        outside,
        lastSeen,
        texts,
        effects,
      };
      const result = await tool.handle(args, context, rows.tx);
      const ended = rows.exit(exitEvent(clock, entered, { result }, effects, outside), reserved);
      if (ended instanceof Promise) await ended;
      return { result };
    });
  } catch (thrown) {
    const failed = { error: asError(thrown) };
    await rows.exit(exitEvent(clock, entered, failed, [], outside));
    return failed;
  }
}

/** Runs a reading call on a snapshot. */
async function runOn({ clock, sink }: Stages, call: Call, tx: Reader): Promise<Settled> {
  const { entered, refusal } = call;
  const { tool } = call.asked;
  try {
    if (tool?.effect !== 'reads' || refusal !== undefined) throw refusal;
    const { args } = entered.kept ?? NOTHING_KEPT;
    const at = new Date(clock.now()).toISOString();
    return { result: await tool.handle(args, contextOf(entered, at, sink.process), tx) };
  } catch (thrown) {
    return { error: asError(thrown) };
  }
}

function contextOf({ tool, actor, source, correlationId }: ToolEnterEvent, at: string, process: string) {
  return { tool, actor, source, correlationId, process, at };
}

const NOTHING_KEPT = { args: {}, texts: [] };

/** Stage 4's gate, asked once, before a transaction is opened: a mode that admits no writing may have a file that takes none. */
export function objectionTo(tool: Tool, { mode, degraded }: Admission): ColibriError | undefined {
  if (!capabilitiesFor(mode).admits(tool)) {
    const sentence = `${tool.name} is not available in mode ${mode}. Ask the owner to start Colibri with COLIBRI_MODE=FULL.`;
    return new ColibriError('TOOL_NOT_ADMITTED', sentence, { mode });
  }
  const reason = degraded();
  if (reason === undefined || tool.family === 'system') return undefined;
  return new ColibriError('ERR_INIT_FAILED', `Colibri runs without its database: ${reason}`, { reason });
}

/**
 * Stage 5 outside the transaction of a handler: a failure is logged and changes no answer, unless it is that the log is no
 * longer the one that others will find. Answers that.
 */
async function recordExits(stages: Stages, ended: readonly Ended[]): Promise<TransferredError | undefined> {
  const { sink, clock, log, held } = stages;
  const events = ended.map(([{ entered }, settled]) => exitEvent(clock, entered, settled, []));
  try {
    await sink.exit(events, held);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof TransferredError) return thrown;
    const { message } = noted(stages, asError(thrown));
    for (const { tool, correlationId } of events)
      log(`the end of ${tool} (${correlationId}) could not be recorded:`, message);
    return undefined;
  }
}

function exitEvent(
  clock: Clock,
  entered: ToolEnterEvent,
  settled: Settled,
  effects: readonly Effect[],
  outside = entered.outside,
) {
  const { tool, correlationId, timestamp } = entered;
  const durationMs = Math.max(0, Math.floor(clock.monotonic() - timestamp));
  const outcome = outcomeOf(entered, settled);
  Object.freeze(effects);
  if ('result' in settled) {
    const { result } = settled;
    const event = { entered, tool, correlationId, durationMs, effects, outside, outcome, result };
    return Object.freeze<ToolExitEvent>(event);
  }
  const { error } = settled;
  const errorCode = codeOf(error);
  const event = { entered, tool, correlationId, durationMs, effects, outside, outcome, error, errorCode };
  return Object.freeze<ToolExitEvent>(event);
}

function outcomeOf(entered: ToolEnterEvent, settled: Settled): CallOutcome {
  if ('result' in settled) return 'ok';
  if (!entered.schemaValid) return 'rejected';
  return codeOf(settled.error) === 'TOOL_NOT_ADMITTED' ? 'denied' : 'error';
}

/**
 * Answers calls whose rows are committed: one fsync for all of them, which the next batch need not wait for. What comes out
 * is true of the file at the path, or says it is not.
 */
async function answer(stages: Stages, ended: readonly Ended[], isLast: boolean): Promise<void> {
  const { storage, signer, lock } = stages;
  // Before anything is awaited: no other commit of this process can have begun that the fsync might not cover.
  const mark = signer?.committed();
  let failed: Settled | undefined;
  try {
    if (ended.some(([call]) => isWriting(call))) {
      await storage.sync({ alone: isLast && lock.isAlone });
      signer?.durable(mark);
    } else await storage.assertInPlace();
  } catch (thrown) {
    failed = { error: asError(thrown) };
  }
  for (const [{ asked }, settled] of ended) asked.answer(failed ?? settled);
}
