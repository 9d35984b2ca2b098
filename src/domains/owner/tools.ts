import * as z from 'zod';
import { LIMITS } from '../../limits.ts';
import { parseId, TASKS } from '../../log/tables.ts';
import { eraseTexts, WORDED, type WordedTask, wordsOf } from '../../log/texts.ts';
import { type Tool, toolsOf } from '../../tool.ts';
import { erasableTexts } from '../carried-texts.ts';
import { line } from '../fields.ts';
import { ruled } from '../ruled.ts';
import { OWNER_RULES } from './rules.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

const key = z.string().max(512);

/** The key's signature over the rest: no row of a log that machines share says who wrote it. */
const signed = z.string().max(128);

export const AdoptInput = z.strictObject({
  reason: line(LIMITS.reasonCharsMax),
  /** The signed head that the log no longer extends, where there is one. */
  lost: z.strictObject({ size: z.int().min(0), root: hash, key }).optional(),
  /** The key that signs from now on. */
  key,
  /** The rows that were there when the owner decided. */
  rows: z.int().min(0),
  signed,
});

const AdoptOutput = AdoptInput.omit({ reason: true }).extend({ adopted_rows: z.int() });

export const EraseInput = z.strictObject({
  /** A task, a thought or a session by its id, or a call that wrote none of them by its enter row: `#12`. */
  record: line(32),
  /** The task that the record is about; none for a call. */
  task_id: line(32).optional(),
  reason: line(LIMITS.reasonCharsMax),
});

const EraseOutput = z.strictObject({ record: z.string(), digests: z.array(hash) });

/** A database by its name: the path of a file, or `postgres:` and the name of one on a server, never where that is. */
const place = line(LIMITS.placeCharsMax);

export const TransferInput = z.strictObject({ to: place });

const TransferOutput = z.strictObject({ to: z.string(), rows: z.int() });

export const ReceiveShape = z.strictObject({ from: place });

const KeyShape = z.strictObject({ key });
const TrustInput = KeyShape.extend({ signed });

export type KeyArgs = z.output<typeof KeyShape>;
export type AdoptArgs = z.output<typeof AdoptInput>;
export type EraseArgs = z.output<typeof EraseInput>;
export type TransferArgs = z.output<typeof TransferInput>;
export type ReceiveArgs = z.output<typeof ReceiveShape>;

const tool = toolsOf('owner');
const erasing = ruled(OWNER_RULES.owner_erase);

const erase: typeof erasing.handle = async (args, call, tx) => {
  const erased = await erasing.handle(args, call, tx);
  const task_id = args.task_id === undefined ? undefined : String(args.task_id);
  const task = parseId(TASKS, task_id ?? '') ?? null;
  const texts = await erasableTexts(tx, { record: erased.record, task_id });
  await eraseTexts(tx, texts, task, call.position);
  const row = await tx.get<WordedTask>(`SELECT ${WORDED} FROM tasks WHERE id = ?`, task);
  if (row !== undefined) await tx.indexWords(row.id, false, () => wordsOf(tx, row));
  return erased;
};

/** What only the owner does, from the command line: none of it can be reached over MCP. */
export function ownerTools(): Tool[] {
  return [
    tool({
      name: 'owner_adopt',
      title: 'Adopt log',
      summary: 'Accept the log as it is, and sign it from now on.',
      input: AdoptInput,
      output: AdoptOutput,
      ...ruled(OWNER_RULES.owner_adopt),
    }),
    tool({
      name: 'owner_erase',
      title: 'Erase texts',
      summary: 'Remove the texts of a record and of the calls that carried them.',
      input: EraseInput,
      output: EraseOutput,
      ...erasing,
      readsLog: true,
      handle: erase,
    }),
    tool({
      name: 'owner_trust',
      title: 'Trust key',
      summary: 'Vouch for the key of another machine.',
      input: TrustInput,
      output: KeyShape,
      ...ruled(OWNER_RULES.owner_trust),
    }),
    tool({
      name: 'owner_transfer',
      title: 'Transfer log',
      summary: 'End the log here, to continue in another database.',
      input: TransferInput,
      output: TransferOutput,
      ...ruled(OWNER_RULES.owner_transfer),
    }),
    tool({
      name: 'owner_receive',
      title: 'Receive log',
      summary: 'Continue a log that was transferred here.',
      input: ReceiveShape,
      output: ReceiveShape,
      ...ruled(OWNER_RULES.owner_receive),
    }),
  ];
}

/** What a server does once, at its first start on a team's database. No client can ask for it. */
export function joiningTools(): Tool[] {
  return [
    tool({
      name: 'key_join',
      title: 'Join log',
      summary: 'Record the key of this machine.',
      input: KeyShape,
      output: KeyShape,
      ...ruled(OWNER_RULES.key_join),
    }),
  ];
}
