import type { AuditSink, ToolEnterEvent, ToolExitEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import type { StorageEngine, Transaction } from '../storage/engine.ts';
import { appendRow, type Head, keepPayload, type NewRow, readHead, timeAfter } from './append.ts';
import { plainJson } from './plain-json.ts';
import { payloadHash } from './row.ts';

export interface AuditLogOptions {
  readonly storage: StorageEngine;
  readonly clock: Clock;
  /** Which server process writes: recovery asks whether it is still there. */
  readonly process: string;
}

/** A call between its enter and its exit. */
interface Begun {
  readonly event: ToolEnterEvent;
  readonly salt: string;
  /** Canonical arguments, or undefined for input that was refused and is not kept. */
  readonly body: string | undefined;
  /** Set once the enter row is in the file. */
  readonly position?: number;
}

/**
 * The sink that writes the audit rows. A writing call gets its enter row in a commit of its own, before the handler
 * starts; every other call has nothing to explain after a crash, so its two rows go in together at the end.
 */
export function createAuditLog({ storage, clock, process }: AuditLogOptions): AuditSink {
  const begun = new WeakMap<ToolEnterEvent, Begun>();

  async function enter(event: ToolEnterEvent): Promise<void> {
    const call = beginCall(event, clock);
    if (!event.mutates || !event.schemaValid) {
      begun.set(event, call);
      return;
    }
    const position = await storage.write(async (tx) => {
      const head = await appendEnter(tx, await readHead(tx), call);
      await tx.run('INSERT INTO open_calls (position, process) VALUES (?, ?)', head.position, process);
      return head.position;
    });
    begun.set(event, { ...call, position });
  }

  async function exit(event: ToolExitEvent, tx?: Transaction): Promise<void> {
    const call = begun.get(event.entered);
    // A call whose enter failed has no row to close; its failure went to the client and to stderr.
    if (call === undefined) return;
    const append = (open: Transaction) => appendEnd(open, call, event);
    await (tx === undefined ? storage.write(append) : append(tx));
  }

  async function appendEnd(tx: Transaction, call: Begun, event: ToolExitEvent): Promise<void> {
    let head = await readHead(tx);
    if (call.position === undefined) head = await appendEnter(tx, head, call);
    else await closeCall(tx, call.position);
    const kept = call.event.mutates && event.result !== undefined ? textOfResult(event.result) : undefined;
    head = await appendRow(tx, head, exitRow(call, event, call.position ?? head.position, process), clock);
    if (kept !== undefined) await keepPayload(tx, head.position, call.salt, kept);
  }

  async function appendEnter(tx: Transaction, head: Head, call: Begun): Promise<Head> {
    const next = await appendRow(tx, head, enterRow(call, process), clock);
    if (call.body !== undefined) await keepPayload(tx, next.position, call.salt, call.body);
    return next;
  }

  async function place(tx: Transaction): Promise<{ position: number; at: string }> {
    const head = await readHead(tx);
    return { position: head.position + 1, at: timeAfter(head, clock) };
  }

  return Object.freeze({ enter, exit, place });
}

/** Removes the mark of an open call. Exactly one of the call itself and recovery can do that. */
export async function closeCall(tx: Transaction, position: number): Promise<void> {
  const { changes } = await tx.run('DELETE FROM open_calls WHERE position = ?', position);
  if (changes !== 1) throw new Error(`call ${position} was already explained by another process`);
}

function beginCall(event: ToolEnterEvent, clock: Clock): Begun {
  // The salt of refused arguments is kept nowhere: what somebody sent by mistake cannot be guessed back from its digest.
  return { event, salt: clock.salt(), body: event.schemaValid ? canonicalJson(event.args) : undefined };
}

function enterRow({ event, salt, body }: Begun, process: string): NewRow {
  return {
    stage: 'enter',
    tool: event.tool,
    actor: event.actor,
    correlation_id: event.correlationId,
    schema_valid: event.schemaValid,
    args_hash: payloadHash(salt, body ?? plainJson(event.args)),
    outcome: 'running',
    error_code: null,
    duration_ms: null,
    result_hash: null,
    effects: [],
    process,
    repaired: event.repaired,
  };
}

function exitRow(
  { event: entered, salt }: Begun,
  event: ToolExitEvent,
  sequenceNo: number,
  process: string,
): NewRow {
  return {
    stage: 'exit',
    sequence_no: sequenceNo,
    tool: entered.tool,
    actor: entered.actor,
    correlation_id: entered.correlationId,
    schema_valid: entered.schemaValid,
    args_hash: null,
    outcome: event.outcome,
    error_code: event.errorCode ?? null,
    duration_ms: event.durationMs,
    result_hash: event.result === undefined ? null : payloadHash(salt, textOfResult(event.result)),
    effects: event.effects,
    process,
    repaired: [],
  };
}

/** As the client gets it: what JSON leaves out or turns into text (undefined, dates) is so here too. */
function textOfResult(result: unknown): string {
  try {
    return canonicalJson(result);
  } catch {
    return plainJson(JSON.parse(JSON.stringify(result) ?? 'null'));
  }
}
