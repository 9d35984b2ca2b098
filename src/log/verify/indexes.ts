import type { Reader } from '../../storage/engine.ts';
import { formatId } from '../state.ts';
import { TASKS } from '../tables.ts';
import { auditRow, type Report } from './finding.ts';

/**
 * Tables that repeat what tasks already say, so that finding is fast. Each query yields the tasks for which the two
 * disagree, in either direction.
 */
const COPIES: readonly { readonly table: string; readonly differing: string }[] = [
  {
    table: 'task_labels',
    differing: `SELECT id FROM (SELECT t.id AS id, j.value AS label FROM tasks t, json_each(t.labels) j EXCEPT SELECT task_id, label FROM task_labels)
      UNION SELECT id FROM (SELECT task_id AS id, label FROM task_labels EXCEPT SELECT t.id, j.value FROM tasks t, json_each(t.labels) j)`,
  },
  {
    table: 'task_dependencies',
    differing: `SELECT id FROM (SELECT t.id AS id, j.value AS other FROM tasks t, json_each(t.depends_on) j EXCEPT SELECT task_id, depends_on FROM task_dependencies)
      UNION SELECT id FROM (SELECT task_id AS id, depends_on FROM task_dependencies EXCEPT SELECT t.id, j.value FROM tasks t, json_each(t.depends_on) j)`,
  },
  {
    table: 'task_words',
    differing: `SELECT t.id FROM tasks t LEFT JOIN task_words w ON w.rowid = t.id WHERE w.title IS NOT t.title OR w.description IS NOT t.description
      UNION SELECT w.rowid FROM task_words w WHERE w.rowid NOT IN (SELECT id FROM tasks)`,
  },
];

export async function checkIndexes(tx: Reader, report: Report): Promise<void> {
  for (const { table, differing } of COPIES) {
    for (const { id } of await tx.all<{ id: number }>(differing)) {
      const record = formatId(TASKS, id);
      report({
        kind: 'index',
        table,
        record,
        message: `${table} disagrees with task ${record}: searching would miss it or find it wrongly.`,
      });
    }
  }
}

/** The marks of running calls must be exactly the calls that have no exit row. */
export async function checkOpenCalls(
  tx: Reader,
  open: ReadonlyMap<number, string>,
  report: Report,
): Promise<void> {
  const marks = await tx.all<{ position: number; process: string }>(
    'SELECT position, process FROM open_calls',
  );
  const marked = new Map(marks.map((mark) => [mark.position, mark.process]));
  for (const [position, process] of open) {
    if (marked.get(position) === process) marked.delete(position);
    else {
      const message = `The call at ${position} never ended, and open_calls does not say so.`;
      report({ kind: 'missing', table: 'open_calls', record: auditRow(position), position, message });
      marked.delete(position);
    }
  }
  for (const position of marked.keys()) {
    const message = `open_calls marks ${position} as running, but no running call stands there.`;
    report({ kind: 'stray', table: 'open_calls', record: auditRow(position), message });
  }
}
