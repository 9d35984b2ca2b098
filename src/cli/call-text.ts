import type { Fields, PastCall } from './history.ts';
import type { Colour, Output } from './output.ts';
import type { ProofState, ProvedCall } from './proof-status.ts';
import { displayWidth, printable, toWidth, wrap } from './text.ts';

/** In a narrower terminal, what happened goes below who did it, not next to it. */
const ONE_LINE_WIDTH_MIN = 80;
/** A thought may have 5,000 characters; `colibri show` prints them all. */
const WHY_LINES_MAX = 3;
const WHY_INDENT = 4;
const ACTOR_WIDTH = 14;

/** Prints one call for a person: when, who, what, how it ended, why, and how well it is proved. */
export function printCall(call: ProvedCall, out: Output, indent = 0): void {
  const { row, args, proof } = call;
  const begin = ' '.repeat(indent);
  const when = `${row.at.replace('T', ' ').slice(0, 19)}Z`;
  const who = out.paint('cyan', toWidth(printable(row.actor), ACTOR_WIDTH));
  const [mark, colour] = MARKS[proof];
  const head = `${begin}${out.paint(colour, mark)} ${out.paint('dim', when)} ${who}`;
  const hang = out.wrapWidth < ONE_LINE_WIDTH_MIN ? indent + WHY_INDENT : displayWidth(head) + 1;
  out.line(`${head} ${whatHappened(call)}${ending(call, out)}`, hang);
  const why = args.content ?? args.blocked_reason ?? args.reason;
  if (typeof why === 'string') printReason(why, `${begin}${' '.repeat(WHY_INDENT)}`, out);
}

/** The whole text where a program reads, its beginning on a terminal. */
function printReason(why: string, indent: string, out: Output): void {
  const lines = wrap(`${indent}“${printable(why)}”`, out.wrapWidth, indent.length + 1);
  const last = lines[WHY_LINES_MAX - 1];
  const isCut = lines.length > WHY_LINES_MAX && last !== undefined;
  for (const line of lines.slice(0, isCut ? WHY_LINES_MAX - 1 : WHY_LINES_MAX)) out.line(line);
  const width = Math.max(out.wrapWidth, indent.length + 2);
  if (isCut) out.line(toWidth(`${last} ……`, width).replace(/……\s*$/, '…'));
}

function ending({ row }: PastCall, out: Output): string {
  if (row.outcome === 'ok') return '';
  if (row.outcome === 'crashed') return `, ${out.paint('red', 'but its process died')}`;
  const code = printable(row.error_code ?? row.outcome);
  // A full disk is a failure; everything else is a rule that refused.
  return `, ${out.paint('red', `${code.startsWith('ERR_STORAGE') ? 'failed' : 'refused'}: ${code}`)}`;
}

const MARKS: Readonly<Record<ProofState, readonly [mark: string, colour: Colour, meaning: string]>> = {
  anchored: ['◆', 'green', 'anchored'],
  checkpointed: ['●', 'green', 'checkpointed'],
  unsigned: ['○', 'yellow', 'not signed'],
  wrong: ['✗', 'red', 'not as it was signed'],
};

export const PROOF_LEGEND = Object.values(MARKS)
  .map(([mark, , meaning]) => `${mark} ${meaning}`)
  .join('  ');

const text = (value: unknown): string => (typeof value === 'string' ? printable(value) : '');

function whatHappened({ row, args, result }: PastCall): string {
  const task = text(args.task_id) || text(result.task_id);
  if (row.outcome === 'ok')
    return SENTENCES[row.tool]?.(task, args, result) ?? `${printable(row.tool)} ${task}`.trimEnd();
  return row.tool === 'task_update' && typeof args.status === 'string'
    ? `tried to move ${task} to ${text(args.status)}`
    : ['tried', printable(row.tool), task || text(args.session_id)].filter(Boolean).join(' ');
}

/** What a call did that succeeded, by its tool. */
const SENTENCES: Readonly<Record<string, (task: string, args: Fields, result: Fields) => string>> = {
  task_create: (task, args) => `created ${task || 'a task'} “${text(args.title)}” in ${text(args.project)}`,
  task_update: (task, args, result) =>
    [moved(task, args, result), changed(task, args)].filter(Boolean).join(', '),
  thought_record: (task, args, result) =>
    `recorded ${text(result.thought_id) || 'a thought'} (${text(args.type)}) on ${task}`,
  audit_session_start: (task, _, result) => `opened session ${text(result.session_id)} on ${task}`,
  merkle_finalize: (_, args, result) =>
    `sealed ${text(args.session_id)}: ${String(result.leaf_count ?? '?')} records, root ${text(result.merkle_root).slice(0, 12)}…`,
  owner_adopt: () => 'accepted the log as it was, as its owner',
};

function moved(task: string, args: Fields, result: Fields): string {
  if (typeof args.status !== 'string') return '';
  return `moved ${task} ${text(result.previous_status) || '?'} → ${text(args.status)}`;
}

const SHOWN_ELSEWHERE: readonly string[] = ['task_id', 'status', 'blocked_reason'];
const VALUE_CHARS_MAX = 40;

/** The fields that were set, short ones with their value. */
function changed(task: string, args: Fields): string {
  const fields = Object.entries(args).filter(([name]) => !SHOWN_ELSEWHERE.includes(name));
  if (fields.length === 0) return '';
  const shown = fields.map(([name, value]) =>
    ['string', 'number'].includes(typeof value) && String(value).length <= VALUE_CHARS_MAX
      ? printable(`${name} ${value}`)
      : printable(name),
  );
  return `${typeof args.status === 'string' ? '' : `changed ${task}: `}${shown.join(', ')}`;
}
