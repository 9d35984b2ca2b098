import { ColibriError } from '../../errors.ts';
import { STATE_TABLES } from '../../log/tables.ts';
import { ask, type Call, type Ruling, type Steps } from '../rule.ts';
import type { AdoptArgs, EraseArgs, KeyArgs, ReceiveArgs, TransferArgs } from './tools.ts';

/** The owner accepts the log as it is. It changes no row of state: what it says is in its arguments. */
function* adoptLog(
  { reason: _, ...said }: AdoptArgs,
  call: Call,
): Steps<Ruling<Omit<AdoptArgs, 'reason'> & { adopted_rows: number }>> {
  yield {};
  // The call's own two rows follow what is adopted.
  return { rows: [], result: { adopted_rows: call.position - 1, ...said } };
}

/** What can be erased: a record with its task, or a call that wrote no record, by its enter row: `#12`. */
export interface Erasable {
  readonly record: string;
  readonly task_id?: string | undefined;
}

/** A call that ended, as far as it decides whose texts it carried. */
export interface Carrier {
  /** Position of its enter row. */
  readonly position: number;
  readonly tool: string;
  /** The task that it named or made. */
  readonly task: string | undefined;
  /** The first record that it wrote; undefined of a call that was refused or failed. */
  readonly wrote: string | undefined;
}

/**
 * Whether erasing something takes the texts of this call with it. A record takes those of the calls that wrote it. What
 * was refused may say the same once more: a task takes every refused call about it, a thought the refused thoughts on its
 * task. Why the owner did something is never erased.
 */
export function isTextOf({ record, task_id }: Erasable, { position, tool, task, wrote }: Carrier): boolean {
  if (tool.startsWith('owner_')) return false;
  if (record.startsWith('#')) return wrote === undefined && record === `#${position}`;
  if (task === undefined || task !== task_id) return false;
  if (wrote !== undefined) return wrote === record;
  return (
    record === task_id ||
    STATE_TABLES.some(({ prefix, createdBy }) => createdBy === tool && record.startsWith(`${prefix}-`))
  );
}

/** Removes texts with their salts. What was erased, by whom, when and why stays; so does every digest. */
function* eraseTexts(args: EraseArgs): Steps<Ruling<{ record: string; digests: string[] }>> {
  const { record } = args;
  const { digests } = yield* ask({ digests: ['textsOf', args] });
  if (digests.length === 0)
    throw new ColibriError('ERR_NOT_FOUND', `${record} has no text to erase.`, { id: record });
  return { rows: [], result: { record, digests: [...digests] } };
}

/** A key becomes one of the log's: vouched for by the owner of another, or by itself. What it says is in its arguments. */
function* addKey({ key }: KeyArgs): Steps<Ruling<{ key: string }>> {
  yield {};
  return { rows: [], result: { key } };
}

/** The log goes on in another database. Its own exit row is the last one here; that no other follows, the log sees to. */
function* transferLog({ to }: TransferArgs, call: Call): Steps<Ruling<{ to: string; rows: number }>> {
  yield {};
  return { rows: [], result: { to, rows: call.position } };
}

/** The log goes on here, with the first row behind the transfer. */
function* receiveLog({ from }: ReceiveArgs): Steps<Ruling<{ from: string }>> {
  yield {};
  return { rows: [], result: { from } };
}

/** The acts of the owner, and that of a machine that is new to a team's log, with the arguments that are texts. */
export const OWNER_RULES = {
  owner_adopt: { texts: ['reason'], rule: adoptLog },
  owner_erase: { texts: ['reason'], rule: eraseTexts },
  owner_trust: { texts: [], rule: addKey },
  owner_transfer: { texts: [], rule: transferLog },
  owner_receive: { texts: [], rule: receiveLog },
  key_join: { texts: [], rule: addKey },
} as const;
