import type { PastCall } from './history.ts';
import { type Output, printable, toWidth } from './output.ts';

/** How far proofs reach, for the mark before a line. */
export interface ProofReach {
  readonly checkpointed: number;
  readonly anchored: number;
}

/** One call as a line a person reads: when, who, what, how it ended, and how well it is proved. */
export function tellCall(call: PastCall, reach: ProofReach, out: Output): string[] {
  const { row } = call;
  const head = `${proofMark(call.position, reach, out)} ${out.paint('dim', row.at.replace('T', ' ').slice(0, 19))} ${out.paint('cyan', toWidth(printable(row.actor), 14))}`;
  const ending =
    row.outcome === 'ok'
      ? ''
      : ` ${out.paint('red', `${row.outcome}${row.error_code === null ? '' : ` (${row.error_code})`}`)}`;
  const lines = [`${head} ${whatHappened(call)}${ending}`];
  const why = typeof call.args.content === 'string' ? call.args.content : undefined;
  if (why !== undefined)
    lines.push(
      `    ${out.paint('dim', '“')}${toWidth(printable(why), Math.max(20, out.width - 8)).trimEnd()}${out.paint('dim', '”')}`,
    );
  return lines;
}

/** ◆ anchored elsewhere, ● under a signed checkpoint, ○ only in the file. */
function proofMark(position: number, reach: ProofReach, out: Output): string {
  if (position <= reach.anchored) return out.paint('green', '◆');
  return position <= reach.checkpointed ? out.paint('green', '●') : out.paint('yellow', '○');
}

export const PROOF_LEGEND = '◆ anchored  ● checkpointed  ○ not signed yet';

function whatHappened({ row, args, result }: PastCall): string {
  const text = (value: unknown): string => (typeof value === 'string' ? printable(value) : '');
  const task = text(args.task_id) || text(result.task_id);
  if (row.outcome !== 'ok')
    return ['tried', printable(row.tool), task || text(args.session_id), text(args.status)]
      .filter(Boolean)
      .join(' ');
  switch (row.tool) {
    case 'task_create':
      return `created ${task || 'a task'} “${text(args.title)}” in ${text(args.project)}`;
    case 'task_update':
      return typeof args.status === 'string'
        ? `moved ${task} ${text(result.previous_status) || '?'} → ${text(args.status)}`
        : `changed ${task}: ${Object.keys(args)
            .filter((key) => key !== 'task_id')
            .join(', ')}`;
    case 'thought_record':
      return `${text(args.type)} on ${task}${result.thought_id === undefined ? '' : ` (${text(result.thought_id)})`}`;
    case 'audit_session_start':
      return `opened session ${text(result.session_id)} on ${task}`;
    case 'merkle_finalize':
      return `sealed ${text(args.session_id)}: ${String(result.leaf_count ?? '?')} records, root ${text(result.merkle_root).slice(0, 12)}…`;
    default:
      return `${printable(row.tool)}${task === '' ? '' : ` ${task}`}`;
  }
}
