import { formatId } from '../../log/state.ts';
import { TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Finding } from '../../log/verify/finding.ts';
import { readRowText } from '../../log/verify/row-text.ts';
import { checkRows, type StateRow } from '../../log/verify/state.ts';
import type { Reader } from '../../storage/engine.ts';
import { answerOf, type LostRow, stretchEnd } from './lost-rows.ts';

/** A thought that stands under another task than the one it was recorded for. */
export interface MovedThought extends Pick<LostRow, 'task_id' | 'chain_position'> {
  readonly finding: Finding;
}

/**
 * Thoughts of a task that were given to another one. A thought taken out of the middle leaves a gap; the last one leaves
 * none, so every later thought whose call named the task is asked, and every one whose answer was erased.
 */
export async function movedThoughts(
  tx: Reader,
  taskId: number,
  afterId: number,
  pause: () => Promise<void>,
): Promise<MovedThought[]> {
  const named = JSON.stringify({ task_id: formatId(TASKS, taskId) }).slice(1, -1);
  const moved: MovedThought[] = [];
  for (let from = afterId; ; ) {
    const end = await stretchEnd(tx, 'thoughts', 'id', from + 1);
    if (end === undefined || end <= from) return moved;
    const candidates = await tx.all<StateRow>(
      `SELECT t.* FROM thoughts t LEFT JOIN action_payloads p ON p.position = t.position
       WHERE t.id > ? AND t.id <= ? AND t.task_id <> ? AND (p.body IS NULL OR instr(p.body, ?) > 0)`,
      from,
      end,
      taskId,
      named,
    );
    for (const row of candidates) moved.push(...(await movedFrom(tx, taskId, row)));
    from = end;
    await pause();
  }
}

async function movedFrom(tx: Reader, taskId: number, row: StateRow): Promise<MovedThought[]> {
  const findings: Finding[] = [];
  await checkRows(tx, THOUGHTS, [row], (finding) => findings.push(finding));
  const finding = findings.find(({ columns }) => columns?.includes('task_id'));
  const writer = await tx.get<{ text: string }>('SELECT text FROM actions WHERE position = ?', row.position);
  const written = typeof writer?.text === 'string' ? readRowText(writer.text) : undefined;
  if (finding === undefined || written === undefined) return [];
  const { task_id, chain_position } = await answerOf(tx, written);
  return task_id === undefined || task_id === taskId ? [{ task_id, chain_position, finding }] : [];
}
