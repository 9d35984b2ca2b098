import type { AskAhead, CallSink, OpenRows, ToolEnterEvent, ToolExitEvent } from '../audit-sink.ts';
import type { Clock } from '../clock.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { saltedDigest } from '../integrity/digest.ts';
import type { Sooner } from '../sooner.ts';
import { changeOne, type Durable, type Reader, type SqlValue, type Transaction } from '../storage/engine.ts';
import { textId } from '../storage/text-ids.ts';
import { type Appending, commitRows, type LogWriter } from './append.ts';
import { filesCheckpoint, parseAuditText } from './row.ts';
import { parseId, TASKS } from './tables.ts';

/** A call between its enter and its exit. */
interface Begun {
  readonly event: ToolEnterEvent;
  readonly salt: string;
  /** Canonical kept arguments, or undefined for input that was refused and is not kept. */
  readonly body: string | undefined;
  /** Set once the enter row is in the file. */
  position?: number | undefined;
}

/**
 * The sink that writes the audit rows. If one of the calls that were taken together writes, the enter rows of all of them
 * get a commit of their own, before the first handler starts. Calls that only read have nothing to explain after a crash,
 * so their rows go in together at the end; a long read lets others pass, so it begins like a writing call.
 */
export function createAuditLog(writer: LogWriter): CallSink {
  const { clock, process } = writer;
  const begun = new WeakMap<ToolEnterEvent, Begun>();
  /**
   * How a call of this process takes its mark away. A server that fails may lose the row by which the call began, and
   * another call may be at its position since: then there is nothing of it to close.
   */
  const closing = (tx: Reader, position: number, correlationId: string): [string, ...SqlValue[]] => {
    if (writer.storage.isShared !== true) return [CLOSE, position];
    const isOurs = `EXISTS (SELECT 1 FROM actions a WHERE a.position = open_calls.position AND ${tx.dialect.contains('a.text')})`;
    return [`${CLOSE} AND ${isOurs}`, position, `"correlation_id":"${correlationId}"`];
  };
  /** Calls whose end could not be written, as on a full disk. The next commit of this process closes them. */
  let unclosed: readonly ToolExitEvent[] = [];
  let commits = 0;

  /** One commit that adds rows: those that are overdue first, then `work`. */
  async function commit<T>(work: (appending: Appending) => Sooner<T>, durable?: Durable): Promise<T> {
    let overdue: readonly ToolExitEvent[] = [];
    // What ends a call late must be durable: a server that fails may lose any other commit, and nobody ends the call again.
    const isDurable = durable === undefined || unclosed.length > 0;
    const all = async (appending: Appending) => {
      // Only now: another commit of this process may have closed some of them while this one waited for its turn.
      if (isDurable) [overdue, unclosed] = [unclosed, []];
      for (const event of overdue) await appendEnd(appending, event);
      return await work(appending);
    };
    try {
      const done = await commitRows(writer, all, isDurable ? undefined : durable);
      commits += 1;
      return done;
    } catch (error) {
      unclosed = [...overdue, ...unclosed];
      throw error;
    }
  }

  async function enter(events: readonly ToolEnterEvent[], isLong = false, next?: AskAhead): Promise<void> {
    const calls = events.map((event): Begun => {
      // The salt of refused arguments is kept nowhere: what was sent by mistake cannot be guessed back from its digest.
      return { event, salt: clock.salt(), body: event.kept && canonicalJson(event.kept.args) };
    });
    for (const call of calls) begun.set(call.event, call);
    if (!isLong && !events.some(isWriting)) return;
    const positions = await commit(
      async (appending) => {
        const entered: number[] = [];
        for (const call of calls) {
          const position = appendEnter(appending, call);
          appending.keep('open_calls', position, process);
          entered.push(position);
        }
        return entered;
        // What the calls do is written next, whatever it is; only a long one is read first.
      },
      isLong || next === undefined ? 'soon' : { next },
    );
    for (const [i, call] of calls.entries()) call.position = positions[i];
  }

  async function write<T>(work: (rows: OpenRows) => Sooner<T>, durable?: 'soon'): Promise<T> {
    return await commit(async (appending) => {
      const { tx, next, flush, hasNewTexts, savepoint, lastSeen } = appending;
      const reserve: OpenRows['reserve'] = (entered) => {
        const { position, at } = next();
        return { enter: begun.get(entered)?.position ?? 0, position, at, process };
      };
      const end: OpenRows['exit'] = (event, at) => appendEnd(appending, event, at?.at);
      return await work({ tx, reserve, flush, hasNewTexts, savepoint, lastSeen, exit: end });
    }, durable);
  }

  async function exit(events: readonly ToolExitEvent[], held?: Error): Promise<void> {
    // A writing call whose enter failed has no row to close; its failure went to the client and to stderr.
    const ended = events.filter((event) => isInFile(event) || !isWriting(event.entered));
    if (ended.length === 0) return;
    try {
      if (held !== undefined) throw held;
      await commit(
        async (appending) => {
          for (const event of ended) await appendEnd(appending, event);
        },
        ended.some(isInFile) ? undefined : 'soon',
      );
    } catch (error) {
      unclosed = [...unclosed, ...ended.filter(isInFile)];
      throw error;
    }
  }

  const isInFile = ({ entered }: ToolExitEvent) => begun.get(entered)?.position !== undefined;

  function appendEnd(appending: Appending, event: ToolExitEvent, at?: string): Sooner<void> {
    const call = begun.get(event.entered);
    if (call === undefined) throw new Error('a call ended that never began');
    if (call.position === undefined) return appendExit(appending, call, event, at);
    const isOk = event.outcome === 'ok' && isWriting(call.event);
    const marked = closing(appending.tx, call.position, event.correlationId);
    // Any other end than a good one has been told by the other process, where that has explained the call.
    if (!isOk)
      return closeCall(appending.tx, ...marked).then((isOurs) => {
        if (isOurs) appendExit(appending, call, event, at);
      });
    // What it wrote must not be stored then.
    if (writer.storage.isShared === true) changeOne(appending.tx, ...marked);
    else appending.end(call.position);
    appendExit(appending, call, event, at);
  }

  function appendExit(appending: Appending, call: Begun, event: ToolExitEvent, at: string | undefined): void {
    const payload = exitPayload(event, clock);
    const { tool, outcome, result, entered } = event;
    const position = appending.append({
      stage: 'exit',
      tool,
      actor: entered.actor,
      source: entered.source,
      correlation_id: entered.correlationId,
      schema_valid: entered.schemaValid,
      sequence_no: call.position ?? appendEnter(appending, call),
      outcome,
      error_code: event.errorCode ?? null,
      duration_ms: event.durationMs,
      result_hash: payload?.hash ?? null,
      effects: event.effects,
      at,
    });
    if (payload?.body !== undefined) appending.keep('action_payloads', position, payload.salt, payload.body);
    if (!isWriting(call.event)) return;
    appending.keeps ||= filesCheckpoint({ stage: 'exit', tool, outcome });
    const made = tool === 'task_create' ? result : undefined;
    indexCall(appending, made ?? call.event.kept?.args, position);
  }

  return Object.freeze({ takesBatches: true, process, commits: () => commits, enter, write, exit });
}

