import type { AuditSink, Reserved, ToolEnterEvent, ToolExitEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { saltedDigest } from '../integrity/salted.ts';
import type { StorageEngine, Transaction } from '../storage/engine.ts';
import { Appending, type NewRow } from './append.ts';
import type { HeadKeeper } from './head.ts';
import { parseId, TASKS } from './tables.ts';
import { storeTexts } from './texts.ts';

export interface AuditLogOptions {
  readonly storage: StorageEngine;
  readonly clock: Clock;
  /** Which server process writes: recovery asks whether it is still there. */
  readonly process: string;
  readonly keeper: HeadKeeper;
}

/** A call between its enter and its exit. */
interface Begun {
  readonly event: ToolEnterEvent;
  readonly salt: string;
  /** Canonical kept arguments, or undefined for input that was refused and is not kept. */
  readonly body: string | undefined;
  /** Set once the enter row is in the file. */
  readonly position?: number;
}

/**
 * The sink that writes the audit rows. A writing call gets its enter row in a commit of its own, before the handler
 * starts; every other call has nothing to explain after a crash, so its two rows go in together at the end.
 */
export function createAuditLog({ storage, clock, process, keeper }: AuditLogOptions): AuditSink {
  const begun = new WeakMap<ToolEnterEvent, Begun>();
  const reservations = new WeakMap<Reserved, Appending>();
  /** Writing calls whose end could not be written, as on a full disk. The next commit of this process closes them. */
  let unclosed: readonly ToolExitEvent[] = [];

  /** One commit that adds rows: those that are overdue first, then `work`, then the signature. */
  async function commit<T>(work: (appending: Appending, tx: Transaction) => Promise<T>): Promise<T> {
    const overdue = unclosed;
    const done = await storage.write(async (tx) => {
      const appending = await Appending.open(tx, keeper, clock, process);
      for (const event of overdue) await appendEnd(appending, tx, event, undefined);
      const result = await work(appending, tx);
      await appending.close(false);
      return result;
    });
    unclosed = unclosed.filter((event) => !overdue.includes(event));
    return done;
  }

  async function enter(event: ToolEnterEvent): Promise<void> {
    const call = beginCall(event, clock);
    begun.set(event, call);
    if (!event.mutates || !event.schemaValid) return;
    const position = await commit(async (appending, tx) => {
      const at = await appendEnter(appending, tx, call);
      await tx.run('INSERT INTO open_calls (position, process) VALUES (?, ?)', at, process);
      return at;
    });
    begun.set(event, { ...call, position });
  }

  async function exit(event: ToolExitEvent, tx?: Transaction, reserved?: Reserved): Promise<void> {
    const call = begun.get(event.entered);
    const appending = reserved === undefined ? undefined : reservations.get(reserved);
    if (tx !== undefined && reserved !== undefined && appending !== undefined) {
      await appendEnd(appending, tx, event, reserved.at);
      await appending.close(event.tool === 'merkle_finalize' || event.tool.startsWith('owner_'));
      return;
    }
    // A writing call whose enter failed has no row to close; its failure went to the client and to stderr.
    if (
      call === undefined ||
      (event.entered.mutates && event.entered.schemaValid && call.position === undefined)
    )
      return;
    try {
      await commit((open, within) => appendEnd(open, within, event, undefined));
    } catch (error) {
      if (call.position !== undefined) unclosed = [...unclosed, event];
      throw error;
    }
  }

  async function appendEnd(
    appending: Appending,
    tx: Transaction,
    event: ToolExitEvent,
    at: string | undefined,
  ): Promise<void> {
    const call = begun.get(event.entered);
    if (call === undefined) throw new Error('a call ended that never began');
    let sequence = call.position;
    if (sequence === undefined) sequence = await appendEnter(appending, tx, call);
    else await closeCall(tx, sequence);
    const payload = exitPayload(event, clock);
    const row = exitRow(call, event, sequence, payload?.hash ?? null);
    const position = await appending.append({ ...row, ...(at !== undefined && { at }) });
    if (payload?.body !== undefined) await appending.keepPayload(position, payload.salt, payload.body);
    await noteTask(tx, event, position);
  }

  async function appendEnter(appending: Appending, tx: Transaction, call: Begun): Promise<number> {
    const position = await appending.append(enterRow(call));
    if (call.body !== undefined) await appending.keepPayload(position, call.salt, call.body);
    await storeTexts(tx, call.event.kept?.texts ?? []);
    return position;
  }

  async function reserve(tx: Transaction): Promise<Reserved> {
    const appending = await Appending.open(tx, keeper, clock, process);
    const reserved = { ...appending.next(), process };
    reservations.set(reserved, appending);
    return reserved;
  }

  return Object.freeze({ enter, exit, reserve });
}

/** Removes the mark of an open call. Exactly one of the call itself and recovery can do that. */
export async function closeCall(tx: Transaction, position: number): Promise<void> {
  const { changes } = await tx.run('DELETE FROM open_calls WHERE position = ?', position);
  if (changes !== 1) throw new Error(`call ${position} was already explained by another process`);
}

function beginCall(event: ToolEnterEvent, clock: Clock): Begun {
  // The salt of refused arguments is kept nowhere: what somebody sent by mistake cannot be guessed back from its digest.
  return {
    event,
    salt: clock.salt(),
    body: event.kept === undefined ? undefined : canonicalJson(event.kept.args),
  };
}

function enterRow({ event, salt, body }: Begun): NewRow {
  return {
    stage: 'enter',
    tool: event.tool,
    actor: event.actor,
    source: event.source,
    correlation_id: event.correlationId,
    schema_valid: event.schemaValid,
    args_hash: saltedDigest(salt, body ?? looseText(event.args)),
    outcome: 'running',
    error_code: null,
    duration_ms: null,
    result_hash: null,
    effects: [],
    repaired: event.repaired,
  };
}

function exitRow(
  { event: entered }: Begun,
  event: ToolExitEvent,
  sequenceNo: number,
  resultHash: string | null,
): NewRow {
  return {
    stage: 'exit',
    sequence_no: sequenceNo,
    tool: entered.tool,
    actor: entered.actor,
    source: entered.source,
    correlation_id: entered.correlationId,
    schema_valid: entered.schemaValid,
    args_hash: null,
    outcome: event.outcome,
    error_code: event.errorCode ?? null,
    duration_ms: event.durationMs,
    result_hash: resultHash,
    effects: event.effects,
    repaired: [],
  };
}

/** What is committed to of a call's end. Only that of a writing call is kept; the salt of any other is forgotten at once. */
function exitPayload(event: ToolExitEvent, clock: Clock) {
  const { entered, outside } = event;
  if (!entered.schemaValid) return undefined;
  const salt = clock.salt();
  if (!entered.mutates) {
    if (event.outcome !== 'ok') return undefined;
    return { salt, hash: saltedDigest(salt, textOf(event.result)), body: undefined };
  }
  const error = { code: event.errorCode ?? 'HANDLER_ERROR', message: event.error?.message ?? '' };
  const body = textOf(event.outcome === 'ok' ? { outside, result: event.result } : { outside, error });
  return { salt, hash: saltedDigest(salt, body), body };
}

/** As the client gets it: what JSON leaves out or turns into text (undefined, dates) is so here too. */
function textOf(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch {
    return looseText(value);
  }
}

/** Of what has no canonical text. Arguments that were refused may be nested too deep even for this. */
function looseText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch {
    return '';
  }
}

/** The derived index of writing calls by task: the one that the arguments name, or that was made. */
async function noteTask(tx: Transaction, event: ToolExitEvent, position: number): Promise<void> {
  if (!event.entered.mutates || !event.entered.schemaValid) return;
  const made = event.tool === 'task_create' ? event.result : undefined;
  await indexCall(tx, made ?? event.entered.kept?.args, position);
}

/** Files the exit row at `position` under the task that a value names, if it names one. */
export async function indexCall(tx: Transaction, naming: unknown, position: number): Promise<void> {
  if (typeof naming !== 'object' || naming === null || !('task_id' in naming)) return;
  const task = typeof naming.task_id === 'string' ? parseId(TASKS, naming.task_id) : undefined;
  if (task !== undefined)
    await tx.run('INSERT INTO task_calls (task_id, position) VALUES (?, ?)', task, position);
}
