import type { AuditSink, ToolEnterEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { asError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { capabilitiesFor } from '../modes.ts';
import { nearest } from '../nearest.ts';
import { redactText } from '../secrets.ts';
import type { StorageEngine, Transaction } from '../storage/engine.ts';
import type { CallContext, Effect, Tool } from '../tool.ts';
import { type AuditStage, createAuditStage, type Settled } from './audit.ts';
import { type Admission, assertAdmitted, dispatch } from './dispatch.ts';
import { codeOf, type Envelope, fail, succeed } from './envelope.ts';
import type { ToolLock } from './tool-lock.ts';
import { type Judged, validate } from './validate.ts';

/** What exists once boot is over. Stages ask for it at each call, because calls may arrive before. */
export interface Backing {
  readonly storage: StorageEngine;
  readonly sink: AuditSink;
}

export interface StageDeps {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly lock: ToolLock;
  readonly clock: Clock;
  readonly admission: Admission;
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

    const settled = await deps.lock.run(async (): Promise<Settled> => {
      if (tool === undefined) return await refuseUnknown(deps, audit, name, raw, actor);
      try {
        const judged = validate(tool, raw);
        if (judged.redacted.length > 0) tellRedacted?.(judged.redacted);
        const entered = await audit.enter(enterFacts(tool, judged, actor));
        return await perform(deps, backing, audit, tool, judged, entered);
      } catch (thrown) {
        return { error: asError(thrown) };
      }
    });

    if (tool === undefined) throw 'error' in settled ? settled.error : new UnknownToolError(name);
    const durable = await makeDurable(deps, backing, tool, settled);
    return 'error' in durable ? fail(tool.family, durable.error) : succeed(durable.result);
  };
}

function enterFacts(tool: Tool, judged: Judged, actor: string) {
  return {
    tool: tool.name,
    args: judged.valid ? judged.args : judged.raw,
    actor,
    mutates: tool.effect === 'writes',
    schemaValid: judged.valid,
    repaired: [...judged.repaired, ...judged.redacted],
  };
}

/** Stages 4 and 5. A writing call's effects and its exit row are one transaction; a failure's exit row stands alone. */
async function perform(
  deps: StageDeps,
  { storage, sink }: Backing,
  audit: AuditStage,
  tool: Tool,
  judged: Judged,
  entered: ToolEnterEvent,
): Promise<Settled> {
  const effects: Effect[] = [];
  const handle = async (tx: Transaction, args: Record<string, unknown>): Promise<unknown> => {
    const place = tool.effect === 'writes' ? await sink.place?.(tx) : undefined;
    return await dispatch(deps.admission, tool, args, contextOf(deps, tool, entered, effects, place), tx);
  };
  try {
    if (!judged.valid) throw judged.error;
    assertAdmitted(deps.admission, tool);
    if (tool.effect === 'reads') {
      const result = await storage.read((reader) => handle(reader as Transaction, judged.args));
      await audit.exit(entered, { result }, effects);
      return { result };
    }
    return await storage.write(async (tx) => {
      const settled = { result: await handle(tx, judged.args) };
      await audit.exit(entered, settled, effects, tx);
      return settled;
    });
  } catch (thrown) {
    const failure = { error: asError(thrown) };
    // Nobody knows what that commit did; the next start finds the open call and explains it.
    if (codeOf(failure.error) !== 'ERR_STORAGE_UNCERTAIN') await audit.exit(entered, failure, []);
    return failure;
  }
}

function contextOf(
  deps: StageDeps,
  tool: Tool,
  entered: ToolEnterEvent,
  effects: Effect[],
  place: { readonly position: number; readonly at: string } | undefined,
): CallContext {
  return {
    tool: tool.name,
    actor: entered.actor,
    correlationId: entered.correlationId,
    at: place?.at ?? new Date(deps.clock.now()).toISOString(),
    position: place?.position ?? 0,
    effects,
    salt: () => deps.clock.salt(),
    // A writing call holds the database's write lock: whoever it let pass would wait for it in turn.
    breathe: () => (tool.effect === 'reads' ? deps.lock.breathe() : Promise.resolve()),
  };
}

/** The lock is free by now: the next call runs while this one waits for the disk, and their fsync is one. */
async function makeDurable(
  deps: StageDeps,
  { storage }: Backing,
  tool: Tool,
  settled: Settled,
): Promise<Settled> {
  const begun = !('error' in settled) || codeOf(settled.error) !== 'INVALID_PARAMS';
  if (tool.effect === 'reads' || !begun) return settled;
  try {
    await storage.sync({ alone: deps.lock.isFree });
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
    actor,
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
  await audit.exit(entered, { error }, []);
  return { error };
}