/**
 * Explains every call that can no longer end: one exit row `crashed` each. It never committed, so it has no effects.
 * `reads` knows the tools that only read: their calls are filed under no task. `ownAreOver`: so can those of this process.
 */
export async function recoverOpenCalls(
  writer: LogWriter,
  reads: { has(tool: string): boolean },
  ownAreOver = false,
): Promise<number> {
  const lost = async (tx: Reader) => {
    const open = await tx.all<{ process: string; text: string; body: string | null }>(OPEN_CALLS);
    const calls = open.map(({ text, ...call }) => ({ ...call, row: parseAuditText(text) }));
    const gone: typeof calls = [];
    for (const call of calls) {
      const ageMs = writer.clock.now() - Date.parse(call.row.at);
      const isOver = ownAreOver && call.process === writer.process;
      if (!isOver && !(await writer.storage.isGone(tx, call.process, ageMs))) continue;
      // A mark that Colibri did not put there must not make a call end twice.
      if (
        call.row.stage === 'enter' &&
        (await tx.get(ENDED, call.row.position, call.row.position)) === undefined
      )
        gone.push(call);
    }
    return gone;
  };
  // Most starts find nothing, and need not wait for the lock while many processes write.
  if ((await writer.storage.read(lost)).length === 0) return 0;
  return await commitRows(writer, async (appending) => {
    const { tx } = appending;
    let explained = 0;
    for (const { row, body } of await lost(tx)) {
      const { position, tool, actor, source, correlation_id, schema_valid } = row;
      await closeCall(tx, CLOSE, position);
      const call = { tool, actor, source, correlation_id, schema_valid, sequence_no: position };
      const end = appending.append({ ...call, stage: 'exit', outcome: 'crashed' });
      if (body !== null && !reads.has(tool)) indexCall(appending, JSON.parse(body), end);
      explained += 1;
    }
    return explained;
  });
}

const ENDED =
  "SELECT 1 AS found FROM audit_rows WHERE position > ? AND sequence_no = ? AND stage = 'exit' LIMIT 1";

const OPEN_CALLS = `
  SELECT o.process, a.text, p.body FROM open_calls o JOIN actions a ON a.position = o.position
  LEFT JOIN action_payloads p ON p.position = o.position ORDER BY o.position`;

function appendEnter(appending: Appending, { event, salt, body }: Begun): number {
  const position = appending.append({
    stage: 'enter',
    tool: event.tool,
    actor: event.actor,
    source: event.source,
    correlation_id: event.correlationId,
    schema_valid: event.schemaValid,
    args_hash: saltedDigest(salt, body ?? refusedText(event.args)),
    outcome: 'running',
    repaired: event.repaired,
  });
  if (body !== undefined) appending.keep('action_payloads', position, salt, body);
  for (const [i, { digest, salt: own, text }] of (event.kept?.texts ?? []).entries())
    appending.keep('texts', textId(position, i), digest, own, text);
  return position;
}

/** A call that may leave something behind: its rows are two commits, and its end is kept. */
function isWriting({ mutates, schemaValid }: ToolEnterEvent): boolean {
  return mutates && schemaValid;
}

const CLOSE = 'DELETE FROM open_calls WHERE position = ?';

/** Removes the mark of an open call, if it has one. Exactly one of the call itself and recovery can do that. */
async function closeCall(tx: Transaction, sql: string, ...params: SqlValue[]): Promise<boolean> {
  return (await tx.run(sql, ...params)).changes === 1;
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
  const body = textOf({ outside: event.outside, ...told });
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
function indexCall(appending: Appending, naming: unknown, position: number): void {
  if (typeof naming !== 'object' || naming === null || !('task_id' in naming)) return;
  const task = typeof naming.task_id === 'string' ? parseId(TASKS, naming.task_id) : undefined;
  if (task !== undefined) appending.keep('task_calls', task, position);
}
