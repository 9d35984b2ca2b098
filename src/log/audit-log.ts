import type { AuditSink, Reserved, ToolEnterEvent, ToolExitEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { saltedDigest } from '../integrity/digest.ts';
import { changeOne, type Reader, type Transaction } from '../storage/engine.ts';
import { type Appending, commitRows, type LogWriter, openAppending } from './append.ts';
import { isGone } from './process-identity.ts';
import { parseAuditText } from './row.ts';
import { parseId, TASKS } from './tables.ts';
import { storeTexts } from './texts.ts';

/** A call between its enter and its exit. */
interface Begun {
  readonly event: ToolEnterEvent;
  readonly salt: string;
  /** Canonical kept arguments, or undefined for input that was refused and is not kept. */
  readonly body: string | undefined;
  /** Set once the enter row is in the file. */
  position?: number;
}

/**
 * The sink that writes the audit rows. A writing call gets its enter row in a commit of its own, before the handler
 * starts; every other call has nothing to explain after a crash, so its two rows go in together at the end.
 */
export function createAuditLog(writer: LogWriter): AuditSink {
  const { clock, process } = writer;
  const begun = new WeakMap<ToolEnterEvent, Begun>();
  const reservations = new WeakMap<Reserved, Appending>();
  /** Writing calls whose end could not be written, as on a full disk. The next commit of this process closes them. */
  let unclosed: readonly ToolExitEvent[] = [];

  /** One commit that adds rows: those that are overdue first, then `work`. */
  async function commit<T>(work: (appending: Appending) => Promise<T>): Promise<T> {
    const overdue = unclosed;
    const done = await commitRows(writer, async (appending) => {
      for (const event of overdue) await appendEnd(appending, event);
      return await work(appending);
    });
    unclosed = unclosed.filter((event) => !overdue.includes(event));
    return done;
  }

  async function enter(event: ToolEnterEvent): Promise<void> {
    // The salt of refused arguments is kept nowhere: what was sent by mistake cannot be guessed back from its digest.
    const call: Begun = { event, salt: clock.salt(), body: event.kept && canonicalJson(event.kept.args) };
    begun.set(event, call);
    if (!isWriting(event)) return;
    call.position = await commit(async (appending) => {
      const at = await appendEnter(appending, call);
      const sql = 'INSERT INTO open_calls (position, process) VALUES (?, ?)';
      await changeOne(appending.tx, sql, at, process);
      return at;
    });
  }

  async function exit(event: ToolExitEvent, reserved?: Reserved): Promise<void> {
    const appending = reserved && reservations.get(reserved);
    if (appending !== undefined) {
      await appendEnd(appending, event, reserved?.at);
      return await appending.close(event.tool === 'merkle_finalize' || event.tool.startsWith('owner_'));
    }
    const call = begun.get(event.entered);
    // A writing call whose enter failed has no row to close; its failure went to the client and to stderr.
    if (call === undefined || (isWriting(event.entered) && call.position === undefined)) return;
    try {
      await commit((open) => appendEnd(open, event));
    } catch (error) {
      if (call.position !== undefined) unclosed = [...unclosed, event];
      throw error;
    }
  }

  async function appendEnd(appending: Appending, event: ToolExitEvent, at?: string): Promise<void> {
    const call = begun.get(event.entered);
    if (call === undefined) throw new Error('a call ended that never began');
    if (call.position !== undefined) await closeCall(appending.tx, call.position);
    const payload = exitPayload(event, clock);
    const position = await appending.append({
      ...callOf(call.event),
      stage: 'exit',
      sequence_no: call.position ?? (await appendEnter(appending, call)),
      outcome: event.outcome,
      error_code: event.errorCode ?? null,
      duration_ms: event.durationMs,
      result_hash: payload?.hash ?? null,
      effects: event.effects,
      ...(at !== undefined && { at }),
    });
    if (payload?.body !== undefined) await appending.keepPayload(position, payload.salt, payload.body);
    if (!isWriting(call.event)) return;
    const made = event.tool === 'task_create' ? event.result : undefined;
    await indexCall(appending.tx, made ?? call.event.kept?.args, position);
  }

  async function reserve(tx: Transaction): Promise<Reserved> {
    const appending = await openAppending(tx, writer);
    const reserved = { ...appending.next(), process };
    reservations.set(reserved, appending);
    return reserved;
  }

  return Object.freeze({ enter, exit, reserve });
}

/** Explains every call that can no longer end: one exit row `crashed` each. It never committed, so it has no effects. */
export async function recoverOpenCalls(writer: LogWriter): Promise<number> {
  const lost = async (tx: Reader) => {
    const open = await tx.all<{ process: string; text: string; body: string | null }>(OPEN_CALLS);
    const calls = open.map(({ text, ...call }) => ({ ...call, row: parseAuditText(text) }));
    return calls.filter(({ process, row }) => isGone(process, writer.clock.now() - Date.parse(row.at)));
  };
  // Most starts find nothing, and need not wait for the lock while many processes write.
  if ((await writer.storage.read(lost)).length === 0) return 0;
  return await commitRows(writer, async (appending) => {
    const { tx } = appending;
    let explained = 0;
    for (const { row, body } of await lost(tx)) {
      const { position, tool, actor, source, correlation_id, schema_valid } = row;
      await closeCall(tx, position);
      const call = { tool, actor, source, correlation_id, schema_valid, sequence_no: position };
      const end = await appending.append({ ...call, stage: 'exit', outcome: 'crashed' });
      if (body !== null) await indexCall(tx, JSON.parse(body), end);
      explained += 1;
    }
    return explained;
  });
}

const OPEN_CALLS = `
  SELECT o.process, a.text, p.body FROM open_calls o JOIN actions a ON a.position = o.position
  LEFT JOIN action_payloads p ON p.position = o.position ORDER BY o.position`;

async function appendEnter(appending: Appending, { event, salt, body }: Begun): Promise<number> {
  const position = await appending.append({
    ...callOf(event),
    stage: 'enter',
    args_hash: saltedDigest(salt, body ?? refusedText(event.args)),
    outcome: 'running',
    repaired: event.repaired,
  });
  if (body !== undefined) await appending.keepPayload(position, salt, body);
  await storeTexts(appending.tx, event.kept?.texts ?? []);
  return position;
}

/** What both rows of a call say of it. */
function callOf({ tool, actor, source, correlationId, schemaValid }: ToolEnterEvent) {
  return { tool, actor, source, correlation_id: correlationId, schema_valid: schemaValid };
}

/** A call that may leave something behind: its rows are two commits, and its end is kept. */
function isWriting({ mutates, schemaValid }: ToolEnterEvent): boolean {
  return mutates && schemaValid;
}

/** Removes the mark of an open call. Exactly one of the call itself and recovery can do that. */
async function closeCall(tx: Transaction, position: number): Promise<void> {
  const { changes } = await tx.run('DELETE FROM open_calls WHERE position = ?', position);
  if (changes !== 1) throw new Error(`call ${position} was already explained by another process`);
}

/** What is committed to of a call's end. Only that of a writing call is kept; the salt of any other is forgotten at once. */
function exitPayload(event: ToolExitEvent, clock: Clock) {
  const { entered } = event;
  if (!entered.schemaValid) return undefined;
  const salt = clock.salt();
  if (!entered.mutates) {
    if (event.outcome !== 'ok') return undefined;
    return { salt, hash: saltedDigest(salt, textOf(event.result)), body: undefined };
  }
  const error = { code: event.errorCode ?? 'HANDLER_ERROR', message: event.error?.message ?? '' };
  const told = event.outcome === 'ok' ? { result: event.result } : { error };
  const body = textOf({ outside: entered.outside, ...told });
  return { salt, hash: saltedDigest(salt, body), body };
}

/** As the client gets it: what JSON leaves out or turns into text (undefined, dates) is so here too. */
function textOf(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch {
    return JSON.stringify(value) ?? 'null';
  }
}

/** Arguments that were refused may have no text at all: they may be nested too deep for anything recursive. */
function refusedText(args: unknown): string {
  try {
    return textOf(args);
  } catch {
    return '';
  }
}

/** The derived index of writing calls by task: files an exit row under the task that a value names, if it names one. */
async function indexCall(tx: Transaction, naming: unknown, position: number): Promise<void> {
  if (typeof naming !== 'object' || naming === null || !('task_id' in naming)) return;
  const task = typeof naming.task_id === 'string' ? parseId(TASKS, naming.task_id) : undefined;
  if (task !== undefined)
    await changeOne(tx, 'INSERT INTO task_calls (task_id, position) VALUES (?, ?)', task, position);
}
