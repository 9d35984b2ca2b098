import type { PastCall } from './history.ts';
import type { Colour, Output } from './output.ts';
import type { ProofState } from './proof-status.ts';
import { displayWidth, printable, toWidth, wrap } from './text.ts';

/** In a narrower terminal, what happened goes below who did it, not beside. */
const BESIDE_WIDTH_MIN = 80;
/** A thought may have 5,000 characters; `colibri show` prints them all. */
const WHY_LINES_MAX = 3;
const WHY_INDENT = 4;
const ACTOR_WIDTH = 14;

/** One call as lines for a person: when, who, what, how it ended, why, and how well it is proved. */
export function callLines(call: PastCall, proof: ProofState, out: Output, indent = 0): string[] {
  const { row } = call;
  const begin = ' '.repeat(indent);
  const when = `${row.at.replace('T', ' ').slice(0, 19)}Z`;
  const who = out.paint('cyan', toWidth(printable(row.actor), ACTOR_WIDTH));
  const head = `${begin}${proofMark(proof, out)} ${out.paint('dim', when)} ${who}`;
  const hang = out.wrapWidth < BESIDE_WIDTH_MIN ? indent + WHY_INDENT : displayWidth(head) + 1;
  const lines = wrap(`${head} ${whatHappened(call)}${ending(call, out)}`, out.wrapWidth, hang);
  const { content, blocked_reason, reason } = call.args;
  const why = content ?? blocked_reason ?? reason;
  return typeof why === 'string' ? [...lines, ...reasonLines(why, begin, out)] : lines;
}

/** The whole text where a program reads, its beginning on a terminal. */
function reasonLines(why: string, begin: string, out: Output): string[] {
  const indent = `${begin}${' '.repeat(WHY_INDENT)}`;
  const lines = wrap(`${indent}“${printable(why)}”`, out.wrapWidth, indent.length + 1);
  if (lines.length <= WHY_LINES_MAX) return lines;
  const [last = '', ...shown] = lines.slice(0, WHY_LINES_MAX).reverse();
  return [
    ...shown.reverse(),
    toWidth(`${last} ……`, Math.max(out.wrapWidth, indent.length + 2)).replace(/……\s*$/, '…'),
  ];
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

function proofMark(proof: ProofState, out: Output): string {
  const [mark, colour] = MARKS[proof];
  return out.paint(colour, mark);
}

export const PROOF_LEGEND = Object.values(MARKS)
  .map(([mark, , meaning]) => `${mark} ${meaning}`)
  .join('  ');

function whatHappened({ row, args, result }: PastCall): string {
  const text = (value: unknown): string => (typeof value === 'string' ? printable(value) : '');
  const task = text(args.task_id) || text(result.task_id);
  if (row.outcome !== 'ok')
    return row.tool === 'task_update' && typeof args.status === 'string'
      ? `tried to move ${task} to ${text(args.status)}`
      : ['tried', printable(row.tool), task || text(args.session_id)].filter(Boolean).join(' ');
  switch (row.tool) {
    case 'task_create':
      return `created ${task || 'a task'} “${text(args.title)}” in ${text(args.project)}`;
    case 'task_update':
      return [moved(task, args, result), changed(task, args)].filter(Boolean).join(', ');
    case 'thought_record':
      return `recorded ${text(result.thought_id) || 'a thought'} (${text(args.type)}) on ${task}`;
    case 'audit_session_start':
      return `opened session ${text(result.session_id)} on ${task}`;
    case 'merkle_finalize':
      return `sealed ${text(args.session_id)}: ${String(result.leaf_count ?? '?')} records, root ${text(result.merkle_root).slice(0, 12)}…`;
    case 'owner_adopt':
      return 'accepted the log as it was, as its owner';
    default:
      return `${printable(row.tool)}${task === '' ? '' : ` ${task}`}`;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function moved(task: string, args: Fields, result: Fields): string {
  if (typeof args.status !== 'string') return '';
  return `moved ${task} ${typeof result.previous_status === 'string' ? printable(result.previous_status) : '?'} → ${printable(args.status)}`;
}

/** The fields that were set, short ones with their value. */
function changed(task: string, args: Fields): string {
  const fields = Object.entries(args).filter(([name]) => !SHOWN_ELSEWHERE.includes(name));
  if (fields.length === 0) return '';
  const shown = fields.map(([name, value]) =>
    ['string', 'number'].includes(typeof value) && String(value).length <= VALUE_CHARS_MAX
      ? `${printable(name)} ${printable(String(value))}`
      : printable(name),
  );
  return `${typeof args.status === 'string' ? '' : `changed ${task}: `}${shown.join(', ')}`;
}

const SHOWN_ELSEWHERE: readonly string[] = ['task_id', 'status', 'blocked_reason'];
const VALUE_CHARS_MAX = 40;
